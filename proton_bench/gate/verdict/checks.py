"""One number per process for every check: the data of the gate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.compare.pairing import PairedTree
from proton_bench.analysis.metrics.formula import SECONDS
from proton_bench.analysis.selector import Selectors
from proton_bench.analysis.view.names import steady_name
from proton_bench.errors import UsageError
from proton_bench.gate.machine import tick_of
from proton_bench.gate.policy import PEAK, TAIL, Policy, Threshold
from proton_bench.gate.statistics.decision import Limits
from proton_bench.gate.statistics.location import (
    SHORT_NS,
    Location,
    Sample,
    grouped_quantile,
    locate,
    tick_variance,
)
from proton_bench.gate.verdict.benchmarks import whole_benchmarks
from proton_bench.gate.verdict.measured import SUMMED, Measured
from proton_bench.gate.verdict.result import Reason
from proton_bench.model.arrays import Floats, Mask
from proton_bench.model.frame import FrameKind

# Rows that stand for what is below them.
_ONE_LAUNCH = [FrameKind.OP, FrameKind.PYTHON, FrameKind.STATE, FrameKind.LINE]
_NEARLY_ALL = 0.95


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one path.

    Attributes:
        row: Row of the comparison; 0 is the whole run.
        threshold: The threshold.
        named: Whether a selector of the policy chose the path.
        share: Share of the path in a base run, or in a new run if that is more: of the time, with
            the paths below it for a total; of the elapsed time for `wall`, of the memory for
            `peak`.
        occurrence: Number among the rows with this path, from 0 in the order of the tree.
    """

    row: int
    threshold: Threshold
    named: bool
    share: float
    occurrence: int = 0

    @property
    def is_extra(self) -> bool:
        """Whether it is of the host and was not asked for."""
        return self.threshold.metric == "wall" and not self.threshold.is_written


def choose_checks(measured: Measured, policy: Policy) -> tuple[Check, ...]:
    """Return the checks of paths measured on both sides, chosen without looking at changes.

    A path is checked if a selector names it, if it has ``policy.share`` of the time, or if it is a
    whole benchmark. Launches are checked one by one, scopes and layers by their totals with all
    that is below them, memory for the whole run. Bytes, instructions and the like are recorded of
    some paths alone, so only those that have them on a side are checked without a selector.
    """
    timed = [
        each
        for each in policy.thresholds
        # Where elapsed time is all there is, it has all other checks.
        if not each.is_launch_count
        and (each.is_written or not measured.nested or each.metric != "wall")
    ]
    candidates = _Candidates(measured, policy, {each.metric for each in timed} & SUMMED.keys())
    named = any(each.selector for each in timed)
    rows = candidates.rows(everything=named)
    tree = measured.comparison.tree
    by_path, occurrences = ThresholdsByPath(timed, tree), _occurrences(measured, tree.strings)
    checks = [
        Check(row, each, is_named, candidates.share_of(row, each.metric), occurrences[row])
        for row in rows.tolist()
        for each in _settled(by_path.of_row(row), is_one=measured.nested and row > 0).values()
        for is_named in [bool(each.selector) and each.is_written]
        if candidates.has(row, each.metric, is_named=bool(each.selector))
    ]
    measured.check_paths([each.row for each in checks])
    copies = _copies(measured, checks) if measured.nested else frozenset()
    return tuple(
        each for each in checks if each.threshold.metric != "median" or each.row not in copies
    )


def _settled(found: dict[str, Threshold], *, is_one: bool) -> dict[str, Threshold]:
    """Return the thresholds of a path, with defaults that follow what was written for it.

    Args:
        found: The thresholds that apply, by their metrics.
        is_one: Whether the total of the path is its elapsed time.
    """
    if is_one and "wall" in found and not found["total"].is_written:
        found = {name: each for name, each in found.items() if name != "total"}
    written = {name for name, each in found.items() if each.is_written and not each.is_offered}
    if not {"mean", "min"}.isdisjoint(written):
        # They were written instead of the median.
        return {name: each for name, each in found.items() if name != "median" or name in written}
    return found


