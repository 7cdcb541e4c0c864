"""Runs of both sides, row by row: launches, totals and times of single launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from proton_bench.analysis.compare.compare import CompareOptions, Comparison, SubtreeSums, compare
from proton_bench.analysis.compare.lineage import moved_scopes
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.select import drop_metadata, drop_trials, shown_rows
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.machine import CANARY_SCOPE, tick_of
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.location import Sample, locate
from proton_bench.model.arrays import Array, Floats, Mask
from proton_bench.model.metrics.counter_columns import INSTRUCTIONS
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.memory import PEAK
from proton_bench.model.metrics.metric import MetricColumn, MetricSpec
from proton_bench.model.preorder import depths, subtree_ends
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import sum_column

# Metrics that are summed over launches, and the prefixes of their recorded metrics.
SUMMED = {
    "cycles": "cycles",
    "instructions": INSTRUCTIONS,
    "mem": "mem",
    "flops": "flops",
    "gbps": "bytes",
}
_NESTED = "wall"  # elapsed time: that of a scope includes that of the scopes in it
_MOST_NAMES = 20_000_000  # in the paths of a report


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """All runs, aligned: one line for each run, base first, one column for each row.

    Attributes:
        comparison: The rows and their states.
        source: Full name of the metric that is compared.
        unit: Its unit.
        totals: Value of each run on each row alone.
        present: Whether a run has the row.
        calls: Launches; 0 for none or unknown.
        canary: Rows of canary kernels, which are not gated.
        quarantined: Rows of quarantined paths and all below them.
        beside: Rows that are not a part of the totals above them: canary kernels, quarantined
            paths, and rounds of benchmarks, whose kernels are counted.
        whole: Whether the runs as a whole are comparable, and not only some paths of them.
        nested: Whether the value of a row includes the rows below it, as elapsed time does.
        inclusive: Value of each run on each row with the rows below it.
    """

    comparison: Comparison
    source: str
    unit: str
    totals: Floats
    present: Mask
    calls: Floats
    canary: Mask
    quarantined: Mask
    beside: Mask
    whole: bool = True
    nested: bool = False
    inclusive: Floats = field(init=False)

    def __post_init__(self) -> None:
        kept = self.present & ~self.beside
        values = np.where(kept, self.totals, 0.0)
        parents = self.comparison.tree.parents
        if self.nested:
            found = _nested(parents, values, kept)
        else:
            sums = SubtreeSums(parents)
            found = np.stack([np.asarray(sums.of(line), dtype=np.float64) for line in values])
        object.__setattr__(self, "inclusive", found)

    @property
    def first_new(self) -> int:
        """Number of base runs."""
        return len(self.comparison.base)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, base first."""
        return (*self.comparison.base, *self.comparison.new)

    def sides(self, values: Array) -> tuple[Array, Array]:
        """Return the lines of the base runs and those of the new ones."""
        return values[: self.first_new], values[self.first_new :]

    def side_shares(self, *, inclusive: bool = False) -> tuple[Floats, Floats]:
        """Return the share of each row in a base run's total, and in a new run's.

        These totals leave quarantined rows out, so the shares of such rows are relative to the
        others.

        Args:
            inclusive: Count the rows below each row too.
        """
        values = np.where(self.canary, 0.0, np.where(self.present, self.totals, 0.0))
        counted = np.where(self.quarantined, 0.0, values)
        sums = self.inclusive[:, :1] if self.nested else counted.sum(axis=1, keepdims=True)
        if inclusive:
            values = self.inclusive
        parts = np.divide(values, sums, out=np.zeros_like(values), where=sums > 0)
        base, new = self.sides(parts)
        return base.mean(axis=0), new.mean(axis=0)

    def shares(self) -> Floats:
        """Return the share of each row in a base run's total; of new rows in a new run's."""
        base, new = self.side_shares()
        found: Floats = np.where(base > 0.0, base, new)
        return found

    def walls(self) -> Floats:
        """Return the elapsed time of scopes in each run, NaN if it was not recorded.

        That of the whole run is the sum of its outermost scopes. A scope whose rows moved to
        another one is one row with it.
        """
        found = self.sums(_NESTED)
        ends = subtree_ends(self.comparison.tree.parents)
        for line in found:
            outermost, end = [], 0
            for row in np.flatnonzero(np.isfinite(line) & ~self.beside).tolist():
                if row >= max(end, 1):
                    outermost.append(row)
                    end = int(ends[row])
            line[0] = line[outermost].sum() if outermost else math.nan
        if not self.nested:
            base, _ = self.sides(found)
            for old, new in self._moved_scopes(np.isfinite(found) & ~self.canary):
                base[:, new], base[:, old] = base[:, old].copy(), math.nan
        return found

    def _moved_scopes(self, known: Mask) -> list[tuple[int, int]]:
        """Return the scopes of the base whose rows are in others now.

        Args:
            known: Which rows have an elapsed time in each run.
        """
        base, new = (each.any(axis=0) for each in self.sides(known))
        alone: tuple[Mask, Mask] = (np.asarray(base & ~new), np.asarray(new & ~base))
        if not all(each.any() for each in alone):
            return []
        tree = self.comparison.tree
        former = tree.parents.copy()
        for run, places in zip(self.comparison.base, tree.places, strict=False):
            own = _shown(run.profile).parents
            former[places] = np.where(own >= 0, places[own], -1)
        names = tree.base.names, tree.new.names
        return moved_scopes((former, tree.parents), names, alone)

    def check_paths(self, rows: Sequence[int] | Array) -> None:
        """Check that the paths of these rows can be written: each names all rows above.

        Raises:
            ProfileFormatError: They have more names than the limit for runs of this size.
        """
        tree = self.comparison.tree
        names = depths(tree.parents)[np.asarray(rows, dtype=np.intp)].sum(dtype=np.int64)
        if names > _MOST_NAMES:
            raise ProfileFormatError(
                f"the paths of the runs have {names} names, more than {_MOST_NAMES}: their scopes "
                "are nested too deeply to write each path; name fewer paths in --threshold"
            )

    def samples(self, rows: Sequence[int]) -> list[list[Sample | None]]:
        """Return the times of single launches of these rows for each run, None if unknown."""
        wanted = {row: place for place, row in enumerate(rows)}
        found: list[list[Sample | None]] = []
        for run, places in zip(self.runs, self.comparison.tree.places, strict=True):
            merged = _distributions(run.profile, self.source, places, wanted=wanted)
            line: list[Sample | None] = [None] * len(rows)
            for place, distribution in merged.items():
                line[place] = Sample.of(distribution)
            found.append(line)
        return found

    def by_statistic(self, statistic: str) -> Measured:
        """Return the runs with totals as if each launch took as long as this statistic says.

        A row counts in full in all runs if one that has it has no times of its single launches:
        the time by the statistic and the full one of other runs would differ without a change.

        Args:
            statistic: See `locate`; "" for the totals as they are.
        """
        if not statistic:
            return self
        rows = np.flatnonzero(self.present.any(axis=0) & ~self.canary)
        factors = np.ones_like(self.totals)
        for line, (run, samples) in enumerate(
            zip(self.runs, self.samples(rows.tolist()), strict=True)
        ):
            tick = tick_of(run.profile, self.unit)
            factors[line, rows] = [_factor(each, statistic, tick) for each in samples]
        alike = (np.isfinite(factors) | ~self.present).all(axis=0)
        return replace(self, totals=self.totals * np.where(alike & self.present, factors, 1.0))

    def peaks(self) -> Floats:
        """Return the memory at the peak of each run that rows and those below them hold.

        It is NaN where it was not recorded, and where a run has nothing.
        """
        own = self.sums(PEAK)
        sums = SubtreeSums(self.comparison.tree.parents)
        kept = np.where(np.isfinite(own) & ~self.canary, own, 0.0)
        found = np.stack([np.asarray(sums.of(line), dtype=np.float64) for line in kept])
        return np.where(found > 0.0, found, np.nan)

    def sums(self, base_name: str) -> Floats:
        """Return the sum of all metrics whose names begin like this, NaN if there is none."""
        total = np.full(self.totals.shape, np.nan)
        for line, (run, places) in enumerate(
            zip(self.runs, self.comparison.tree.places, strict=True)
        ):
            for column in _shown(run.profile).columns.values():
                if not (column.kind.is_number and _is_named(column.spec, base_name)):
                    continue
                placed = sum_column(column, places, len(self.comparison))
                summed = np.nan_to_num(total[line]) + placed.values
                total[line] = np.where(placed.valid, summed, total[line])
        return total


