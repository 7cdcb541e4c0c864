"""From decisions about all paths to one row for each check, with its reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.compare.explanation import row_cause
from proton_bench.analysis.selector import Selectors
from proton_bench.analysis.why.changes import kernel_changes
from proton_bench.gate.judge.check import Check
from proton_bench.gate.judge.measured import Measured
from proton_bench.gate.judge.observations import Observations
from proton_bench.gate.judge.result import GateRow
from proton_bench.gate.judge.verdict import Reason, Verdict
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.decision import (
    POWER,
    RECOMMENDED_PAIRS,
    Decisions,
    Evidence,
    Limits,
    quantile,
)

__all__ = ["FLOOR_NS", "Judged", "answer"]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_MORE_RUNS_HELP = frozenset(
    {Reason.ORDER, Reason.TIMER_TICK, Reason.TOO_FEW_RUNS, Reason.TOO_NOISY}
)
# Kernels whose other changes are looked up; the readers of a report look no further.
_MOST_CAUSES = 20
# A path is not worse if it is slower by less than this per launch and per run, unless a threshold
# says so.
FLOOR_NS, _FLOOR = 100.0, 0.001
# Share of the largest change that makes a row one of the causes of it.
_NEARLY_ALL = 0.7
# Larger changes, on the log scale, do not fit a float.
_LARGEST = 700.0
_SEVERITY = {
    verdict: rank
    for rank, verdict in enumerate(
        (Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.IMPROVED, Verdict.SAME)
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Everything known about the checks of a gate, one element for each check.

    Attributes:
        measured: The runs.
        checks: The checks.
        observations: Values of the processes.
        evidence: Effects and noise.
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

    def decided_around(self) -> dict[str, Mask]:
        """Mark the rows around which a scope or the whole run is decided, by total and by wall."""
        decisions, parents = self.decisions, self.measured.comparison.tree.parents.tolist()
        known = self.evidence.tested & (decisions.allowed | decisions.worse | decisions.better)
        found = {name: np.zeros(len(parents), dtype=np.bool_) for name in ("total", "wall")}
        for at, check in enumerate(self.checks):
            if check.threshold.metric in found:
                found[check.threshold.metric][check.row] = known[at]
        for mask in found.values():
            for row in range(1, len(parents)):
                mask[row] |= mask[parents[row]]
        return found


def answer(judged: Judged, policy: Policy) -> tuple[GateRow, ...]:
    """Return the rows, worst first."""
    floors = _Floors(judged)
    typical = judged.observations.typical()
    known = [np.isfinite(each).sum(axis=0) for each in judged.observations.logarithms()]
    tree = judged.measured.comparison.tree
    of_quarantine = Selectors(policy.quarantine).of_tree(tree)
    probable, findable = _probably_worse(judged), _findable(judged, floors)
    paths = [tree.path(check.row) for check in judged.checks]
    devices = _devices(judged, paths)
    rows: list[tuple[GateRow, int]] = []
    for at, check in enumerate(judged.checks):
        if check.is_extra and not min(known[0][at], known[1][at]):
            continue
        quarantined = bool(of_quarantine[check.row])
        verdict, reasons = _verdict(judged, floors, at=at)
        if quarantined:
            verdict, reasons = _quarantined(verdict), [Reason.QUARANTINE, *reasons]
        row = GateRow(
            path=paths[at],
            occurrence=check.occurrence,
            metric=judged.observations.metrics[at],
            threshold=str(check.threshold),
            verdict=verdict,
            reasons=tuple(dict.fromkeys([*reasons, *judged.observations.notes[at]])),
            named=check.named,
            share=check.share,
            base=float(typical[0][at]),
            new=float(typical[1][at]),
            limit=_part(judged.limits.threshold[at]),
            change=_part(judged.decisions.effect[at]),
            low=_part(judged.decisions.low[at]),
            high=_part(judged.decisions.high[at]),
            p_worse=float(judged.decisions.p_worse[at]),
            noise=_part(_noise(judged, at)),
            pairs_needed=_pairs(judged, policy, reasons, at=at),
            base_runs=int(known[0][at]),
            new_runs=int(known[1][at]),
            order_effect=_part(judged.evidence.order_effect[at]),
            same_binary=bool(judged.same_binary[at]),
            downgraded=not quarantined
            and verdict is Verdict.INCONCLUSIVE
            and bool(judged.decisions.worse[at] or probable[at]),
            is_extra=check.is_extra,
            causes=_gaps(judged.observations, at),
            findable=_part(findable[at]),
            device=devices[at],
        )
        rows.append((row, check.row))
    return _with_causes(judged.measured, rows)


def _with_causes(measured: Measured, rows: Sequence[tuple[GateRow, int]]) -> tuple[GateRow, ...]:
    """Return the rows, worst first; the worst say what else changed about their kernels."""
    places = {id(row): place for row, place in rows}
    return tuple(
        replace(row, causes=(*row.causes, *_causes(measured, places[id(row)])))
        if at < _MOST_CAUSES and row.verdict is not Verdict.SAME and not row.is_total
        else row
        for at, row in enumerate(_worst_first([row for row, _ in rows]))
    )


def _devices(judged: Judged, paths: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the device of each check whose path has checks on several devices, "" of others."""
    tree = judged.measured.comparison.tree
    names = [tree.device_names[int(tree.devices[check.row])] for check in judged.checks]
    found: dict[tuple[str, ...], set[str]] = {}
    for path, name in zip(paths, names, strict=True):
        found.setdefault(path, set()).add(name)
    return [name if len(found[path]) > 1 else "" for path, name in zip(paths, names, strict=True)]


