"""The call-path tree of one run: flat arrays in pre-order, one column per metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.model import preorder
from proton_bench.model.arrays import Array, Indexes, Integers, Mask
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.distribution_table import SUM_ERROR, DistributionTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.provenance import Provenance
from proton_bench.support.provided import call

if TYPE_CHECKING:
    import hatchet
    import pandas as pd
    import thicket


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Profile:
    """An immutable call-path tree with metric columns, devices and provenance.

    Rows are in pre-order: row 0 is the root, a parent comes before its children, and the
    subtree of row i is the rows i to ``subtree_end[i]`` (exclusive). A kernel that ran in several
    variants or on several devices has one row for each, siblings with the same name.

    Attributes:
        strings: Distinct texts: names of rows and values of string metrics.
        parents: Row of each row's parent, -1 for the root.
        frames: Index of each row's name in ``strings``.
        kinds: `FrameKind` of each row as uint8.
        device_rows: Index of each row's device in ``devices``, -1 for none.
        variant_rows: Index of each row's variant in ``variants``, -1 for none.
        devices: Devices that rows name.
        variants: Launch variants that rows name.
        columns: Metric columns by full name, such as ``time (ns)``.
        distributions: Distributions by metric name, inflated on first use.
        provenance: The origin of the profile.
        dropped: Lost records by reason.
        device_use: How busy the devices were, in total and for each top-level scope; empty if
            unknown.
        partial: Whether the file was written before the run ended.
        steady: The encoded profile of its steady steps, as the file has it; empty if unknown.
        whole: The run of which this is the mean step; None for a whole run.
        extra: Unknown top-level keys of the file, written back unchanged.
        subtree_end: For each row the row after its last descendant; derived.
    """

    strings: tuple[str, ...]
    parents: Indexes
    frames: Indexes
    kinds: npt.NDArray[np.uint8]
    device_rows: Indexes
    variant_rows: Indexes
    devices: tuple[Device, ...] = ()
    variants: tuple[Variant, ...] = ()
    columns: Mapping[str, MetricColumn] = field(default_factory=dict)
    distributions: Mapping[str, DistributionTable] = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)
    dropped: Mapping[str, int] = field(default_factory=dict)
    device_use: tuple[DeviceUse, ...] = ()
    partial: bool = False
    steady: bytes = b""
    whole: Profile | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    subtree_end: Indexes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "subtree_end", preorder.subtree_ends(self.parents))
        for name in ("columns", "dropped", "extra"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        if isinstance(self.distributions, dict):
            object.__setattr__(self, "distributions", MappingProxyType(dict(self.distributions)))
        for array in self._arrays():
            array.flags.writeable = False

    def __reduce__(self) -> Any:
        """Pickle read-only mappings as plain ones."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        plain = {name: dict(values[name]) for name in ("columns", "distributions", "dropped")}
        return Profile, tuple((values | plain | {"extra": dict(self.extra)}).values())

    def _arrays(self) -> Iterator[Array]:
        yield from (self.parents, self.frames, self.kinds, self.device_rows, self.variant_rows)
        yield self.subtree_end
        for column in self.columns.values():
            yield column.values
            yield column.valid

    def __len__(self) -> int:
        return len(self.parents)

    def __repr__(self) -> str:
        return f"<Profile of {len(self)} rows with {', '.join(self.columns) or 'no metrics'}>"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: a summary and the largest rows."""
        html: str = call("to_html", self)
        return html

    def name(self, row: int) -> str:
        """Return the row's name."""
        return self.strings[int(self.frames[row])]

    def kind(self, row: int) -> FrameKind:
        """Return the row's kind."""
        return FrameKind(self.kinds[row])

    def path(self, row: int) -> tuple[str, ...]:
        """Return the names from below the root down to the row; () for the root."""
        names: list[str] = []
        while row > 0:
            names.append(self.name(row))
            row = int(self.parents[row])
        return tuple(reversed(names))

    def children(self, row: int) -> Iterator[int]:
        """Yield the rows directly below, in order."""
        end = int(self.subtree_end[row])
        child = row + 1
        while child < end:
            yield child
            child = int(self.subtree_end[child])

    def depths(self) -> Indexes:
        """Return for each row the number of rows above it; computed on every call."""
        return preorder.depths(self.parents)

    def device(self, row: int) -> Device | None:
        """Return the device that the row ran on, None for host rows."""
        position = int(self.device_rows[row])
        return self.devices[position] if position >= 0 else None

    def variant(self, row: int) -> Variant | None:
        """Return the launch variant of the row, or None."""
        position = int(self.variant_rows[row])
        return self.variants[position] if position >= 0 else None

    def column(self, metric: str) -> MetricColumn:
        """Return the column with this full name.

        Raises:
            MetricError: The metric does not exist; the message names the existing ones.
        """
        try:
            return self.columns[metric]
        except KeyError:
            known = ", ".join(self.columns) or "none"
            raise MetricError(f"the profile has no metric {metric!r}; it has: {known}") from None

    def inclusive(self, metric: str) -> Array:
        """Return the value of each row in views, int64 or float64 in the metric's unit.

        Inclusive metrics are summed over the subtree, with NaN and infinity as in any sum of
        floats. Exclusive metrics and properties are the row's own values. Missing values count as
        0. Integer sums beyond 64 bits become float64.

        Raises:
            MetricError: The metric does not exist, or its values are not numbers.
        """
        column = self.column(metric)
        if not column.kind.is_number:
            raise MetricError(f"metric {metric!r} holds {column.kind} values, which have no sum")
        values = column.values
        if column.spec.aggregation is not Aggregation.INCLUSIVE:
            return values
        if column.kind is ValueKind.FLOAT or float(np.abs(values.astype("f8")).sum()) >= 2.0**62:
            return preorder.sums(self.parents, values)
        return self._subtree_total(values)

    def has_numbers(self, metric: str) -> bool:
        """Return whether there is a metric of this full name whose values are numbers."""
        column = self.columns.get(metric)
        return column is not None and column.kind.is_number

    def samples(self, metric: str) -> DistributionTable | None:
        """Return the distributions of rows with one sample per call.

        In merged files some calls may lack samples: quantiles of a part of the calls would be
        beside counts and sums of all.

        Args:
            metric: Full name; the result is None without samples of it.
        """
        table = self.distributions.get(metric)
        if table is None:
            return None
        whole = np.zeros(len(self), dtype=np.bool_)
        columns = self.columns.get(metric), self.columns.get("count")
        whole[table.rows] = _is_whole(table, *columns, steps=self._steps())
        return table if bool(whole[table.rows].all()) else table.of_rows(whole)

    def _steps(self) -> int:
        """How many steps the distributions are about, where values are those of one."""
        steps = self.provenance.get("steps")
        count = steps.get("count") if isinstance(steps, Mapping) else None
        return count if type(count) is int and count > 0 else 1

    def covered(self, metric: str) -> Mask:
        """Return for each row whether it or a row below has a value of the metric.

        Raises:
            MetricError: The metric does not exist.
        """
        return self._subtree_total(self.column(metric).valid.astype(np.int64)) > 0

    def has_values(self) -> Mask:
        """Return for each row whether it has a value of any metric of its own."""
        found = np.zeros(len(self), dtype=np.bool_)
        for column in self.columns.values():
            found |= column.valid
        return found

    def _subtree_total(self, values: Integers) -> Integers:
        running = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=running[1:])
        return running[self.subtree_end] - running[:-1]

    def fold_variants(self) -> Profile:
        """Return the profile with siblings equal in name, kind and device summed into one row.

        Vectors are summed by element; missing elements count as 0.
        """
        folded: Profile = call("fold_variants", self)
        return folded

    def fold_below(self, depth: int) -> Profile:
        """Return the profile with rows deeper than ``depth`` summed into their ancestor there."""
        folded: Profile = call("fold_below", self, depth)
        return folded

    @staticmethod
    def merge(profiles: Sequence[Profile]) -> Profile:
        """Return one profile with the rows of all: equal paths are summed.

        Inclusive and exclusive metrics add, the last property wins, distributions merge, lost
        records add. The provenance is that of the first profile with further facts of others, from
        the first start to the last end; its ``parts`` name the process of each profile.

        Raises:
            UsageError: ``profiles`` is empty.
            MetricError: A metric differs in type or aggregation between the profiles.
        """
        merged: Profile = call("merge", profiles)
        return merged

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with one line per row, in pre-order; the index is the row's number.

        Columns are ``name``, ``parent`` (-1 for the root), ``depth``, ``kind``, ``device`` and
        ``variant`` (positions in ``devices`` and ``variants``, missing where none), then each
        metric under its full name with the row's own value, and for inclusive metrics
        ``<name> (inc)`` with the sum over the subtree. Works with pandas 2 and 3.
        """
        frame: pd.DataFrame = call("to_pandas", self)
        return frame

    def to_hatchet(self) -> hatchet.GraphFrame:
        """Return a graph frame of hatchet, inclusive metrics summed up as ``<name> (inc)``.

        Variants of one kernel are one node; levels below 400 are folded, because hatchet walks
        recursively.

        Raises:
            MissingExtraError: hatchet is not installed.
        """
        frame: hatchet.GraphFrame = call("to_hatchet", self)
        return frame

    def to_thicket(self, name: str | None = None) -> thicket.Thicket:
        """Return a thicket of this run; `Thicket.concat_thickets` joins several.

        Args:
            name: Key of the run; by default its host, process and start.

        Raises:
            MissingExtraError: Thicket or hatchet is not installed.
        """
        made: thicket.Thicket = call("to_thicket", self, name)
        return made

    def self_check(self) -> None:
        """Check that all arrays fit one another.

        Raises:
            ProfileFormatError: Something does not fit; the message names it.
        """
        rows = len(self)
        for name, array in (("frames", self.frames), ("kinds", self.kinds)):
            if len(array) != rows:
                raise ProfileFormatError(f"{name} has {len(array)} rows, not {rows}")
        _check_range("frames", self.frames, range(len(self.strings)))
        _check_range("kinds", self.kinds, range(len(FrameKind)))
        for name, table in (("device", self.devices), ("variant", self.variants)):
            array = getattr(self, f"{name}_rows")
            if len(array) != rows:
                raise ProfileFormatError(f"{name} has {len(array)} rows, not {rows}")
            _check_range(name, array, range(-1, len(table)))
        for column in self.columns.values():
            column.self_check(rows)
        for use in self.device_use:
            use.self_check(len(self.devices))


def _check_range(name: str, array: Array, allowed: range) -> None:
    low, high = int(array.min()), int(array.max())
    if low not in allowed or high not in allowed:
        raise ProfileFormatError(
            f"{name} holds {low} to {high}, outside {allowed.start} to {allowed.stop - 1}"
        )


def _is_whole(
    table: DistributionTable, column: MetricColumn | None, calls: MetricColumn | None, *, steps: int
) -> Mask:
    """Return for each distribution whether it covers all of its row's value.

    Args:
        table: The distributions.
        column: The metric; None if the profile lacks it.
        calls: Numbers of calls.
        steps: Values are the mean of so many steps, which the distributions cover.
    """
    whole = np.ones(len(table), dtype=np.bool_)
    if column is None or not column.kind.is_number:
        return whole
    aggregation = column.spec.aggregation
    if aggregation is not Aggregation.PROPERTY:
        own = np.where(column.valid[table.rows], column.values[table.rows].astype("f8"), 0.0)
        own *= steps
        whole &= np.abs(own - table.total) <= SUM_ERROR * (np.abs(own) + np.abs(table.total))
    if aggregation is Aggregation.INCLUSIVE and calls is not None and calls.kind.is_number:
        counted = calls.valid[table.rows]
        whole &= ~counted | (np.rint(calls.values[table.rows] * steps) == table.n)
    return whole