def measure(arrangement: Arrangement, *, ignore_devices: bool, follow: bool = True) -> Measured:
    """Align runs by their most important metric: a time, or the metric closest to it.

    Args:
        arrangement: The runs.
        ignore_devices: Align runs of different devices too.
        follow: Match rows that moved to another scope.

    Raises:
        MetricError: A run lacks the metric, or it is not a number.
        UsageError: A run is empty, units differ, or no metric adds up.
    """
    options = CompareOptions(ignore_devices=ignore_devices, follow=follow)
    # Comparisons keep trials of autotuners as one row; here they count nowhere.
    base, new = (
        [replace(run, profile=_shown(run.profile)) for run in side]
        for side in (arrangement.base, arrangement.new)
    )
    # Extreme times overflow in the intervals of the comparison, which are not used here.
    with np.errstate(over="ignore", invalid="ignore"):
        comparison = compare(base, new, options)
    tree, source = comparison.tree, comparison.measure.source
    nested = MetricSpec(comparison.measure.name).base.lower() == _NESTED
    if not source and not nested:
        raise UsageError(
            f"values of {comparison.measure.name!a} do not add up over a run, so there is "
            "nothing to gate; record times, cycles or counts"
        )
    source = source or comparison.measure.name
    shape = (len(arrangement.base) + len(arrangement.new), len(tree))
    totals, calls = np.zeros(shape), np.zeros(shape)
    present = np.zeros(shape, dtype=np.bool_)
    for line, (run, places) in enumerate(zip((*base, *new), tree.places, strict=True)):
        columns = run.profile.columns
        if source in columns:
            placed = sum_column(columns[source], places, len(tree))
            totals[line], present[line] = placed.values, placed.valid
        if "count" in columns and columns["count"].kind.is_number:
            calls[line] = sum_column(columns["count"], places, len(tree)).values
    canary = _canaries(comparison)
    return Measured(
        comparison=comparison,
        source=source,
        unit=comparison.measure.unit,
        totals=totals,
        present=present,
        calls=calls,
        canary=canary,
        quarantined=np.zeros_like(canary),
        beside=canary,
        nested=nested,
    )


