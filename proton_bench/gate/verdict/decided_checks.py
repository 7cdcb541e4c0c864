"""The checks of one gate, with everything known about them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from proton_bench.analysis.compare.explanation import row_cause
from proton_bench.analysis.selector import Selectors
from proton_bench.analysis.why.changes import kernel_changes
from proton_bench.gate.machine import WARM_UP_SCOPE, CanaryShift, log_clocks, shift_of
from proton_bench.gate.policy import LOOSER, OTHER_UNITS, PEAK, Amount, Policy, Threshold
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.common_shift import (
    LARGEST_SHIFT,
    common_shift,
    controls_moved,
    explained_by_shift,
)
from proton_bench.gate.statistics.decision import (
    FEWEST_PAIRS_TO_FAIL,
    POWER,
    Background,
    Decisions,
    Evidence,
    Limits,
    changed_for_certain,
    decide,
    detectable_with,
    quantile,
    weigh,
)
from proton_bench.gate.verdict import notes as note_texts
from proton_bench.gate.verdict.checks import (
    Check,
    Observations,
    choose_checks,
    elapsed_times,
    limits_of,
    observe_checks,
    of_memory,
    own_paths,
)
from proton_bench.gate.verdict.measured import Measured
from proton_bench.gate.verdict.notes import Sensitivity, sensitivity_of
from proton_bench.gate.verdict.result import UNDECIDED_SHARE, GateRow, Note, Reason, Verdict
from proton_bench.model.arrays import Floats, Mask
from proton_bench.model.metrics.counter_columns import INSTRUCTIONS
from proton_bench.support.units import Unit

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
class DecidedChecks:
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
        controls_moved: Whether too many kernels of equal code changed.
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
    controls_moved: bool
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


def rows_of(decided: DecidedChecks, policy: Policy) -> tuple[GateRow, ...]:
    """Return the rows, worst first."""
    floors = _Floors(decided)
    typical = decided.observations.typical()
    known = [np.isfinite(each).sum(axis=0) for each in decided.observations.logarithms()]
    tree = decided.measured.comparison.tree
    of_quarantine = Selectors(policy.quarantine).of_tree(tree)
    probable, findable = _probably_worse(decided), _findable(decided, floors)
    paths = [tree.path(check.row) for check in decided.checks]
    devices = _devices(decided, paths)
    rows: list[tuple[GateRow, int]] = []
    for at, check in enumerate(decided.checks):
        if check.is_extra and not min(known[0][at], known[1][at]):
            continue
        quarantined = bool(of_quarantine[check.row])
        verdict, reasons = _verdict(decided, floors, at=at)
        if quarantined:
            verdict, reasons = _quarantined(verdict), [Reason.QUARANTINE, *reasons]
        row = GateRow(
            path=paths[at],
            occurrence=check.occurrence,
            metric=decided.observations.metrics[at],
            threshold=str(check.threshold),
            verdict=verdict,
            reasons=tuple(dict.fromkeys([*reasons, *decided.observations.notes[at]])),
            named=check.named,
            share=check.share,
            base=float(typical[0][at]),
            new=float(typical[1][at]),
            limit=_part(decided.limits.threshold[at]),
            change=_part(decided.decisions.effect[at]),
            low=_part(decided.decisions.low[at]),
            high=_part(decided.decisions.high[at]),
            p_worse=float(decided.decisions.p_worse[at]),
            noise=_part(_noise(decided, at)),
            pairs_needed=_pairs(decided, policy, reasons, at=at),
            base_runs=int(known[0][at]),
            new_runs=int(known[1][at]),
            order_effect=_part(decided.evidence.order_effect[at]),
            same_binary=bool(decided.same_binary[at]),
            downgraded=not quarantined
            and verdict is Verdict.INCONCLUSIVE
            and bool(decided.decisions.worse[at] or probable[at]),
            is_extra=check.is_extra,
            causes=_gaps(decided.observations, at),
            findable=_part(findable[at]),
            device=devices[at],
        )
        rows.append((row, check.row))
    return _with_causes(decided.measured, rows)


def _with_causes(measured: Measured, rows: Sequence[tuple[GateRow, int]]) -> tuple[GateRow, ...]:
    """Return the rows, worst first; the worst say what else changed about their kernels."""
    places = {id(row): place for row, place in rows}
    found = []
    for at, row in enumerate(_worst_first([row for row, _ in rows])):
        causes: tuple[str, ...] = ()
        if at < _MOST_CAUSES and row.verdict is not Verdict.SAME:
            if row.metric == PEAK:
                causes = _memory_causes(measured, places[id(row)])
            elif not row.is_total:
                causes = _causes(measured, places[id(row)])
        found.append(replace(row, causes=(*row.causes, *causes)) if causes else row)
    return tuple(found)


def _memory_causes(measured: Measured, row: int) -> tuple[str, ...]:
    """Return the innermost path below that has most of the change of the peak."""
    tree = measured.comparison.tree
    base, new = (np.nan_to_num(each).mean(axis=0) for each in measured.sides(measured.peaks()))
    changes, at = new - base, row
    children: dict[int, list[int]] = defaultdict(list)
    for child, above in enumerate(tree.parents.tolist()):
        children[above].append(child)
    while below := children[at]:
        most = max(below, key=lambda child: float(changes[child] * np.sign(changes[row])))
        if abs(changes[most]) < _NEARLY_ALL * abs(changes[row]):
            break
        at = most
    if at == row:
        return ()
    unit = Unit.of_sizes([float(changes[at])])
    return (f"{unit.text(float(changes[at]), signed=True)} in {' > '.join(tree.path(at))}",)


def _devices(decided: DecidedChecks, paths: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the device of each check whose path has checks on several devices, "" of others."""
    tree = decided.measured.comparison.tree
    names = [tree.device_names[int(tree.devices[check.row])] for check in decided.checks]
    found: dict[tuple[str, ...], set[str]] = {}
    for path, name in zip(paths, names, strict=True):
        found.setdefault(path, set()).add(name)
    return [name if len(found[path]) > 1 else "" for path, name in zip(paths, names, strict=True)]


