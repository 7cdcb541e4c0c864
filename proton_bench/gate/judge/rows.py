"""From decisions about all paths to one row for each check, with its reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from proton_bench.errors import PluginError
from proton_bench.gate.judge.check import Check
from proton_bench.gate.judge.measured import Measured
from proton_bench.gate.judge.observations import Observations
from proton_bench.gate.judge.result import GateRow, Note
from proton_bench.gate.judge.verdict import Reason, Verdict
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.policy.rules import Rule, find_rules
from proton_bench.gate.policy.selector import Selectors
from proton_bench.gate.statistics.power import RECOMMENDED_PAIRS
from proton_bench.gate.statistics.timing import Decisions, Evidence, Limits

__all__ = ["Judged", "answer", "apply_rules", "worst_first"]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_MORE_RUNS_HELP = frozenset(
    {
        Reason.MISSING_IN_RUNS,
        Reason.NEEDS_RUNS,
        Reason.ORDER_CONFOUNDED,
        Reason.STRUCTURE_ONLY,
        Reason.TIMER_TICK,
        Reason.TOO_FEW_RUNS,
        Reason.TOO_NOISY,
    }
)
# Larger changes, on the log scale, do not fit a float.
_LARGEST = 700.0
_SEVERITY = {
    verdict: rank
    for rank, verdict in enumerate(
        (
            Verdict.REGRESSED,
            Verdict.CLOCK,
            Verdict.SAME_BINARY,
            Verdict.INCONCLUSIVE,
            Verdict.UNMEASURED,
            Verdict.QUARANTINED,
            Verdict.IMPROVED,
            Verdict.SAME,
        )
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Everything known about the checks of a gate, one element for each check.

    Attributes:
        measured: The runs.
        checks: The checks.
        observations: Values of the processes.
        evidence: Contrasts and noise.
        limits: Thresholds, on the log scale.
        decisions: The decisions.
        same_binary: Whether code and launch are the same, as far as known.
        clock_explains: Whether the change vanishes when counted in cycles.
        shift_explains: Whether it vanishes when the change of the median path is subtracted.
        order_explains: Whether the same side always ran first for this path, with an unknown
            effect.
        blockers: Obstacles to a certain change, for all checks.
    """

    measured: Measured
    checks: Sequence[Check]
    observations: Observations
    evidence: Evidence
    limits: Limits
    decisions: Decisions
    same_binary: Mask
    clock_explains: Mask
    shift_explains: Mask
    order_explains: Mask
    blockers: tuple[Reason, ...] = field(default=())


def answer(judged: Judged, policy: Policy) -> tuple[GateRow, ...]:
    """Return the rows, worst first."""
    floors = _Floors(judged, policy)
    shares = judged.measured.shares()
    typical = judged.observations.typical()
    known = [np.isfinite(each).sum(axis=0) for each in judged.observations.logarithms()]
    tree = judged.measured.comparison.tree
    of_quarantine = Selectors(policy.quarantine).of_tree(tree)
    rows = []
    for at, check in enumerate(judged.checks):
        verdict, reasons = _verdict(judged, policy, floors, at=at)
        quarantined = bool(of_quarantine[check.row])
        if quarantined:
            verdict, reasons = Verdict.QUARANTINED, [Reason.QUARANTINE, *reasons]
        rows.append(
            GateRow(
                path=tree.path(check.row),
                occurrence=check.occurrence,
                metric=check.threshold.metric,
                threshold=str(check.threshold),
                verdict=verdict,
                reasons=tuple(dict.fromkeys([*reasons, *judged.observations.notes[at]])),
                named=check.named,
                share=float(shares[check.row]),
                base=float(typical[0][at]),
                new=float(typical[1][at]),
                change=_part(judged.evidence.contrast.effect[at]),
                low=_part(judged.decisions.low[at]),
                high=_part(judged.decisions.high[at]),
                p_worse=float(judged.decisions.p_worse[at]),
                detectable=_part(judged.decisions.detectable[at]),
                pairs_needed=_pairs(judged, policy, reasons, at=at),
                base_runs=int(known[0][at]),
                new_runs=int(known[1][at]),
                order_effect=_part(judged.evidence.contrast.order_effect[at]),
                same_binary=bool(judged.same_binary[at]),
                downgraded=not quarantined and _is_downgraded(judged, verdict, reasons, at=at),
            )
        )
    return tuple(sorted(rows, key=worst_first))