def _quarantined(verdict: Verdict) -> Verdict:
    """Return the verdict of a path that never fails."""
    return verdict if verdict is Verdict.SAME else Verdict.INCONCLUSIVE


def _probably_worse(judged: Judged) -> Mask:
    """Return which checks have whole intervals above their thresholds; also of too few runs."""
    ends = np.where(judged.limits.direction < 0, -judged.decisions.high, judged.decisions.low)
    found: Mask = ends >= judged.limits.threshold
    return found


def _findable(judged: Judged, floors: _Floors) -> Numbers:
    """Return the smallest changes that are found with `POWER`, beyond the floors too."""
    evidence = judged.evidence
    least = np.array([floors.least(at) for at in range(len(judged.checks))], dtype=np.float64)
    beyond_floor = least + quantile(POWER, evidence.freedom) * evidence.error
    return np.maximum(judged.decisions.findable, np.where(least > 0.0, beyond_floor, 0.0))


def _noise(judged: Judged, at: int) -> float:
    """Return the standard deviation of one run on the log scale."""
    evidence = judged.evidence
    # A pair has the variance of two runs.
    runs = 1.0 if evidence.first_new else 2.0
    return float(np.fmax(evidence.spread[at], evidence.typical[at])) / math.sqrt(runs)


def _gaps(observations: Observations, at: int) -> tuple[str, ...]:
    """Return in how many runs a check has no value, or none above 0."""
    said, first_new = [], observations.first_new
    column = observations.values[:, at]
    for word, side in (("base", column[:first_new]), ("new", column[first_new:])):
        lacking, nothing = int(np.isnan(side).sum()), int((side <= 0.0).sum())
        if 0 < lacking < len(side):
            said.append(f"missing in {lacking} of {len(side)} {word} runs")
        if nothing:
            said.append(f"0 or less in {nothing} of {len(side)} {word} runs")
    return tuple(said)


def _causes(measured: Measured, row: int) -> tuple[str, ...]:
    """Return what else changed about a kernel: DRAM bytes, occupancy, registers, and so on."""
    cause = row_cause(measured.comparison, row)
    found = () if cause is None else kernel_changes(measured.comparison, cause)
    return tuple(each.text for each in found)


class _Floors:
    """Changes that are too small to matter in absolute terms, per launch and in total."""

    def __init__(self, judged: Judged) -> None:
        self._judged = judged
        self._typical = judged.observations.between()
        calls = judged.measured.calls
        self._calls = np.maximum(calls.mean(axis=0), 1.0)
        own = np.where(judged.measured.canary, 0.0, judged.measured.totals)
        self._total = float(own.sum(axis=1).mean())

    def reached(self, at: int, change: float) -> bool:
        """Return whether a change on the log scale is large enough in absolute terms."""
        return abs(change) >= self.least(at) * (1.0 - 1e-12)

    def least(self, at: int) -> float:
        """Return the smallest change that is large enough, on the log scale; 0 without a floor."""
        check = self._judged.checks[at]
        size = check.threshold.absolute
        if size is None:
            if check.threshold.is_written or self._judged.measured.unit != "ns":
                return 0.0
            size = min(FLOOR_NS, _FLOOR * self._total / float(self._calls[check.row]))
        typical = float(self._typical[at])
        # Symmetric in both sides, so that swapping them changes nothing.
        return 2.0 * math.asinh(size / (2.0 * typical)) if typical > 0.0 else math.inf