def _quarantined(verdict: Verdict) -> Verdict:
    """Return the verdict of a path that never fails."""
    return verdict if verdict is Verdict.SAME else Verdict.INCONCLUSIVE


def _probably_worse(decided: DecidedChecks) -> Mask:
    """Return which checks have whole intervals above their thresholds; also of too few runs."""
    ends = np.where(decided.limits.direction < 0, -decided.decisions.high, decided.decisions.low)
    found: Mask = ends >= decided.limits.threshold
    return found


def _findable(decided: DecidedChecks, floors: _Floors) -> Floats:
    """Return the smallest changes that are found with `POWER`, beyond the floors too."""
    evidence = decided.evidence
    least = np.array([floors.least(at) for at in range(len(decided.checks))], dtype=np.float64)
    beyond_floor = least + quantile(POWER, evidence.freedom) * evidence.error
    return np.maximum(decided.decisions.findable, np.where(least > 0.0, beyond_floor, 0.0))


def _noise(decided: DecidedChecks, at: int) -> float:
    """Return the standard deviation of one run on the log scale."""
    evidence = decided.evidence
    # A pair has the variance of two runs.
    runs = 1.0 if evidence.first_new else 2.0
    return float(np.fmax(evidence.spread[at], evidence.typical[at])) / math.sqrt(runs)


def _gaps(observations: Observations, at: int) -> tuple[str, ...]:
    """Return in how many runs a check has no value, or none above 0."""
    gaps: list[str] = []
    first_new = observations.first_new
    column = observations.values[:, at]
    for word, side in (("base", column[:first_new]), ("new", column[first_new:])):
        lacking, nothing = int(np.isnan(side).sum()), int((side <= 0.0).sum())
        if 0 < lacking < len(side):
            gaps.append(f"missing in {lacking} of {len(side)} {word} runs")
        if nothing:
            gaps.append(f"0 or less in {nothing} of {len(side)} {word} runs")
    return tuple(gaps)


def _causes(measured: Measured, row: int) -> tuple[str, ...]:
    """Return what else changed about a kernel: DRAM bytes, occupancy, registers, and so on."""
    cause = row_cause(measured.comparison, row)
    found = () if cause is None else kernel_changes(measured.comparison, cause)
    return tuple(each.text for each in found)


