"""Collects repeated call paths: equal paths are one row, and their values are summed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.formats.base import corrupt
from proton_bench.formats.limits import take_table
from proton_bench.model import preorder
from proton_bench.model.arrays import Indexes, Integers
from proton_bench.model.builder import with_strings
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import ROOT_NAME, FrameKind, StringTable, escape_surrogates
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

TIME = "time (ns)"
COUNT = "count"
RANGES = "range_count"
BYTES = "bytes"
HOST = -2  # number of the device of what ran on host threads
_HOST_DEVICE = Device("CPU", 0)


@dataclass(slots=True)
class Reading:
    """Results of a reader beside the tree.

    Attributes:
        source: Name of the file, for messages.
        provenance: Facts about the run.
        dropped: Records that could not be placed, by reason.
    """

    source: str
    provenance: dict[str, Any] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str, count: int = 1) -> None:
        """Count records that could not be placed."""
        self.dropped[reason] = self.dropped.get(reason, 0) + count


class PathTree:
    """Rows by path. Row 0 is the root; names and variants are indexes."""

    def __init__(self) -> None:
        self.strings = StringTable()
        self.variants: dict[Variant, int] = {}
        self._rows: dict[tuple[int, int, int, int, int], int] = {}
        self._parents = [-1]
        self._values: dict[str, dict[int, Any]] = {}
        self._aggregations: dict[str, Aggregation] = {}

    def __len__(self) -> int:
        return len(self._parents)

    def row(self, parent: int, name: int, kind: int, *, device: int = -1, variant: int = -1) -> int:
        """Return the row for this child of ``parent``, added if it is new.

        Args:
            parent: Row above.
            name: Position in ``strings``.
            kind: Its `FrameKind`.
            device: Number of its device, -1 for none.
            variant: Position in ``variants``, -1 for none.
        """
        key = (parent, name, int(kind), device, variant)  # enumerations hash slowly
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = len(self._parents)
            self._parents.append(parent)
        return found

    def top_names(self) -> list[int]:
        """Return for each row the name of its ancestor right below the root, -1 for none."""
        found = [-1]
        for parent, name, *_ in self._rows:
            found.append(name if parent == 0 else found[parent])
        return found

    def variant(self, variant: Variant) -> int:
        """Return the index of the variant, added if it is new."""
        return self.variants.setdefault(variant, len(self.variants))

    def add_range(self, row: int, duration_ns: int, count: int = 1) -> None:
        """Add host ranges to their row: their duration and number."""
        for metric, value in ((WALL, duration_ns), (RANGES, count)):
            self.declare(metric, Aggregation.EXCLUSIVE)
            self.add(row, metric, value)

    def declare(self, metric: str, aggregation: Aggregation) -> None:
        """Declare how a metric adds up; see `ProfileBuilder.declare`."""
        self._aggregations[metric] = aggregation

    def add(self, row: int, metric: str, value: int | float) -> None:
        """Add to the value of a metric."""
        cells = self._values.get(metric)
        if cells is None:
            cells = self._values[metric] = {}
        cells[row] = cells.get(row, 0) + value

    def value(self, row: int, metric: str) -> Any:
        """Return the value of a metric so far, or None."""
        return self._values.get(metric, {}).get(row)

    def put(self, row: int, metric: str, value: Any) -> None:
        """Set a value that does not add up."""
        self._values.setdefault(metric, {})[row] = value

    def cells(self) -> Iterator[tuple[str, Aggregation | None, Mapping[int, Any]]]:
        """Yield each metric with its declared aggregation, if any, and its value by row."""
        for metric, cells in self._values.items():
            yield metric, self._aggregations.get(metric), cells

    def build(self, reading: Reading, devices: Mapping[int, Device] | None = None) -> Profile:
        """Return the profile.

        Args:
            reading: Provenance and dropped records.
            devices: The device of each number that rows name.

        Raises:
            ProfileFormatError: Values of one metric do not fit one another, or 64 bits.
        """
        take_table(len(self), len(self._values))
        try:
            profile = self._profile(reading, {HOST: _HOST_DEVICE, **(devices or {})})
            profile.self_check()
        except (MetricError, ProfileFormatError) as error:
            raise corrupt(reading.source, str(error)) from None
        return profile

    def _profile(self, reading: Reading, devices: Mapping[int, Device]) -> Profile:
        """Return the profile that `ProfileBuilder` would build, column by column."""
        count = len(self._rows)
        keys = np.fromiter(chain.from_iterable(self._rows), dtype=np.int64, count=5 * count)
        above, names, kinds, device, variant = keys.reshape(count, 5).T
        parents = np.concatenate([[-1], above]).astype("<i4")
        places = preorder.positions(parents)
        order = np.argsort(places)
        table, texts, variants = StringTable(), self.strings.texts(), tuple(self.variants)
        root = table.index(ROOT_NAME)
        used_devices: dict[Device, int] = {}
        used_variants: dict[Variant, int] = {}
        frames = _renumbered(names, lambda number: table.index(texts[number]))
        devices_of_rows = _renumbered(
            device,
            lambda number: (
                used_devices.setdefault(devices[number], len(used_devices))
                if number in devices
                else -1
            ),
        )
        variants_of_rows = _renumbered(
            variant,
            lambda number: (
                used_variants.setdefault(variants[number], len(used_variants))
                if number >= 0
                else -1
            ),
        )
        columns = list(self._columns(places, table))
        strings = table.texts()
        return Profile(
            strings=strings,
            parents=np.where(parents[order] >= 0, places[parents[order]], -1).astype("<i4"),
            frames=np.concatenate([[root], frames])[order].astype("<i4"),
            kinds=np.concatenate([[int(FrameKind.ROOT)], kinds])[order].astype("|u1"),
            device_rows=np.concatenate([[-1], devices_of_rows])[order].astype("<i4"),
            variant_rows=np.concatenate([[-1], variants_of_rows])[order].astype("<i4"),
            devices=tuple(used_devices),
            variants=tuple(used_variants),
            columns={column.spec.name: with_strings(column, strings) for column in columns},
            provenance=Provenance(reading.provenance),
            dropped={escape_surrogates(key): n for key, n in reading.dropped.items() if n},
        )

    def _columns(self, places: Indexes, table: StringTable) -> Iterator[MetricColumn]:
        aggregations = {escape_surrogates(key): each for key, each in self._aggregations.items()}
        values: dict[str, dict[int, Any]] = {}
        for metric, cells in self._values.items():
            values.setdefault(escape_surrogates(metric), {}).update(cells)
        for metric, cells in values.items():
            has_text = str in set(map(type, cells.values()))
            default = Aggregation.PROPERTY if has_text else Aggregation.INCLUSIVE
            rows = np.fromiter(cells, dtype=np.int64, count=len(cells))
            yield MetricColumn.from_rows(
                MetricSpec(metric, aggregations.get(metric, default)),
                places[rows].tolist(),
                list(cells.values()),
                total=len(places),
                table=table,
            )


def _renumbered(numbers: Integers, number_of: Callable[[int], int]) -> Integers:
    """Return new numbers for these, in the order of first appearance."""
    found, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    others = np.zeros(len(found), dtype=np.int64)
    for at in np.argsort(first).tolist():
        others[at] = number_of(int(found[at]))
    return others[places]
