"""Compares two sets of runs: what changed, where, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from proton_bench.analysis.accounting.host_time import with_measured_times
from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.benchmark_calls import BenchmarkCalls, with_equal_calls
from proton_bench.analysis.compare.breakdown import break_down
from proton_bench.analysis.compare.pairing import PairedTree, pair
from proton_bench.analysis.compare.run_rows import Identity
from proton_bench.analysis.kernels.stall_reasons import ALL, has_samples
from proton_bench.analysis.metrics.derive import (
    is_of_host,
    is_timed_by_host,
    prepare,
    values_of,
)
from proton_bench.analysis.metrics.measure import Measure, find_measure
from proton_bench.analysis.metrics.samples import is_sample_statistic
from proton_bench.analysis.naming.layers import fold_layers, fold_steps
from proton_bench.analysis.naming.nested import fold_library_frames, fold_nested
from proton_bench.analysis.run import Run, check_devices
from proton_bench.analysis.view.select import drop_metadata, fold_trials
from proton_bench.errors import UsageError
from proton_bench.model import preorder
from proton_bench.model.arrays import Array, Indexes, Mask
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.wall_times import with_self_times
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import sum_column
from proton_bench.model.steps import HOST_WALL

_LARGEST_SUM = 2.0**62


@dataclass(frozen=True, slots=True, eq=False)
class SubtreeSums:
    """Adds up values over the subtrees of one tree.

    Attributes:
        parents: Row of each row's parent, in pre-order.
        ends: For each row the row after its last descendant; derived.
    """

    parents: Indexes
    ends: Indexes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", preorder.subtree_ends(self.parents))

    def of(self, values: Array) -> Array:
        """Return each row's value plus those of all rows below it."""
        values = _counted(values)
        if values.dtype.kind != "i":
            return preorder.sums(self.parents, values)
        running = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=running[1:])
        found: Array = running[self.ends] - running[:-1]
        return found


def grouped(values: Array, places: Indexes, total: int) -> Array:
    """Return ``total`` sums, one for each group; flags are counted."""
    values = _counted(values)
    if values.dtype.kind != "i":
        return np.bincount(places, weights=values, minlength=total)
    found = np.zeros(total, dtype=np.int64)
    np.add.at(found, places, values)
    return found


def _counted(values: Array) -> Array:
    """Return whole numbers whose sums fit 64 bits, or floating-point numbers."""
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind == "i" and float(np.abs(values.astype("f8")).sum()) < _LARGEST_SUM:
        return values
    return values.astype(np.float64)


CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Bounds of each row's change that hold with `CONFIDENCE`."""

    low: Array
    high: Array


def mean_difference(base: Array, new: Array) -> Interval | None:
    """Return the interval of the difference of the two sides' means, None with a run on each side.

    It is Welch's t interval, which does not assume equal spread. A side of one run is assumed to
    vary like the other.

    Args:
        base: One line per run, one column per row.
        new: The same of the other side.
    """
    sizes = len(base), len(new)
    if max(sizes) < 2:
        return None
    spreads = [side.var(axis=0, ddof=1) if len(side) > 1 else None for side in (base, new)]
    shares = []
    for own, other, size in zip(spreads, reversed(spreads), sizes, strict=True):
        spread = own if own is not None else other
        assert spread is not None
        shares.append(spread / size)
    error = np.sqrt(shares[0] + shares[1])
    middle = new.mean(axis=0) - base.mean(axis=0)
    reach = _quantile(_freedom(shares, sizes)) * error
    return Interval(middle - reach, middle + reach)


def _freedom(shares: list[Array], sizes: tuple[int, int]) -> Array:
    if min(sizes) == 1:
        return np.full(len(shares[0]), max(sizes) - 1, dtype=np.float64)
    below = sum(share**2 / (size - 1) for share, size in zip(shares, sizes, strict=True))
    found = np.full(len(shares[0]), float(sum(sizes) - 2))
    np.divide((shares[0] + shares[1]) ** 2, below, out=found, where=below > 0)
    return found


def _quantile(freedom: Array) -> Array:
    from scipy.special import stdtrit

    found: Array = stdtrit(freedom, 0.5 + CONFIDENCE / 2.0)
    return found