class _Floors:
    """Changes that are too small to matter in absolute terms, per launch and in total."""

    def __init__(self, decided: DecidedChecks) -> None:
        self._decided = decided
        self._typical = decided.observations.between()
        calls = decided.measured.calls
        self._calls = np.maximum(calls.mean(axis=0), 1.0)
        own = np.where(decided.measured.canary, 0.0, decided.measured.totals)
        self._total = float(own.sum(axis=1).mean())

    def reached(self, at: int, change: float) -> bool:
        """Return whether a change on the log scale is large enough in absolute terms."""
        return abs(change) >= self.least(at) * (1.0 - 1e-12)

    def least(self, at: int) -> float:
        """Return the smallest change that is large enough, on the log scale; 0 without a floor."""
        check = self._decided.checks[at]
        size = check.threshold.absolute
        if size is None:
            if check.threshold.is_written or self._decided.measured.unit != "ns":
                return 0.0
            size = min(FLOOR_NS, _FLOOR * self._total / float(self._calls[check.row]))
        typical = float(self._typical[at])
        # Symmetric in both sides, so that swapping them changes nothing.
        return 2.0 * math.asinh(size / (2.0 * typical)) if typical > 0.0 else math.inf


def _verdict(decided: DecidedChecks, floors: _Floors, *, at: int) -> tuple[Verdict, list[Reason]]:
    if not decided.evidence.tested[at]:
        return Verdict.INCONCLUSIVE, [_untested(decided, at)]
    decisions = decided.decisions
    if decisions.worse[at] or decisions.better[at]:
        return _changed(decided, at, is_large=floors.reached(at, float(decisions.effect[at])))
    if decisions.allowed[at] or not floors.reached(at, _worst(decided, at)):
        return Verdict.SAME, []
    return Verdict.INCONCLUSIVE, [
        Reason.TIMER_TICK if decided.evidence.limited[at] else Reason.TOO_NOISY
    ]


def _worst(decided: DecidedChecks, at: int) -> float:
    """Return the end of the interval where the path is worst, positive for worse."""
    ends = (float(decided.decisions.low[at]), float(decided.decisions.high[at]))
    return ends[1] if decided.limits.direction[at] > 0 else -ends[0]


def _untested(decided: DecidedChecks, at: int) -> Reason:
    is_unknown = Reason.NO_VALUES in decided.observations.notes[at]
    return Reason.NO_VALUES if is_unknown else Reason.TOO_FEW_RUNS


def _changed(decided: DecidedChecks, at: int, *, is_large: bool) -> tuple[Verdict, list[Reason]]:
    if not is_large:
        return Verdict.SAME, []
    is_worse = bool(decided.decisions.worse[at])
    if decided.checks[at].threshold.metric == PEAK:  # no machine is in doubt
        return (Verdict.REGRESSED if is_worse else Verdict.IMPROVED), []
    if not is_worse:
        shifted = bool(decided.shift_explains[at])
        return (Verdict.INCONCLUSIVE, [Reason.MACHINE]) if shifted else (Verdict.IMPROVED, [])
    doubts = {
        Reason.SAME_CODE: decided.same_binary[at],
        Reason.CLOCK: decided.clock_explains[at],
        Reason.ORDER: decided.order_explains[at],
        Reason.MACHINE: decided.shift_explains[at] or decided.blockers,
    }
    found = [reason for reason, holds in doubts.items() if holds]
    return (Verdict.INCONCLUSIVE, found) if found else (Verdict.REGRESSED, [])


def _pairs(decided: DecidedChecks, policy: Policy, reasons: Sequence[Reason], *, at: int) -> int:
    """Return the total pairs that would decide, if more help: as many in both orders.

    Pairs without the path stay so; further ones have it.
    """
    if _MORE_RUNS_HELP.isdisjoint(reasons):
        return 0
    runs = int(decided.evidence.runs[at])
    lost = min(map(len, decided.measured.sides(decided.measured.totals))) - runs
    fewest = max(policy.runs, runs + 1)
    if Reason.ORDER in reasons:
        # As many again with the other side first.
        return lost + lost % 2 + max(fewest + fewest % 2, 2 * runs)
    if not math.isfinite(float(decided.evidence.error[at])):
        fewest = max(fewest, FEWEST_PAIRS_TO_FAIL)  # the noise is unknown
    elif math.isfinite(needed := float(decided.decisions.pairs[at])):
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