class _Candidates:
    """Which rows have something to check, and its share of a run.

    Args:
        measured: The runs.
        policy: Has the least share of a path that no entry names.
        summed: Metrics of thresholds that only some paths may have.
    """

    def __init__(self, measured: Measured, policy: Policy, summed: Collection[str]) -> None:
        self._least = policy.share
        base, new = (each.any(axis=0) for each in measured.sides(measured.present))
        self._launched = base & new & ~measured.canary
        self._rounds = whole_benchmarks(measured)
        self._launch_shares = np.maximum(*measured.side_shares())
        self._total_shares = np.maximum(*measured.side_shares(inclusive=True))
        sums = [each.max(axis=0) > 0.0 for each in measured.sides(measured.inclusive)]
        self._summed = sums[0] & sums[1] & ~measured.canary
        self._groups = self._summed & _groups(measured)
        self._walls = _walls(measured)
        self._peaks = _peaks(measured)
        self._recorded: dict[str, Mask] = {
            name: np.asarray(np.isfinite(measured.sums(SUMMED[name])).any(axis=0))
            for name in summed
        }
        self._measured = measured

    def rows(self, *, everything: bool) -> npt.NDArray[np.intp]:
        """Return the rows that may have a check; all of them if any path may be named."""
        if everything:
            some = (self._walls > 0.0) | (self._peaks > 0.0)
            return np.flatnonzero(self._launched | self._summed | some)
        large = self._launched & ((self._launch_shares >= self._least) | self._rounds)
        large |= self._groups & (self._total_shares >= self._least)
        large[0] |= self._peaks[0] > 0.0
        return np.flatnonzero(large | (self._walls >= self._least))

    def has(self, row: int, metric: str, *, is_named: bool) -> bool:
        """Return whether there is something to check."""
        share, least = self.share_of(row, metric), 0.0 if is_named else self._least
        if metric == "total":
            if row == 0:
                return self._measured.whole and bool(self._summed[0])
            return bool((self._summed if is_named else self._groups)[row]) and share >= least
        if metric == "wall":
            return share > 0.0 and share >= least
        if metric == PEAK:
            return share > 0.0 and (is_named or (row == 0 and self._measured.whole))
        if not is_named and metric in self._recorded and not self._recorded[metric][row]:
            return False
        large = share >= least or bool(self._rounds[row])
        return row > 0 and bool(self._launched[row]) and large

    def share_of(self, row: int, metric: str) -> float:
        """Return the share of a run that a check is about."""
        if metric == "total":
            return float(self._total_shares[row])
        if metric == PEAK:
            return float(self._peaks[row])
        return float((self._walls if metric == "wall" else self._launch_shares)[row])


def _copies(measured: Measured, checks: Sequence[Check]) -> set[int]:
    """Return scopes that each run entered once at most, so that totals are the times of entries."""
    amounts = {(each.row, each.threshold.metric): each.threshold.amounts for each in checks}
    rows = [row for row, metric in amounts if metric == "total" and row > 0]
    both = [row for row in rows if amounts.get((row, "median")) == amounts[row, "total"]]
    entries = measured.calls.max(axis=0)
    for line in measured.samples(both) if both else []:
        for row, sample in zip(both, line, strict=True):
            entries[row] = max(entries[row], 0.0 if sample is None else sample.size)
    return {row for row in both if entries[row] <= 1}


def _groups(measured: Measured) -> Mask:
    """Mark the rows whose totals are checked.

    Of rows with nearly equal totals, such as a scope in a scope, it is the outermost one; operators
    and frames of Python only where several paths begin.
    """
    tree, totals = measured.comparison.tree, measured.inclusive
    parents = tree.parents.tolist()
    filled = np.flatnonzero((totals > 0.0).any(axis=0))
    children = np.bincount(tree.parents[filled[filled > 0]], minlength=len(tree))
    several: Mask = np.asarray(children > np.isin(tree.kinds, _ONE_LAUNCH))
    base, new = (side.mean(axis=0).tolist() for side in measured.sides(totals))
    # The totals that are checked at the row, or nearest around it.
    covered = [(base[0], new[0]) if measured.whole else (math.inf, math.inf)]
    found = np.zeros(len(tree), dtype=np.bool_)
    found[0] = measured.whole
    for row in range(1, len(tree)):
        own, around = (base[row], new[row]), covered[parents[row]]
        found[row] = several[row] and not _is_nearly_all(own, around)
        covered.append(own if found[row] else around)
    return found


