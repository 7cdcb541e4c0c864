"""What the search measures: the regression that the proof found, as one number of each pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proton_bench.analysis.run import Run
from proton_bench.gate.judge.judgement import judge
from proton_bench.gate.judge.questions import Context
from proton_bench.gate.judge.result import GateResult, GateRow
from proton_bench.gate.judge.verdict import SuiteVerdict
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.arrangement import paired_as

__all__ = ["Subject", "is_proven", "subject_of"]


@dataclass(frozen=True, slots=True)
class Subject:
    """A regressed check, or a structural change that is not allowed.

    Attributes:
        path: Names from below the root.
        occurrence: Number among the rows with this path.
        metric: Metric of the check; "" for a structural change.
        text: Its path on one line, with readable names.
    """

    path: tuple[str, ...]
    occurrence: int
    metric: str
    text: str

    def difference(self, base: Run, new: Run, policy: Policy, *, base_first: bool) -> float:
        """Return ``ln`` of new over base of one pair, NaN if a run has no such path.

        For a structural change it is 1 if the pair has it, else 0.

        Raises:
            ProtonError: See `judge`.
        """
        # Every path is a check, however small its share is in this pair.
        whole = replace(policy, share=0.0)
        context = Context(arrangement=paired_as([base], [new], [base_first]))
        result = judge([base], [new], whole, context=context)
        if not self.metric:
            return float(any(each.fails and each.path == self.path for each in result.structure))
        for row in result.rows:
            if (row.path, row.occurrence, row.metric) == self._key:
                known = row.base > 0.0 and row.new > 0.0
                return math.log(row.new) - math.log(row.base) if known else math.nan
        return math.nan

    @property
    def _key(self) -> tuple[tuple[str, ...], int, str]:
        return self.path, self.occurrence, self.metric


def subject_of(result: GateResult) -> Subject | None:
    """Return the regression of a gate that needs the fewest pairs, None if there is none.

    Paths that the policy names come first.
    """
    if result.regressions:
        row = max(result.regressions, key=_clearness)
        return Subject(row.path, row.occurrence, row.metric, _text(row.path, result))
    failing = [each for each in result.structure if each.fails]
    if failing:
        return Subject(failing[0].path, 0, "", _text(failing[0].path, result))
    return None


def is_proven(result: GateResult) -> bool:
    """Return whether a search may begin: its subject is proven, and no undecided path goes before.

    Paths that the policy names go before all others.
    """
    is_named = any(row.named for row in result.regressions)
    is_waiting = any(row.named and row.is_undecided for row in result.rows)
    is_clear = is_named or not is_waiting
    return result.verdict is SuiteVerdict.FAIL and is_clear and subject_of(result) is not None


def _clearness(row: GateRow) -> tuple[bool, float]:
    """Return whether a path is named, and its change over its error, infinite without one."""
    reach = (math.log1p(row.high) - math.log1p(row.low)) / 2.0
    size = abs(math.log1p(row.change))
    return row.named, size / reach if reach > 0.0 else math.inf


def _text(path: Sequence[str], result: GateResult) -> str:
    return " > ".join(result.texts.get(name, name) for name in path) or "whole run"