# Of a threshold whose amount decides nothing but how precise a quantile has to be.
_ANY_PERCENT = 3.0


@dataclass(frozen=True, slots=True)
class Context:
    """Inputs of a gate other than the runs.

    Attributes:
        arrangement: How the runs pair, if the caller knows it better than their times.
        part: Share of the false alarms that noise may cause in this look at the runs, if there are
            several looks.
        pairs: Pairs of the last look, 0 for those at hand.
    """

    arrangement: Arrangement | None = None
    part: float = 1.0
    pairs: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """What the machine may have changed for some checks alike.

    Attributes:
        rows: Mask of these checks.
        paths: Mask of those whose median is the shift.
        note: What is said of a shift so large that the machine was not the same.
        looser: How many times as much as kernels they usually shift.
    """

    rows: Mask
    paths: Mask
    note: Note
    looser: float = 1.0

    def is_large(self, evidence: Evidence) -> bool:
        """Return whether the machine was not the same."""
        return abs(common_shift(evidence, self.paths)) > self.looser * LARGEST_SHIFT

    def explains(self, evidence: Evidence, limits: Limits) -> Mask:
        """Return which changes of these checks vanish beyond the shift."""
        return self.rows & explained_by_shift(evidence, limits, self.paths, looser=self.looser)