def _walls(measured: Measured) -> Floats:
    """Return the share of each row in the elapsed time of all outermost scopes, 0 for none.

    A scope that has nearly all the time of the checked one around it on each side is not checked
    apart from it, nor is the whole run apart from its only outermost scope.
    """
    finite = np.isfinite(values := measured.walls()) & ~measured.canary
    base, new = (each.any(axis=0) for each in measured.sides(finite))
    known: Mask = np.asarray(base & new)
    known[0] &= measured.whole and not measured.nested
    if measured.nested:  # there totals are elapsed times already
        shares: Floats = np.maximum(*measured.side_shares(inclusive=True))
        return np.where(known, shares, 0.0)
    parents = measured.comparison.tree.parents.tolist()
    means = [each.mean(axis=0) for each in measured.sides(np.where(finite, values, 0.0))]
    times = list(zip(*(each.tolist() for each in means), strict=True))
    covered = [(math.inf, math.inf)]
    for row in range(1, len(parents)):
        own, around = times[row], covered[parents[row]]
        known[row] &= not _is_nearly_all(own, around)
        if known[row] and _is_nearly_all(own, times[0]):
            known[0] = False
        covered.append(own if known[row] else around)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.maximum(*(each / each[0] for each in means))
    return np.where(known & np.isfinite(found), found, 0.0)


def _peaks(measured: Measured) -> Floats:
    """Return the share of each row in the memory at the peak, 0 where a side does not know it."""
    values = measured.peaks()
    base, new = (np.isfinite(each).any(axis=0) for each in measured.sides(values))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.nan_to_num(values / values[:, :1])
    found: Floats = np.where(base & new, shares.max(axis=0), 0.0)
    return found


def _is_nearly_all(own: Sequence[float], around: Sequence[float]) -> bool:
    """Return whether a row has nearly all of what is around it, on each side."""
    return all(each >= _NEARLY_ALL * most for each, most in zip(own, around, strict=True))


def _occurrences(measured: Measured, names: Sequence[str]) -> list[int]:
    """Return for each row the number of measured rows with the same path before it.

    Args:
        measured: The rows.
        names: What to take for each of their names.
    """
    tree = measured.comparison.tree
    frames, parents = tree.frames().tolist(), tree.parents.tolist()
    measures = set(np.flatnonzero(measured.present.any(axis=0)).tolist())
    labels: dict[tuple[int, str], int] = {}
    seen: Counter[int] = Counter()
    own, found = [0] * len(parents), [0] * len(parents)
    for row in range(1, len(parents)):
        label = labels.setdefault((own[parents[row]], names[frames[row]]), len(labels) + 1)
        own[row], found[row] = label, seen[label]
        seen[label] += row in measures
    return found


def lasting_keys(
    measured: Measured, checks: Sequence[Check]
) -> list[tuple[tuple[str, ...], int, str]]:
    """Return path, occurrence and metric of each check, with names that other edits of a file keep.

    Names that differ in a number that such edits change are one name, so rows are counted anew.
    """
    tree = measured.comparison.tree
    steady = {name: steady_name(name) for name in tree.strings}
    occurrences = _occurrences(measured, [steady[name] for name in tree.strings])
    return [
        (
            tuple(steady[name] for name in tree.path(check.row)),
            occurrences[check.row],
            check.threshold.metric,
        )
        for check in checks
    ]