# A part may be much larger than the change; larger ones do not stay whole numbers.


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Parts of each row's change; whole numbers if the change is one.

    Attributes:
        launches: Change by more or fewer launches.
        latency: Change by slower or faster launches.
        rest: Change without launches; the three add up to the change.
    """

    launches: Array
    latency: Array
    rest: Array


def split(base: Array, new: Array, *, base_count: Array, new_count: Array) -> Split:
    """Return the parts of ``new - base`` for each row: launches times latency, T = n t.

    For a base (n0, t0) and a new (n1, t1) side::

        T1 - T0  =  (t0 + t1) / 2 * (n1 - n0)  +  (n0 + n1) / 2 * (t1 - t0)
                    more or fewer launches        slower or faster launches

    The parts add up to the change exactly, and swapping the sides flips both signs. A side without
    launches gets the other side's t, so new and removed rows are changes of launches alone. Rows
    with a value but without launches are in neither part.

    Args:
        base: Values of the base in all launches.
        new: New values.
        base_count: Launches in the base, 0 for none or unknown.
        new_count: Launches now.
    """
    change = new - base
    base_each, new_each = _per_launch(base, base_count), _per_launch(new, new_count)
    base_each = np.where(base_count > 0, base_each, new_each)
    new_each = np.where(new_count > 0, new_each, base_each)
    launches = (base_each + new_each) / 2.0 * (new_count - base_count)
    if change.dtype.kind == "i" and bool((np.abs(launches) < _LARGEST).all()):
        launches = np.rint(launches).astype(np.int64)
    # Exact: dividing and multiplying again would lose digits.
    launches = np.where((base_count > 0) & (new_count > 0), launches, change)
    known = (base_count > 0) | (new_count > 0)
    nothing = np.zeros_like(change)
    return Split(
        launches=np.where(known, launches, nothing),
        latency=np.where(known, change - launches, nothing),
        rest=np.where(known, nothing, change),
    )


def _per_launch(values: Array, counts: Array) -> Array:
    each = np.zeros(len(values), dtype=np.float64)
    np.divide(values, counts, out=each, where=counts > 0)
    return each


_COUNT = "count"
# Differences and sums of larger whole numbers could leave 64 bits.
_LARGEST = 2.0**60


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """Options of a comparison.

    Attributes:
        metric: A recorded or derived metric; None means a time or the metric closest to it.
        by: What makes a row.
        raw_names: Names have to match exactly.
        ignore_devices: Compare runs of any devices.
        follow: A row that moved to another scope is one row with both values.
        fold_frames: Compare runs of library frames as one row.
        fold_layers: Compare equal layers of a model as one row.
        fold_steps: Compare numbered steps as one row.
        self_times: Compare wall times without those of the rows below, which add up over rows.
    """

    metric: str | None = None
    by: By = By.PATH
    raw_names: bool = False
    ignore_devices: bool = False
    follow: bool = True
    fold_frames: bool = False
    fold_layers: bool = False
    fold_steps: bool = False
    self_times: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Values of every row on both sides, in the unit of the measure's source.

    Values are means over the runs of a side; a run without the row counts as 0. They are whole
    numbers where the recorded ones are and each side has one run.

    Attributes:
        base: Values of the base.
        new: New values.
        base_valid: Whether the base has a value; missing ones are 0.
        new_valid: Whether the new runs have one.
        base_count: Launches in the base, 0 where unknown.
        new_count: Launches now.
        split: Parts of the change, None if the metric does not add up or has no launches.
        change: New minus base; a side without a value counts as 0.
    """

    base: Array
    new: Array
    base_valid: Mask
    new_valid: Mask
    base_count: Array
    new_count: Array
    split: Split | None = None
    # Kept, because reports ask row by row.
    change: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "change", self.new - self.base)

    def mapped(self, form: Callable[[Array], Array]) -> Changes:
        """Return the values of other rows, which a function makes of those of these rows."""
        parts = self.split
        return Changes(
            base=form(self.base),
            new=form(self.new),
            base_valid=form(self.base_valid) > 0,
            new_valid=form(self.new_valid) > 0,
            base_count=form(self.base_count),
            new_count=form(self.new_count),
            split=parts and Split(form(parts.launches), form(parts.latency), form(parts.rest)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Base and new runs, aligned.

    Attributes:
        measure: What is compared.
        by: What makes a row.
        base: The base runs.
        new: The new runs.
        tree: The rows.
        inclusive: Values with those of the rows below.
        own: Values of the rows alone, which add up to the total; None if the metric does not add
            up.
        base_runs: Inclusive values, one line per base run.
        new_runs: The same of the new runs.
        interval: Bounds of the inclusive change; None with one run on each side.
        scaled: Benchmarks that runs called a different number of times; their values are scaled to
            the calls given there.
    """

    measure: Measure
    by: By
    base: tuple[Run, ...]
    new: tuple[Run, ...]
    tree: PairedTree
    inclusive: Changes
    own: Changes | None
    base_runs: Array
    new_runs: Array
    interval: Interval | None
    scaled: tuple[BenchmarkCalls, ...] = ()

    def __len__(self) -> int:
        return len(self.tree)


def compare(base: Sequence[Run], new: Sequence[Run], options: CompareOptions) -> Comparison:
    """Compare new runs with base runs, benchmarks for equally many calls.

    Raises:
        MetricError: A run lacks the metric, or it is not a number.
        UsageError: A side has no run, a run is empty, or units or devices differ.
    """
    if not (base and new):
        raise UsageError("a comparison needs a run on each side")
    prepared = [_prepared(run.profile, options) for run in (*base, *new)]
    profiles: list[Profile] = prepared
    scaled: tuple[BenchmarkCalls, ...] = ()
    if options.metric is None or not is_sample_statistic(options.metric):
        profiles, scaled = with_equal_calls(prepared[: len(base)], prepared[len(base) :])
    runs = [
        replace(run, profile=profile) for run, profile in zip((*base, *new), profiles, strict=True)
    ]
    if not options.ignore_devices:
        check_devices(runs)
    measure = find_measure(runs, _metric(runs, options))
    identity = Identity(options.raw_names, options.ignore_devices)
    first_new = len(base)
    tree = pair(
        profiles[:first_new],
        profiles[first_new:],
        identity,
        weight=_weight(measure, runs),
        # A row that moved from one scope to another changed both.
        follow=options.follow and options.by in (By.PATH, By.KERNEL, By.LINE),
    )
    sides = _Sides(tuple(base), tuple(new), profiles, tree, measure)
    found = _added(sides, options.by) if measure.is_additive else _rated(sides, options.by)
    return replace(found, scaled=scaled)


def reported_metric(metric: str | None, runs: Sequence[Run]) -> str | None:
    """Return what a report compares: the time of the main thread where no device worked.

    Gates compare recorded work, which does not depend on when samples were taken.

    Args:
        metric: What was asked for, None for the default.
        runs: All runs.
    """
    is_default = metric is None and all(is_timed_by_host(run.profile) for run in runs)
    return HOST_WALL if is_default else metric


def _metric(runs: Sequence[Run], options: CompareOptions) -> str | None:
    """Return what to compare; lines have only samples."""
    if options.metric is not None or options.by is not By.LINE:
        return options.metric
    for run in runs:
        if not has_samples(run.profile):
            raise UsageError(
                f"{run.source!a} has no PC samples, which --by line needs: record them with "
                "`proton run -m pcsampling`, or name another metric with -m"
            )
    return ALL


def _prepared(profile: Profile, options: CompareOptions) -> Profile:
    if options.metric is not None and is_of_host(options.metric.strip().lower()):
        profile = with_measured_times(profile)
    shown = fold_trials(drop_metadata(profile))
    if options.fold_frames:
        shown = fold_library_frames(fold_nested(shown, counted=False), counted=False)
    if options.fold_steps:
        shown = fold_steps(shown, counted=False)
    if options.fold_layers:
        shown = fold_layers(shown)
    return with_self_times(shown) if options.self_times else shown


def _weight(measure: Measure, runs: Sequence[Run]) -> str:
    if measure.has_latency:
        return measure.source
    try:
        return find_measure(runs, None).source
    except UsageError:
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    base: tuple[Run, ...]
    new: tuple[Run, ...]
    profiles: list[Profile]
    tree: PairedTree
    measure: Measure

    @property
    def is_single(self) -> bool:
        return len(self.profiles) == 2

    def own_values(self, metric: str) -> tuple[Array, Mask]:
        """Return the value of each run on each row, and whether there is one."""
        values, valid = [], []
        for profile, places in zip(self.profiles, self.tree.places, strict=True):
            column = profile.columns.get(metric)
            if column is None or not column.kind.is_number:
                values.append(np.zeros(len(self.tree), dtype=np.int64))
                valid.append(np.zeros(len(self.tree), dtype=np.bool_))
                continue
            placed = sum_column(column, places, len(self.tree))
            values.append(placed.values)
            valid.append(placed.valid)
        self.check_finite(values, valid, metric=metric, tree=self.tree)
        stacked = np.stack(values)
        if stacked.dtype.kind == "i" and bool((np.abs(stacked.astype("f8")) >= _LARGEST).any()):
            stacked = stacked.astype(np.float64)
        return stacked, np.stack(valid)

    def check_finite(
        self, values: Iterable[Array], valid: Iterable[Mask], *, metric: str, tree: PairedTree
    ) -> None:
        """Check that no value of a run is NaN or infinite: it has no difference from another.

        Raises:
            UsageError: One is; the message names its row.
        """
        for run, own, has in zip((*self.base, *self.new), values, valid, strict=True):
            # Of a row and those above it, which add it up, the row is the last.
            for row in np.flatnonzero(has & ~np.isfinite(own))[-1:].tolist():
                path = " > ".join(tree.path(row)) or "the whole run"
                raise UsageError(
                    f"{run.source!a}: {metric} of {path!a} is {own[row]}, which cannot be "
                    "compared; record that run again, or compare another metric with -m"
                )

    def means(self, values: Array) -> tuple[Array, Array]:
        """Return the means of both sides; whole numbers of single runs are kept."""
        base, new = np.split(values, [len(self.base)])
        if self.is_single:
            return base[0], new[0]
        return base.mean(axis=0), new.mean(axis=0)

    def any_valid(self, valid: Mask) -> tuple[Mask, Mask]:
        base, new = np.split(valid, [len(self.base)])
        return base.sum(axis=0) > 0, new.sum(axis=0) > 0


def _comparison(
    sides: _Sides, by: By, tree: PairedTree, *, inclusive: Changes, own: Changes | None, runs: Array
) -> Comparison:
    base_runs, new_runs = np.split(runs, [len(sides.base)])
    return Comparison(
        measure=sides.measure,
        by=by,
        base=sides.base,
        new=sides.new,
        tree=tree,
        inclusive=inclusive,
        own=own,
        base_runs=base_runs,
        new_runs=new_runs,
        interval=mean_difference(base_runs, new_runs),
    )


# -- what adds up --------------------------------------------------------------------------------
def _added(sides: _Sides, by: By) -> Comparison:
    """Compare values that add up to the total."""
    recorded, valid = sides.own_values(sides.measure.source)
    counts, counted = sides.own_values(_COUNT)
    if not all(profile.has_numbers(_COUNT) for profile in sides.profiles):
        counts = np.zeros_like(counts)
    fine = _changes(sides, (recorded, valid), counts)
    places = break_down(sides.tree, by, (valid | counted).sum(axis=0) > 0)
    tree, total = places.tree, len(places.tree)
    sums = SubtreeSums(tree.parents)

    def coarse(values: Array) -> Array:
        return grouped(values, places.places, total)

    own = fine.mapped(coarse)
    runs = np.stack([sums.of(coarse(line)) for line in recorded])
    return _comparison(sides, by, tree, inclusive=own.mapped(sums.of), own=own, runs=runs)


def _changes(sides: _Sides, recorded: tuple[Array, Mask], counts: Array) -> Changes:
    base, new = sides.means(recorded[0])
    base_valid, new_valid = sides.any_valid(recorded[1])
    base_count, new_count = sides.means(counts)
    parts = None
    if sides.measure.has_latency and counts.any():
        parts = split(base, new, base_count=base_count, new_count=new_count)
    return Changes(base, new, base_valid, new_valid, base_count, new_count, parts)


def without_rows(comparison: Comparison, left_out: Mask) -> Comparison:
    """Return the comparison as if these rows had no values, also in the sums above them.

    Args:
        comparison: The comparison.
        left_out: Which rows; with each row all rows below it.
    """
    if not left_out.any():
        return comparison
    kept = ~left_out

    def of_kept(values: Array) -> Array:
        return np.where(kept, values, 0)  # which counts as none

    if comparison.own is None:
        return replace(comparison, inclusive=comparison.inclusive.mapped(of_kept))
    sums = SubtreeSums(comparison.tree.parents)
    outermost = left_out & kept[comparison.tree.parents]
    sides = [
        np.stack([np.where(kept, line - sums.of(np.where(outermost, line, 0)), 0) for line in runs])
        for runs in (comparison.base_runs, comparison.new_runs)
    ]
    own = comparison.own.mapped(of_kept)
    return replace(
        comparison,
        own=own,
        inclusive=own.mapped(sums.of),
        base_runs=sides[0],
        new_runs=sides[1],
        interval=mean_difference(*sides),
    )


# -- what does not add up ------------------------------------------------------------------------
def _rated(sides: _Sides, by: By) -> Comparison:
    """Compare rates, averages and shares: each is computed for the combined rows."""
    measured = np.zeros(len(sides.tree), dtype=np.bool_)
    for profile, places in zip(sides.profiles, sides.tree.places, strict=True):
        measured[places[profile.has_values()]] = True
    tree = break_down(sides.tree, by, measured).tree
    sampled = is_sample_statistic(sides.measure.name)
    asked = [sides.measure.name]
    prepared = [prepare(profile, asked) for profile in sides.profiles]
    found = [
        values_of(_laid_out(profile, tree, places, with_samples=sampled), asked)[0]
        for profile, places in zip(prepared, tree.places, strict=True)
    ]
    valid = np.stack([each.valid for each in found])
    values = np.stack([np.where(each.valid, each.values, 0).astype(np.float64) for each in found])
    sides.check_finite(values, valid, metric=sides.measure.name, tree=tree)
    base, new = (_valid_mean(*each) for each in _halves(values, valid, len(sides.base)))
    base_valid, new_valid = sides.any_valid(valid)
    nothing = np.zeros(len(tree))
    changes = Changes(base, new, base_valid, new_valid, nothing, nothing)
    runs = np.where(valid, values, np.nan)
    return _comparison(sides, by, tree, inclusive=changes, own=None, runs=runs)


def _halves(values: Array, valid: Mask, first_new: int) -> list[tuple[Array, Mask]]:
    return [(values[:first_new], valid[:first_new]), (values[first_new:], valid[first_new:])]


def _valid_mean(values: Array, valid: Mask) -> Array:
    counts = np.maximum(valid.sum(axis=0), 1)
    mean: Array = values.sum(axis=0) / counts
    return mean


def _laid_out(
    profile: Profile, tree: PairedTree, places: Indexes, *, with_samples: bool
) -> Profile:
    """Return a run with the rows of the union; rows that became one are summed."""
    total = len(tree)
    devices = np.full(total, -1, dtype="<i4")
    devices[places] = profile.device_rows
    columns = {
        name: sum_column(column, places, total)
        for name, column in profile.columns.items()
        if column.kind.is_number
    }
    return replace(
        profile,
        strings=tree.strings,
        parents=tree.parents,
        frames=tree.frames(),
        kinds=tree.kinds,
        device_rows=devices,
        variant_rows=np.full(total, -1, dtype="<i4"),
        variants=(),
        columns=columns,
        distributions=_placed_samples(profile, places) if with_samples else {},
    )


def _placed_samples(profile: Profile, places: Indexes) -> dict[str, DistributionTable]:
    """Return the samples of the rows of the union."""
    found = {}
    for name, table in profile.distributions.items():
        parts: dict[int, list[Distribution]] = {}
        for row, samples in table:
            parts.setdefault(int(places[row]), []).append(samples)
        merged = {place: Distribution.merged(each) for place, each in parts.items()}
        found[name] = DistributionTable.from_mapping(merged)
    return found