class _Floors:
    """Changes that are too small to matter in absolute terms, per launch and in total."""

    def __init__(self, judged: Judged, policy: Policy) -> None:
        self._judged = judged
        self._typical = judged.observations.between()
        calls = judged.measured.calls
        self._calls = np.maximum(calls.mean(axis=0), 1.0)
        own = np.where(judged.measured.canary, 0.0, judged.measured.totals)
        self._total = float(own.sum(axis=1).mean())
        self._policy = policy

    def reached(self, at: int, change: float) -> bool:
        """Return whether a change on the log scale is large enough in absolute terms."""
        check = self._judged.checks[at]
        # Symmetric in both sides, so that swapping them changes nothing.
        half = min(abs(change) / 2.0, _LARGEST / 2.0)
        size = 2.0 * float(self._typical[at]) * math.sinh(half)
        asked = check.threshold.absolute
        if asked is not None:
            return size >= asked * (1.0 - 1e-12)
        if check.threshold.is_written or self._judged.measured.unit != "ns":
            return True
        of_all = size * float(self._calls[check.row])
        return size >= self._policy.floor_ns or of_all >= self._policy.total_floor * self._total


def _verdict(
    judged: Judged, policy: Policy, floors: _Floors, *, at: int
) -> tuple[Verdict, list[Reason]]:
    if not judged.evidence.tested[at]:
        return _untested(judged, policy, at)
    decisions, effect = judged.decisions, float(judged.evidence.contrast.effect[at])
    if decisions.worse[at] or decisions.better[at]:
        return _changed(judged, policy, at, is_large=floors.reached(at, effect))
    if decisions.same[at]:
        return Verdict.SAME, [Reason.BELOW_THRESHOLD]
    return Verdict.INCONCLUSIVE, _undecided(judged, floors, at)


def _undecided(judged: Judged, floors: _Floors, at: int) -> list[Reason]:
    decisions, direction = judged.decisions, judged.limits.direction[at]
    ends = (float(decisions.low[at]), float(decisions.high[at]))
    worst = ends[1] if direction > 0 else ends[0] if direction < 0 else max(ends, key=abs)
    if decisions.allowed[at]:
        return [Reason.NOT_WORSE]
    if not floors.reached(at, worst):
        return [Reason.NOT_WORSE, Reason.BELOW_FLOOR]
    if judged.evidence.limited[at]:
        return [Reason.TIMER_TICK]
    is_noisy = decisions.detectable[at] > judged.limits.threshold[at]
    return [Reason.TOO_NOISY if is_noisy else Reason.NEEDS_RUNS]


def _untested(judged: Judged, policy: Policy, at: int) -> tuple[Verdict, list[Reason]]:
    notes = judged.observations.notes[at]
    if Reason.QUANTILE_UNKNOWN in notes:
        return Verdict.INCONCLUSIVE, [Reason.QUANTILE_UNKNOWN]
    if Reason.NO_VALUES in notes:
        return Verdict.UNMEASURED, [Reason.NO_VALUES]
    if Reason.NOT_POSITIVE in notes:
        return Verdict.INCONCLUSIVE, [Reason.NOT_POSITIVE]
    measured = judged.measured
    sizes = (measured.first_new, len(measured.runs) - measured.first_new)
    if sizes == (1, 1):
        return Verdict.INCONCLUSIVE, [Reason.STRUCTURE_ONLY]
    if min(sizes) >= policy.runs and Reason.MISSING_IN_RUNS in notes:
        return Verdict.INCONCLUSIVE, [Reason.MISSING_IN_RUNS]
    return Verdict.INCONCLUSIVE, [Reason.TOO_FEW_RUNS]