class ThresholdsByPath:
    """Which thresholds apply to which paths: the last one of each metric.

    Those that only the new side has loosen no other one.

    Args:
        thresholds: In the order in which they were written.
        tree: The paths.

    Attributes:
        refused: Thresholds of the new side that would have loosened others, with these.
    """

    def __init__(self, thresholds: Iterable[Threshold], tree: PairedTree) -> None:
        self._thresholds = tuple(thresholds)
        self._selectors = Selectors(each.selector for each in self._thresholds)
        self._selected = self._selectors.of_tree(tree)
        self._known: dict[int, dict[str, Threshold]] = {}
        self.refused: dict[Threshold, Threshold] = {}

    def of_row(self, row: int) -> dict[str, Threshold]:
        """Return the thresholds of a path by their metrics."""
        selected = self._selected[row]
        found = self._known.get(selected)
        if row == 0:  # which no glob matches
            return {e.metric: e for e in self._thresholds if not e.selector}
        if found is None:
            chosen = (self._thresholds[place] for place in self._selectors.chosen(selected))
            found = self._known[selected] = {}
            for each in chosen:
                known = found.get(each.metric)
                if known is None or not (each.is_offered and each.loosens(known)):
                    found[each.metric] = each
                else:
                    self.refused[each] = known
        return found


def own_paths(checks: Sequence[Check]) -> Mask:
    """Mark the checks of launches: totals and elapsed times repeat them, memory is not theirs."""
    return np.array(
        [
            not each.is_extra and each.threshold.metric not in {"total", "wall", PEAK}
            for each in checks
        ],
        dtype=np.bool_,
    )


def elapsed_times(checks: Sequence[Check]) -> Mask:
    """Mark the checks of elapsed times."""
    return np.array([each.threshold.metric == "wall" for each in checks], dtype=np.bool_)


def of_memory(checks: Sequence[Check]) -> Mask:
    """Mark the checks of memory, which neither clocks nor other work on the machine change."""
    return np.array([each.threshold.metric == PEAK for each in checks], dtype=np.bool_)


def limits_of(checks: Sequence[Check], typical: Floats) -> Limits:
    """Return thresholds on the log scale.

    Growing by a share ``r`` and shrinking back are both ``ln(1 + r)``, so swapping the sides swaps
    better and worse.

    Args:
        checks: The checks.
        typical: A typical value of each, which turns absolute amounts into shares.
    """
    parts = np.array(
        [_part(check.threshold, value) for check, value in zip(checks, typical, strict=True)],
        dtype=np.float64,
    )
    return Limits(
        threshold=np.log1p(parts),
        direction=np.array([check.threshold.direction for check in checks], dtype=np.float64),
    )


def _part(threshold: Threshold, typical: float) -> float:
    if threshold.ratio is not None:
        return threshold.ratio
    absolute = threshold.absolute or 0.0
    known = np.isfinite(typical) and typical > 0.0
    return absolute / float(typical) if known else 1.0


_FROM_SUMS = frozenset({"total", "wall", PEAK, *SUMMED})
_SLOWEST = 0.1
# A larger error, as a share of a threshold, could change a verdict.
_BEARABLE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Values of each process, base first, one column for each check.

    Attributes:
        values: In the metric's unit; NaN if there is none.
        tick_variances: Contribution of the timer's tick to the variance of each ``ln(value)``.
        metrics: What was measured for each check: the mean of all launches instead of their median
            if single ones were not kept precisely enough.
        notes: Notes on the values of each check.
        first_new: Number of base runs.
    """

    values: Floats
    tick_variances: Floats
    metrics: tuple[str, ...]
    notes: tuple[tuple[Reason, ...], ...]
    first_new: int

    def logarithms(self) -> tuple[Floats, Floats]:
        """Return ``ln`` of the values of base and new runs; NaN unless positive."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(self.values > 0.0, np.log(self.values), np.nan)
        return logs[: self.first_new], logs[self.first_new :]

    def typical(self) -> tuple[Floats, Floats]:
        """Return the geometric means of both sides, NaN without positive values."""
        base, new = (_mean(each) for each in self.logarithms())
        return np.exp(base), np.exp(new)

    def between(self) -> Floats:
        """Return the geometric mean of both sides, which does not depend on their order."""
        base, new = self.typical()
        return np.sqrt(base) * np.sqrt(new)

    def tick_floor(self, *, paired: bool) -> Floats:
        """Return the least variance of one pair, or of one process if the sides are apart."""
        base, new = (
            self.tick_variances[: self.first_new],
            self.tick_variances[self.first_new :],
        )
        floors = _mean(base) + _mean(new)
        return np.nan_to_num(floors if paired else floors / 2.0)

    def resolution(self) -> Floats:
        """Return the variance of the effects that more runs do not reduce.

        If all launches of all processes of a side have one value, they have the same rounding
        error: ``(tick / value)^2 / 12`` for that side.
        """
        parts = []
        for logs, ticks in zip(
            self.logarithms(),
            (self.tick_variances[: self.first_new], self.tick_variances[self.first_new :]),
            strict=True,
        ):
            known = np.isfinite(logs)
            low = np.where(known, logs, np.inf).min(axis=0)
            high = np.where(known, logs, -np.inf).max(axis=0)
            parts.append(np.where(low == high, np.nan_to_num(_mean(ticks)), 0.0))
        return parts[0] + parts[1]


