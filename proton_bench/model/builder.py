"""Builds a profile row by row, in any order with parents first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from proton_bench.errors import MetricError, UsageError
from proton_bench.model import preorder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import ROOT_NAME, FrameKind, StringTable, escape_surrogates
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance


class ProfileBuilder:
    """Collects rows and values, then builds the `Profile` in pre-order.

    Row 0, the root, exists from the start. Rows with equal names under one parent stay separate.

    Example::

        builder = ProfileBuilder()
        builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
        test = builder.add(0, "test_matmul", FrameKind.TEST, metrics={"wall (ns)": 900})
        builder.add(test, "matmul", FrameKind.KERNEL, metrics={"time (ns)": 500, "count": 1})
        profile = builder.build()
    """

    def __init__(self, root: str = ROOT_NAME) -> None:
        self._strings = StringTable()
        self._parents = [-1]
        self._frames = [self._strings.index(root)]
        self._kinds = [int(FrameKind.ROOT)]
        self._devices: dict[Device, int] = {}
        self._variants: dict[Variant, int] = {}
        self._device_rows = [-1]
        self._variant_rows = [-1]
        self._aggregations: dict[str, Aggregation] = {}
        self._values: dict[str, dict[int, Any]] = {}
        self._distributions: dict[str, dict[int, Distribution]] = {}

    def __len__(self) -> int:
        return len(self._parents)

    def declare(self, metric: str, aggregation: Aggregation) -> None:
        """Declare how a metric adds up; undeclared numbers are inclusive, texts are properties."""
        self._aggregations[escape_surrogates(metric)] = aggregation

    def add(
        self,
        parent: int,
        name: str,
        kind: FrameKind = FrameKind.UNKNOWN,
        *,
        metrics: Mapping[str, Any] | None = None,
        device: Device | None = None,
        variant: Variant | None = None,
    ) -> int:
        """Add a row below ``parent`` and return its number, valid until `build`.

        Raises:
            UsageError: The parent does not exist.
        """
        row = len(self._parents)
        if not 0 <= parent < row:
            raise UsageError(f"cannot add {name!r} below row {parent}; rows are 0 to {row - 1}")
        self._parents.append(parent)
        self._frames.append(self._strings.index(name))
        self._kinds.append(int(kind))
        self._device_rows.append(self.device(device) if device else -1)
        self._variant_rows.append(
            self._variants.setdefault(variant, len(self._variants)) if variant else -1
        )
        for metric, value in (metrics or {}).items():
            self.set(row, metric, value)
        return row

    def device(self, device: Device) -> int:
        """Return the device's index in the profile, added if it is new."""
        return self._devices.setdefault(device, len(self._devices))

    def set(self, row: int, metric: str, value: Any) -> None:
        """Set the value of a metric on a row: a number, a text or a sequence of numbers."""
        self._values.setdefault(escape_surrogates(metric), {})[row] = value

    def set_distribution(self, row: int, metric: str, distribution: Distribution) -> None:
        """Set the distribution of a metric on a row."""
        self._distributions.setdefault(escape_surrogates(metric), {})[row] = distribution

    def build(
        self,
        *,
        provenance: Mapping[str, Any] | None = None,
        dropped: Mapping[str, int] | None = None,
        partial: bool = False,
    ) -> Profile:
        """Return the profile; the builder may be added to afterwards.

        Raises:
            MetricError: The values of one metric are of different types.
        """
        places = preorder.positions(np.array(self._parents, dtype="<i4"))
        order = np.argsort(places)
        above = np.array(self._parents, dtype="<i4")[order]
        columns = [self._column(metric, places.tolist()) for metric in self._values]
        strings = self._strings.texts()
        return Profile(
            strings=strings,
            parents=np.where(above >= 0, places[above], -1).astype("<i4"),
            frames=_reordered(self._frames, order, "<i4"),
            kinds=_reordered(self._kinds, order, "|u1"),
            device_rows=_reordered(self._device_rows, order, "<i4"),
            variant_rows=_reordered(self._variant_rows, order, "<i4"),
            devices=tuple(self._devices),
            variants=tuple(self._variants),
            columns={column.spec.name: with_strings(column, strings) for column in columns},
            distributions={
                metric: DistributionTable.from_mapping(
                    {int(places[row]): entry for row, entry in entries.items()}
                )
                for metric, entries in self._distributions.items()
            },
            provenance=Provenance(provenance),
            dropped={escape_surrogates(key): n for key, n in (dropped or {}).items()},
            partial=partial,
        )

    def _column(self, metric: str, places: list[int]) -> MetricColumn:
        cells = self._values[metric]
        if any(not 0 <= row < len(places) for row in cells):
            raise MetricError(f"metric {metric!r} was set on a row that does not exist")
        text = any(isinstance(value, str) for value in cells.values())
        default = Aggregation.PROPERTY if text else Aggregation.INCLUSIVE
        return MetricColumn.from_rows(
            MetricSpec(metric, self._aggregations.get(metric, default)),
            [places[row] for row in cells],
            list(cells.values()),
            total=len(places),
            table=self._strings,
        )


def with_strings(column: MetricColumn, strings: tuple[str, ...]) -> MetricColumn:
    """Return the column with the final string table attached, if it holds strings."""
    if column.kind is not ValueKind.STR:
        return column
    return MetricColumn(column.spec, column.kind, column.values, column.valid, strings=strings)


def _reordered(values: Sequence[int], order: Any, dtype: str) -> Any:
    return np.array(values, dtype=dtype)[order]
