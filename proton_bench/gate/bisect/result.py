"""What a search found, with its evidence."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from proton_bench.gate.bisect.history import Candidate
from proton_bench.gate.judge.result import GateResult
from proton_bench.gate.judge.verdict import SuiteVerdict

__all__ = ["BisectResult", "BisectVerdict", "Measurement", "State"]

SCHEMA = "proton_bench.bisect"
VERSION = (1, 0)


class BisectVerdict(StrEnum):
    """The outcome of a search."""

    FOUND = "FOUND"
    RANGE = "RANGE"
    NO_REGRESSION = "NO-REGRESSION"
    INCONCLUSIVE = "INCONCLUSIVE"
    INCOMPARABLE = "INCOMPARABLE"


_EXIT_CODES = {BisectVerdict.FOUND: 0, BisectVerdict.INCOMPARABLE: 4}
_UNDECIDED = 3


class State(StrEnum):
    """What is known of a revision."""

    GOOD = "good"
    BAD = "bad"
    UNCLEAR = "unclear"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One revision that was run.

    Attributes:
        revision: The revision.
        state: What is known of it.
        pairs: Pairs that were measured.
        change: Change against the good revision, as a share; NaN if unknown.
        low: Lower end of its 90 % interval.
        high: Upper end.
        p_bad: Probability that it is slower.
        reason: Why it was skipped, or whose code it runs; "" otherwise.
    """

    revision: Candidate
    state: State
    pairs: int = 0
    change: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p_bad: float = math.nan
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BisectResult:
    """The result of a search.

    Attributes:
        verdict: The outcome.
        proof: The gate between the good and the bad revision.
        good: The good revision.
        revisions: Number of revisions after it, up to the bad one.
        candidates: Revisions one of which is the first bad one, the most likely first; one if it is
            found, none if nothing was searched.
        probability: Posterior of the first of them.
        parents: Revisions just before the first of them.
        path: The regressed path on one line; "" if nothing was searched.
        metric: Its metric; "" for a structural change.
        tested: Revisions that were run, in the order of the history.
        problem: Why nothing was searched; "" otherwise.
    """

    verdict: BisectVerdict
    proof: GateResult
    good: Candidate
    revisions: int
    candidates: tuple[Candidate, ...] = ()
    probability: float = math.nan
    parents: tuple[Candidate, ...] = ()
    path: str = ""
    metric: str = ""
    tested: tuple[Measurement, ...] = ()
    problem: str = ""

    @property
    def exit_code(self) -> int:
        """0 found, 3 no regression or undecided, 4 incomparable, 5 no path in common."""
        if self.proof.verdict is SuiteVerdict.NO_BASELINE:
            return self.proof.exit_code
        return _EXIT_CODES.get(self.verdict, _UNDECIDED)

    @property
    def pairs(self) -> int:
        """Pairs of the search, without those of the proof."""
        return sum(each.pairs for each in self.tested)

    def of(self, revision: Candidate) -> Measurement | None:
        """Return what was measured of a revision, None if it was not run."""
        return next((each for each in self.tested if each.revision == revision), None)

    def to_document(self) -> dict[str, Any]:
        """Return JSON values, with the schema's name and version; NaN becomes null."""
        return {
            "schema": SCHEMA,
            "version": list(VERSION),
            "exit_code": self.exit_code,
            "verdict": self.verdict.value,
            "problem": self.problem or None,
            "good": _document(self.good),
            "revisions": self.revisions,
            "candidates": [_document(each) for each in self.candidates],
            "probability": _known(self.probability),
            "parents": [_document(each) for each in self.parents],
            "path": self.path or None,
            "metric": self.metric or None,
            "pairs": self.pairs,
            "tested": [_tested(each) for each in self.tested],
            "proof": self.proof.to_document(),
        }


def _document(candidate: Candidate) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "title": candidate.title,
        "author": candidate.author or None,
        "date": candidate.date or None,
    }


def _tested(tested: Measurement) -> dict[str, Any]:
    numbers = ("change", "low", "high", "p_bad")
    rest = {key: value for key, value in asdict(tested).items() if key not in ("revision", "state")}
    return {
        **_document(tested.revision),
        "state": tested.state.value,
        **{key: _known(value) if key in numbers else value for key, value in rest.items()},
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