def observe_checks(measured: Measured, checks: Sequence[Check]) -> Observations:
    """Compute the value of each process for each check.

    Raises:
        UsageError: A threshold is an amount of time for a metric that is not a time.
    """
    _check_units(measured, checks)
    shape = (len(measured.runs), len(checks))
    values, ticks = np.full(shape, np.nan), np.zeros(shape)
    metrics = [check.threshold.metric for check in checks]
    notes: list[tuple[Reason, ...]] = []
    places = {row: place for place, row in enumerate(sorted({check.row for check in checks}))}
    samples = measured.samples(list(places))
    asked = set(metrics)
    sums = {name: measured.sums(SUMMED[name]) for name in sorted(asked & SUMMED.keys())}
    sums |= {"total": measured.inclusive, "wall": measured.walls()}
    sums |= {PEAK: measured.peaks()} if PEAK in asked else {}
    steps = [tick_of(run.profile, measured.unit) for run in measured.runs]
    for column, check in enumerate(checks):
        if check.threshold.metric in _FROM_SUMS:
            values[:, column] = _from_sums(measured, check, sums)
            notes.append(_noted(measured, check, values[:, column]))
            continue
        line = [each[places[check.row]] for each in samples]
        present = measured.present[:, check.row]
        whole = all(each is not None for each, here in zip(line, present, strict=True) if here)
        found = _from_samples(line, check, steps, unit=measured.unit) if whole else []
        worst = max((_excess(each, check) for each in found), default=math.inf)
        unknown = whole and math.isinf(worst)
        if not whole or 1.0 < worst < math.inf:
            found = _from_means(measured, check, steps)
        elif unknown:
            found = [Location(math.nan)] * len(line)
        values[:, column] = [each.value for each in found]
        ticks[:, column] = [each.log_variance for each in found]
        if metrics[column] == "median" and worst > 1.0 and not unknown:
            metrics[column] = "mean"
        notes.append(_noted(measured, check, values[:, column]))
    return Observations(values, ticks, tuple(metrics), tuple(notes), measured.first_new)


def _check_units(measured: Measured, checks: Sequence[Check]) -> None:
    for check in checks:
        amounts = check.threshold.amounts
        times = check.threshold.metric not in {PEAK, *SUMMED}
        if times and measured.unit != "ns" and not all(each.is_relative for each in amounts):
            raise UsageError(
                f"threshold {str(check.threshold)!r} is an amount of time, but these runs have "
                f"{measured.source!a}, which is not in ns; use a percentage"
            )


def _from_samples(
    line: Sequence[Sample | None], check: Check, steps: Sequence[float], *, unit: str
) -> list[Location]:
    known = [each for each in line if each is not None and each.size]
    # The same for all processes of both sides, because two estimators would differ.
    short = unit == "ns" and any(grouped_quantile(each, 0.5) < SHORT_NS for each in known)
    return [
        Location(math.nan, math.nan)
        if sample is None or not sample.size
        else _tail(sample, tick)
        if check.threshold.metric == TAIL
        else locate(sample, check.threshold.metric, tick=tick, short=short)
        for sample, tick in zip(line, steps, strict=True)
    ]