def _factor(sample: Sample | None, statistic: str, tick: float) -> float:
    """Return a statistic as a share of the mean of all launches, NaN if it is unknown."""
    if sample is None or not sample.size:
        return math.nan
    found = locate(sample, statistic, tick=tick, short=False)
    if math.isinf(found.error):
        return math.nan
    return found.value / sample.mean if sample.mean > 0.0 else 1.0


def _nested(parents: Array, values: Floats, known: Mask) -> Floats:
    """Return values that include the rows below; unknown ones are the sums of those below."""
    found = values.copy()
    for row in range(len(parents) - 1, 0, -1):
        above = int(parents[row])
        found[:, above] += np.where(known[:, above], 0.0, found[:, row])
    return found


def _shown(profile: Profile) -> Profile:
    """Return the rows that a gate compares; values that are NaN or infinite are unknown."""
    shown = drop_trials(drop_metadata(profile))
    return replace(shown, columns={name: _known(each) for name, each in shown.columns.items()})


def _known(column: MetricColumn) -> MetricColumn:
    if not column.kind.is_number or np.array_equal(column.known, column.valid):
        return column
    return replace(column, values=np.where(column.known, column.values, 0), valid=column.known)


def _is_named(spec: MetricSpec, base_name: str) -> bool:
    """Distinguish flops, flops16 and flops8 from flops/s: after the name only digits may follow."""
    return spec.base.lower().rstrip("0123456789") == base_name


def _canaries(comparison: Comparison) -> Mask:
    tree = comparison.tree
    found = np.zeros(len(tree), dtype=np.bool_)
    if CANARY_SCOPE not in tree.strings:
        return found
    for row in range(1, len(tree)):
        above = int(tree.parents[row])
        found[row] = found[above] or (above == 0 and tree.name(row) == CANARY_SCOPE)
    return found


def _distributions(
    profile: Profile, metric: str, places: Array, *, wanted: dict[int, int]
) -> dict[int, Distribution]:
    """Return the distributions of the wanted rows by index, with variants merged."""
    table = profile.distributions.get(metric)
    if table is None:
        return {}
    targets = np.full(len(profile), -1, dtype=np.int64)
    targets[shown_rows(profile)] = places
    found: dict[int, Distribution] = {}
    for row in table.rows[np.isin(targets[table.rows], list(wanted))].tolist():
        distribution = table.get(row)
        place = wanted[int(targets[row])]
        if distribution is not None:
            known = found.get(place)
            found[place] = distribution if known is None else known.merge(distribution)
    return found