def _changed(
    judged: Judged, policy: Policy, at: int, *, is_large: bool
) -> tuple[Verdict, list[Reason]]:
    is_worse = bool(judged.decisions.worse[at])
    if not is_large:
        return Verdict.SAME, [Reason.BELOW_FLOOR]
    grew = judged.evidence.contrast.effect[at] > 0.0
    changed = Reason.SLOWER if grew else Reason.FASTER
    if judged.checks[at].threshold.metric in {"flops", "gbps"}:
        changed = Reason.FASTER if grew else Reason.SLOWER
    elif judged.checks[at].threshold.metric in {"mem", "cycles", "stddev", "iqr", "mad"}:
        changed = Reason.CHANGED
    if judged.same_binary[at] and not policy.same_binary_fails:
        return Verdict.SAME_BINARY, [Reason.SAME_BINARY, changed]
    if judged.clock_explains[at]:
        return Verdict.CLOCK, [Reason.CLOCK_EXPLAINS, changed]
    if judged.shift_explains[at]:
        certain = [] if is_worse else [Reason.NOT_WORSE]
        return Verdict.INCONCLUSIVE, [Reason.COMMON_SHIFT, changed, *certain]
    if not is_worse:
        return Verdict.IMPROVED, [changed]
    if judged.order_explains[at]:
        return Verdict.INCONCLUSIVE, [Reason.ORDER_CONFOUNDED, changed]
    if judged.blockers:
        return Verdict.INCONCLUSIVE, [*judged.blockers, changed]
    return Verdict.REGRESSED, [changed]


def _is_downgraded(judged: Judged, verdict: Verdict, reasons: Sequence[Reason], *, at: int) -> bool:
    if not (judged.evidence.tested[at] and judged.decisions.worse[at]):
        return False
    explained = {Reason.COMMON_SHIFT, Reason.ORDER_CONFOUNDED}
    blocked = not set(reasons).isdisjoint({*judged.blockers, *explained})
    return verdict in {Verdict.CLOCK, Verdict.SAME_BINARY} or (
        verdict is Verdict.INCONCLUSIVE and blocked
    )


def _pairs(judged: Judged, policy: Policy, reasons: Sequence[Reason], *, at: int) -> int:
    """Return the total pairs that would decide, if more help: as many in both orders."""
    if _MORE_RUNS_HELP.isdisjoint(reasons):
        return 0
    runs = int(judged.evidence.contrast.runs[at])
    fewest = max(policy.runs, runs + 1)
    if Reason.ORDER_CONFOUNDED in reasons:
        return max(fewest + fewest % 2, 2 * runs)  # as many again with the other side first
    if not math.isfinite(float(judged.evidence.error[at])):
        fewest = max(fewest, RECOMMENDED_PAIRS)  # the noise is unknown
    elif math.isfinite(needed := float(judged.decisions.pairs[at])):
        fewest = max(fewest, int(needed))
    else:
        return -1
    return fewest + fewest % 2


def _part(logarithm: float) -> float:
    return math.expm1(min(float(logarithm), _LARGEST)) if math.isfinite(logarithm) else math.nan


def apply_rules(
    rows: Sequence[GateRow], names: Sequence[str]
) -> tuple[tuple[GateRow, ...], tuple[Note, ...]]:
    """Return the rows after the rules, worst first, and notes on their changes.

    Args:
        rows: Rows of the gate.
        names: Rules in order; each sees the rows of the rules before it.

    Raises:
        UsageError: One is unknown.
        PluginError: A rule raised, or returned anything but a verdict.
    """
    notes = []
    for name, rule in find_rules(names).items():
        judged = tuple(_judged(row, name, rule) for row in rows)
        count = sum(old is not new for old, new in zip(rows, judged, strict=True))
        if count:
            noun = "check" if count == 1 else "checks"
            notes.append(Note(Reason.RULE, f"rule {name!r} decided {count} {noun}"))
        rows = judged
    return tuple(sorted(rows, key=worst_first)), tuple(notes)


def _judged(row: GateRow, name: str, rule: Rule) -> GateRow:
    try:
        verdict = rule(row)
        decided = None if verdict is None else Verdict(verdict)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f"gate rule {name!r} of a plugin failed: {what}") from error
    if decided is None or decided is row.verdict:
        return row
    reasons = (Reason.RULE, *row.reasons)
    return replace(row, verdict=decided, reasons=reasons, downgraded=False)


def worst_first(row: GateRow) -> tuple[int, float, tuple[str, ...], str]:
    """Return the sort key of rows."""
    size = abs(row.change) * row.share
    return (_SEVERITY[row.verdict], -size if math.isfinite(size) else 0.0, row.path, row.metric)