def _tail(sample: Sample, tick: float) -> Location:
    """Return the mean of the slowest tenth of the launches, the expected shortfall at 90 %.

    Unlike a quantile it grows with every launch beyond it: in number and in length. Of less than
    ten launches it is the slowest one.
    """
    upto, known = np.cumsum(sample.counts), sample.known
    start = upto[-1] * (1.0 - _SLOWEST)
    weights = np.maximum(upto - np.maximum(upto - sample.counts, start), 0.0)
    value = float(np.average(sample.values, weights=weights))
    if bool((weights[known.unknown] > 0.0).any()) or not value > 0.0:
        return Location(value, 0.0, math.inf)
    error = float(np.average(known.highs - known.lows, weights=weights)) / value
    return Location(value, tick_variance(value, tick, float(weights.sum())), error)


def _excess(found: Location, check: Check) -> float:
    """Return the error of a value as a multiple of its limit, a tenth of the threshold."""
    if not found.error or math.isnan(found.value):
        return 0.0
    part = check.threshold.ratio
    if part is None:
        part = (check.threshold.absolute or 0.0) / abs(found.value)
    return found.error / (_BEARABLE * part) if part > 0 else math.inf


def _from_means(measured: Measured, check: Check, steps: Sequence[float]) -> list[Location]:
    """Return means of all launches, which are known even if single ones were not kept."""
    if check.threshold.metric not in {"median", "mean"}:
        return [Location(math.nan, math.nan)] * len(steps)
    found = []
    launches = _launches(measured, check.row)
    for line, (tick, calls) in enumerate(zip(steps, launches.tolist(), strict=True)):
        here = bool(measured.present[line, check.row])
        value = float(measured.totals[line, check.row]) / calls if here else math.nan
        found.append(Location(value, tick_variance(value, tick, calls)))
    return found


def _launches(measured: Measured, row: int) -> Floats:
    """Return the launches of a row in each run: 1 if no run counts them, NaN if only others do."""
    calls = measured.calls[:, row]
    unknown = math.nan if bool((calls > 0.0).any()) else 1.0
    return np.where(calls > 0.0, calls, unknown)


def _from_sums(measured: Measured, check: Check, sums: Mapping[str, Floats]) -> Floats:
    row, metric = check.row, check.threshold.metric
    own: Floats = sums[metric][:, row]
    if metric == "total":  # a run without any of it has nothing to compare
        return np.where(own != 0.0, own, np.nan)
    if metric in {"mem", "wall", PEAK}:
        return own
    totals = np.where(measured.present[:, row], measured.totals[:, row], np.nan)
    if metric in {"cycles", "instructions"}:
        return own / _launches(measured, row)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = own / (totals * SECONDS.get(measured.unit, math.nan))
    return rates / 1e9 if metric == "gbps" else rates


def _noted(measured: Measured, check: Check, values: Floats) -> tuple[Reason, ...]:
    """Return the notes on a check's values and launches."""
    tree = measured.comparison.tree
    notes = []
    # Runs of both sides have the path, so a side without any value did not record it.
    recorded = all(np.isfinite(side).any() for side in measured.sides(values))
    if bool((values <= 0.0).any()) or not recorded:
        notes.append(Reason.NO_VALUES)
    elif not np.isfinite(values).all():
        notes.append(Reason.TOO_FEW_RUNS)
    variants = tree.variants_of(check.row)
    configs = {each.config for each in variants if each is not None and each.config}
    several = -2 in {int(tree.base.codes[check.row]), int(tree.new.codes[check.row])}
    if several or len(configs) > 1 or tree.code_changed(check.row):
        notes.append(Reason.CODE_CHANGED)
    return tuple(notes)


def _mean(values: Floats) -> Floats:
    known = np.isfinite(values)
    counts = known.sum(axis=0)
    sums: Floats = np.where(known, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
