"""A profile for hatchet's formats: folded rows, each with its metrics by name."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proton_bench.formats.hatchet.devices import DEVICE_ID, DEVICE_TYPE
from proton_bench.formats.hatchet.hints import assumed_aggregations
from proton_bench.formats.sample_names import upstream_name
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.profile import Profile

__all__ = ["MAX_DEPTH", "HatchetRows", "losses"]

# The json module and hatchet's reader, which recurse, fail on trees of about 496 levels.
MAX_DEPTH = 480


@dataclass(frozen=True, slots=True, eq=False)
class HatchetRows:
    """The content of both hatchet formats.

    Attributes:
        profile: The profile without variants, at most `MAX_DEPTH` levels below the root.
        cells: For each row name and value of its metrics, in order of names; None means NaN.
        aggregations: Metrics whose aggregation a reader would otherwise guess wrong.
    """

    profile: Profile
    cells: list[list[tuple[str, Any]]]
    aggregations: dict[str, str]

    @classmethod
    def of(cls, profile: Profile) -> HatchetRows:
        """Fold the profile and collect its cells."""
        # The formats have no kinds, so rows that differ only in kind are one row.
        unlike = replace(profile, kinds=np.zeros(len(profile), dtype=np.uint8))
        folded = unlike.fold_variants().fold_below(MAX_DEPTH)
        return cls(folded, _cells(folded), _aggregations(folded))


def losses(profile: Profile) -> tuple[str, ...]:
    """Return messages about changed or missing parts of a hatchet file."""
    notes: list[str] = []
    depth = int(profile.depths().max())
    if depth > MAX_DEPTH:
        notes.append(
            f"the tree is {depth} levels deep: levels below {MAX_DEPTH} are summed into their "
            "ancestor there; .proton holds them all"
        )
    own = [name for name, column in profile.columns.items() if _left_out_at_root(column)]
    if own:
        notes.append(
            f"values of ROOT itself are left out for {', '.join(own)}, because there they would "
            "mark the metric as one to sum; .proton holds them"
        )
    return tuple(notes)


def _left_out_at_root(column: MetricColumn) -> bool:
    return bool(column.valid[0]) and not _is_hinted(column)


def _is_hinted(column: MetricColumn) -> bool:
    # hatchet adds hinted metrics to the 0 at ROOT, which fails for vectors.
    return column.spec.aggregation is Aggregation.INCLUSIVE and column.kind.is_number


def _aggregations(profile: Profile) -> dict[str, str]:
    columns = profile.columns
    hinted = frozenset(name for name, column in columns.items() if _is_hinted(column))
    assumed = assumed_aggregations({name: c.kind for name, c in columns.items()}, hinted)
    return {
        upstream_name(name): str(columns[name].spec.aggregation)
        for name in sorted(columns)
        if columns[name].spec.aggregation is not assumed[name]
    }


def _cells(profile: Profile) -> list[list[tuple[str, Any]]]:
    cells: list[list[tuple[str, Any]]] = [[] for _ in range(len(profile))]
    names = sorted({*profile.columns, DEVICE_ID, DEVICE_TYPE}, key=upstream_name)
    for name in names:
        if name in {DEVICE_ID, DEVICE_TYPE}:
            _add_device(cells, profile, name)
        else:
            _add_column(cells, profile.columns[name])
    return cells


def _add_device(cells: list[list[tuple[str, Any]]], profile: Profile, name: str) -> None:
    texts = [
        (name, str(device.index) if name == DEVICE_ID else device.kind)
        for device in profile.devices
    ]
    for row, position in enumerate(profile.device_rows.tolist()):
        if position >= 0:
            cells[row].append(texts[position])


def _add_column(cells: list[list[tuple[str, Any]]], column: MetricColumn) -> None:
    name = upstream_name(column.spec.name)
    values: list[Any] = column.to_list()
    if column.kind is ValueKind.FLOAT:
        # JSON has neither NaN nor infinity; a row without a value has None here too.
        values = [v if v is not None and math.isfinite(v) else None for v in values]
    elif column.kind is ValueKind.FLOAT_VECTOR:
        values = [
            [v if math.isfinite(v) else None for v in value] if value is not None else None
            for value in values
        ]
    for row, valid in enumerate(column.valid.tolist()):
        if valid:
            cells[row].append((name, values[row]))
    if _left_out_at_root(column):
        cells[0].pop()
    elif _is_hinted(column) and not column.valid[0]:
        cells[0].append((name, 0))