def _verdict(judged: Judged, floors: _Floors, *, at: int) -> tuple[Verdict, list[Reason]]:
    if not judged.evidence.tested[at]:
        return Verdict.INCONCLUSIVE, [_untested(judged, at)]
    decisions = judged.decisions
    if decisions.worse[at] or decisions.better[at]:
        return _changed(judged, at, is_large=floors.reached(at, float(decisions.effect[at])))
    if decisions.allowed[at] or not floors.reached(at, _worst(judged, at)):
        return Verdict.SAME, []
    return Verdict.INCONCLUSIVE, [
        Reason.TIMER_TICK if judged.evidence.limited[at] else Reason.TOO_NOISY
    ]


def _worst(judged: Judged, at: int) -> float:
    """Return the end of the interval where the path is worst, positive for worse."""
    ends = (float(judged.decisions.low[at]), float(judged.decisions.high[at]))
    return ends[1] if judged.limits.direction[at] > 0 else -ends[0]


def _untested(judged: Judged, at: int) -> Reason:
    is_unknown = Reason.NO_VALUES in judged.observations.notes[at]
    return Reason.NO_VALUES if is_unknown else Reason.TOO_FEW_RUNS


def _changed(judged: Judged, at: int, *, is_large: bool) -> tuple[Verdict, list[Reason]]:
    if not is_large:
        return Verdict.SAME, []
    is_worse = bool(judged.decisions.worse[at])
    if not is_worse:
        shifted = bool(judged.shift_explains[at])
        return (Verdict.INCONCLUSIVE, [Reason.MACHINE]) if shifted else (Verdict.IMPROVED, [])
    doubts = {
        Reason.SAME_CODE: judged.same_binary[at],
        Reason.CLOCK: judged.clock_explains[at],
        Reason.ORDER: judged.order_explains[at],
        Reason.MACHINE: judged.shift_explains[at] or judged.blockers,
    }
    found = [reason for reason, holds in doubts.items() if holds]
    return (Verdict.INCONCLUSIVE, found) if found else (Verdict.REGRESSED, [])


def _pairs(judged: Judged, policy: Policy, reasons: Sequence[Reason], *, at: int) -> int:
    """Return the total pairs that would decide, if more help: as many in both orders.

    Pairs without the path stay so; further ones have it.
    """
    if _MORE_RUNS_HELP.isdisjoint(reasons):
        return 0
    runs = int(judged.evidence.runs[at])
    lost = min(map(len, judged.measured.sides(judged.measured.totals))) - runs
    fewest = max(policy.runs, runs + 1)
    if Reason.ORDER in reasons:
        # As many again with the other side first.
        return lost + lost % 2 + max(fewest + fewest % 2, 2 * runs)
    if not math.isfinite(float(judged.evidence.error[at])):
        fewest = max(fewest, RECOMMENDED_PAIRS)  # the noise is unknown
    elif math.isfinite(needed := float(judged.decisions.pairs[at])):
        fewest = max(fewest, int(needed))
    else:
        return -1
    return lost + fewest + (lost + fewest) % 2


def _part(logarithm: float) -> float:
    known = math.isfinite(logarithm)
    return math.expm1(min(float(logarithm), _LARGEST)) if known else float(logarithm)


def _worst_first(rows: Sequence[GateRow]) -> list[GateRow]:
    """Return the rows sorted: regressions first, and the one that explains most of them on top.

    Of paths inside each other that have nearly the whole change, the innermost comes first.
    """
    most = max((_size(row) for row in rows if row.verdict is Verdict.REGRESSED), default=0.0)

    def key(row: GateRow) -> tuple[Any, ...]:
        is_main = row.verdict is Verdict.REGRESSED and _size(row) >= _NEARLY_ALL * most
        depth = -len(row.path) if is_main else 0
        order = (_SEVERITY[row.verdict], row.is_extra, not is_main, depth, row.is_total)
        return (*order, -_size(row), row.path, row.metric)

    return sorted(rows, key=key)


def _size(row: GateRow) -> float:
    size = abs(row.change) * row.share
    return size if math.isfinite(size) else 0.0
