"""Collecting call paths whose rows repeat: equal paths are one row, and their values are summed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.formats.base import corrupt
from proton_bench.formats.budget import OBJECTS_OF_DEVICE, Limit, take, take_table
from proton_bench.profile.builder import ProfileBuilder
from proton_bench.profile.device import Device, Variant
from proton_bench.profile.frame import FrameKind, StringTable
from proton_bench.profile.metric import Aggregation
from proton_bench.profile.profile import Profile

__all__ = ["PathTree", "Reading"]

TIME = "time (ns)"
COUNT = "count"
WALL = "wall (ns)"
BYTES = "bytes"


@dataclass(slots=True)
class Reading:
    """What a reader learns beside the tree.

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
    """Rows by path. Row 0 is the root; names and variants are given as positions."""

    def __init__(self) -> None:
        self.strings = StringTable()
        self.variants: dict[Variant, int] = {}
        self._rows: dict[tuple[int, int, int, int, int], int] = {}
        self._parents = [-1]
        self._values: dict[str, dict[int, Any]] = {}
        self._aggregations: dict[str, Aggregation] = {}

    def __len__(self) -> int:
        return len(self._parents)

    def row(
        self, parent: int, name: int, kind: FrameKind, *, device: int = -1, variant: int = -1
    ) -> int:
        """Return the row for this child of ``parent``, added when it is new.

        Args:
            parent: Row above.
            name: Position in ``strings``.
            kind: What it stands for.
            device: Number of its device, -1 for none.
            variant: Position in ``variants``, -1 for none.
        """
        key = (parent, name, kind, device, variant)
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = len(self._parents)
            self._parents.append(parent)
        return found

    def top_names(self) -> list[int]:
        """Return for each row the name of the row right below the root that holds it, -1: none."""
        found = [-1]
        for parent, name, *_ in self._rows:
            found.append(name if parent == 0 else found[parent])
        return found

    def variant(self, variant: Variant) -> int:
        """Return the position of the variant, added when it is new."""
        return self.variants.setdefault(variant, len(self.variants))

    def declare(self, metric: str, aggregation: Aggregation) -> None:
        """Say how a metric adds up; see `ProfileBuilder.declare`."""
        self._aggregations[metric] = aggregation

    def add(self, row: int, metric: str, value: int | float) -> None:
        """Add to the value of a metric."""
        cells = self._values.get(metric)
        if cells is None:
            cells = self._values[metric] = {}
        cells[row] = cells.get(row, 0) + value

    def value(self, row: int, metric: str) -> Any:
        """Return the value of a metric so far, None where there is none."""
        return self._values.get(metric, {}).get(row)

    def put(self, row: int, metric: str, value: Any) -> None:
        """Set a value that does not add up."""
        self._values.setdefault(metric, {})[row] = value

    def cells(self) -> Iterator[tuple[str, Aggregation | None, Mapping[int, Any]]]:
        """Yield each metric with how it adds up, if that was said, and its value by row."""
        for metric, cells in self._values.items():
            yield metric, self._aggregations.get(metric), cells

    def build(self, reading: Reading, devices: Mapping[int, Device] | None = None) -> Profile:
        """Return the profile.

        Args:
            reading: Provenance and what was dropped.
            devices: The device of each number that rows name.

        Raises:
            ProfileFormatError: Values of one metric do not fit one another, or 64 bits.
        """
        take_table(len(self), len(self._values))
        take(Limit.OBJECTS, OBJECTS_OF_DEVICE * len(devices or ()))
        builder = ProfileBuilder()
        names, variants = self.strings.texts(), tuple(self.variants)
        known = devices or {}
        for metric, aggregation in self._aggregations.items():
            builder.declare(metric, aggregation)
        for parent, name, kind, device, variant in self._rows:
            builder.add(
                parent,
                names[name],
                FrameKind(kind),
                device=known.get(device),
                variant=variants[variant] if variant >= 0 else None,
            )
        for metric, cells in self._values.items():
            for row, value in cells.items():
                builder.set(row, metric, value)
        try:
            profile = builder.build(
                provenance=reading.provenance, dropped=_fitting(reading.dropped)
            )
            profile.self_check()
        except (MetricError, ProfileFormatError) as error:
            raise corrupt(reading.source, str(error)) from None
        return profile


def _fitting(dropped: dict[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in dropped.items() if count}