@dataclass(frozen=True, slots=True, eq=False)
class GateChecks:
    """The checks of one gate.

    Attributes:
        measured: The aligned runs.
        arrangement: Their order in time.
        policy: What is asked.
        context: What is known besides.
    """

    measured: Measured
    arrangement: Arrangement
    policy: Policy
    context: Context

    @property
    def has_unasked_instructions(self) -> bool:
        """Whether instructions were counted that no threshold is about."""
        asked = any(each.metric == INSTRUCTIONS for each in self.policy.thresholds)
        return not asked and bool(np.isfinite(self.measured.sums(INSTRUCTIONS)).any())

    def decided(self) -> DecidedChecks:
        """Return the decided checks."""
        measured = self.measured.by_statistic(self.policy.statistic)
        checks = choose_checks(measured, self.policy)
        observations = observe_checks(measured, checks)
        base, new = observations.logarithms()
        limits = limits_of(checks, observations.between())
        evidence = weigh(
            base,
            new,
            self.arrangement.order,
            background=self.background(checks, observations),
            margin=limits.margin,
            fewest_runs=self.policy.runs,
        )
        same_binary = self._same_binary(checks)
        decisions = decide(evidence, limits, part=self.context.part)
        return DecidedChecks(
            measured=measured,
            checks=checks,
            observations=observations,
            evidence=evidence,
            limits=limits,
            decisions=decisions,
            same_binary=same_binary,
            clock_explains=_about_time(checks) & self._clock_explains(evidence, limits),
            shift_explains=self._shift_explains(checks, evidence, limits),
            order_explains=self._order_explains(checks, evidence),
            # Each kernel is one control.
            controls_moved=controls_moved(evidence, limits, same_binary & own_paths(checks)),
        )

    def shifts(self, checks: Sequence[Check]) -> list[Shift]:
        """Return which changes of the machine cannot be distinguished from those of the program.

        Kernels and the host differ in what changes their speed. Canary kernels say nothing about
        the host; they are of it where elapsed times are all there is.
        """
        if self.arrangement.is_paired and not self.arrangement.is_confounded:
            return []
        elapsed = self._of_host(checks)
        below = np.array([each.row > 0 for each in checks], dtype=np.bool_)
        found = [Shift(elapsed, elapsed & below, note_texts.ELAPSED_SHIFT, LOOSER)]
        if not self.canaries().is_steady:
            of_kernels = ~elapsed & ~of_memory(checks)
            found += [Shift(of_kernels, own_paths(checks), note_texts.COMMON_SHIFT)]
        return found

    def sensitivity(self, metric: str) -> Sensitivity:
        """Return what a gate of all paths by this statistic would see here."""
        asked = Threshold(metric, (Amount(_ANY_PERCENT, "%"),))
        policy = replace(self.policy, thresholds=(asked,)).with_marked(())
        decided = replace(self, policy=policy).decided()
        at_hand = min(len(self.arrangement.base), len(self.arrangement.new))
        pairs = max(self.context.pairs, at_hand, FEWEST_PAIRS_TO_FAIL)
        found = detectable_with(pairs, decided.evidence, decided.limits.margin)
        shares = np.array([check.share for check in decided.checks])
        totals = np.array([each.threshold.metric == "total" for each in decided.checks], dtype="?")
        of_run = totals & np.array([each.row == 0 for each in decided.checks], dtype="?")
        single = own_paths(decided.checks)
        return sensitivity_of(
            metric,
            found[single],
            shares[single],
            totals=found[totals & (shares > UNDECIDED_SHARE)],
            run=found[of_run],
        )

    def background(self, checks: Sequence[Check], observations: Observations) -> Background:
        """Return what the values of the checks do not say."""
        return Background(
            observations.tick_floor(paired=self.arrangement.is_paired),
            observations.resolution(),
            [each.threshold.metric for each in checks],
        )

    def _same_binary(self, checks: Sequence[Check]) -> Mask:
        tree = self.measured.comparison.tree
        rows = np.array([check.row for check in checks], dtype=np.intp)
        base, new = tree.base, tree.new
        alike = (base.codes[rows] > 0) & (base.codes[rows] == new.codes[rows])
        launched = (base.variants[rows] >= 0) & (base.variants[rows] == new.variants[rows])
        found: Mask = alike & launched & _about_time(checks)
        return found

    def _clock_explains(self, evidence: Evidence, limits: Limits) -> Mask:
        """Return which changes of time vanish when counted in cycles of the SM clock.

        Only a shift of the clock between the sides explains anything. Its noise does not: clocks
        of single processes vary by more than the times of their paths.
        """
        sides = self.arrangement.base, self.arrangement.new
        base, new = (float(log_clocks(side).mean()) for side in sides)
        if self.measured.unit != "ns" or not np.isfinite(new - base):
            return np.zeros(len(limits.threshold), dtype=np.bool_)
        remains = [
            changed_for_certain(each, each.effect + (new - base), limits)
            for each in (evidence, evidence.unshared)
            if each is not None
        ]
        found: Mask = ~np.any(remains, axis=0)
        return found

    def _shift_explains(self, checks: Sequence[Check], evidence: Evidence, limits: Limits) -> Mask:
        found = np.zeros(len(checks), dtype=np.bool_)
        for each in self.shifts(checks):
            found |= each.explains(evidence, limits)
        return found

    def _order_explains(self, checks: Sequence[Check], evidence: Evidence) -> Mask:
        """Return which changes running second may explain.

        Canary kernels can rule that out for kernels.
        """
        one_order = ~np.isfinite(evidence.order_effect)
        cleared = ~self._of_host(checks) & self.canaries().is_steady
        return one_order & ~cleared & self.arrangement.is_paired

    def _of_host(self, checks: Sequence[Check]) -> Mask:
        """Mark the elapsed times beside times of kernels."""
        return elapsed_times(checks) & (not self.measured.nested)

    def canaries(self) -> CanaryShift:
        """Return the shift of the canary kernels; what warms the device up does not count."""
        measured = self.measured
        found = np.flatnonzero(measured.canary & measured.present.all(axis=0)).tolist()
        measured.check_paths(found)
        rows = np.array(
            [row for row in found if WARM_UP_SCOPE not in measured.comparison.tree.path(row)],
            dtype=np.intp,
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            each = measured.totals[:, rows] / np.maximum(measured.calls[:, rows], 1.0)
            logs = np.where(each > 0, np.log(each), np.nan)
        return shift_of(*measured.sides(logs))


def _about_time(checks: Sequence[Check]) -> Mask:
    return np.array([each.threshold.metric not in OTHER_UNITS for each in checks], dtype=np.bool_)
