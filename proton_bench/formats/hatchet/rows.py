"""A profile for hatchet's formats: folded rows, each with its metrics by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.formats.hatchet.devices import DEVICE_ID, DEVICE_TYPE
from proton_bench.formats.hatchet.hints import EXCLUSIVE_NAMES
from proton_bench.formats.hatchet.upstream_tree import upstream_tree
from proton_bench.formats.sample_names import upstream_name
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.profile import Profile

# The json module and hatchet's reader, which recurse, fail on trees of about 496 levels.
MAX_DEPTH = 480
_LEVELS_AT_ONCE = 100  # that an encoder recurses into


# Columns of our own, for `.proton` alone; those of stalls are recognized by their beginning.
_OWN = frozenset(
    {
        "launch_latency_sum (ns)", "launch_latency_count", "waiting_kernel",
        "num_not_issued_samples", "instrumented_launches", "recorded_programs", "kept_records",
        "skipped_programs", "corrupt_programs", "lost_records", "unpaired_records",
        "lossy_programs", "lossy_warps",
    }
)  # fmt: skip
_NOT_ISSUED = "not_issued_"
_INSTANCES, _INSTRUMENTED = "instances", "instrumented_launches"  # one is ours beside the other


@dataclass(frozen=True, slots=True, eq=False)
class HatchetRows:
    """The content of both hatchet formats.

    Attributes:
        profile: The profile without variants, at most `MAX_DEPTH` levels below the root.
        cells: For each row its metrics by name, in the order of the names; None means NaN.
        has_values: Whether a row has a metric beside its device.
        aggregations: How metrics add up that have no hint at ROOT; empty in upstream's shape.
    """

    profile: Profile
    cells: list[dict[str, Any]]
    has_values: npt.NDArray[np.bool_]
    aggregations: dict[str, str]

    @classmethod
    def of(
        cls, profile: Profile, *, upstream_shape: bool = False, first: Sequence[str] = ()
    ) -> HatchetRows:
        """Fold the profile and collect its cells.

        Args:
            profile: Profile to write.
            upstream_shape: Have the rows that upstream would have recorded.
            first: Names of metrics that come before the others.
        """
        # The formats have no kinds, so rows that differ only in kind are one row.
        kinds = profile.kinds if upstream_shape else np.zeros(len(profile), dtype=np.uint8)
        shown = replace(profile, columns=_shown_columns(profile), kinds=kinds)
        shown = upstream_tree(shown) if upstream_shape else shown
        folded = shown.fold_variants().fold_below(MAX_DEPTH)
        aggregations = {} if upstream_shape else _aggregations(folded)
        return cls(folded, _cells(folded, first), folded.has_values(), aggregations)

    def nested(self, pack: Callable[[dict[str, Any]], Any] = lambda node: node) -> dict[str, Any]:
        """Return the tree as upstream nests it, keys in its order.

        Args:
            pack: Called with nodes at every hundredth level, for what stands in their place.
        """
        profile = self.profile
        frames = [{"name": name, "type": "function"} for name in profile.strings]
        nodes: list[dict[str, Any]] = [
            {"children": [], "frame": frames[frame], "metrics": cells}
            for frame, cells in zip(profile.frames.tolist(), self.cells, strict=True)
        ]
        for row in np.flatnonzero(profile.frames == _place("", profile.strings)).tolist():
            nodes[row]["name"] = ""  # hatchet treats an empty name as missing and looks beside it
        parents, depths = profile.parents.tolist(), profile.depths().tolist()
        for row in range(len(nodes) - 1, 0, -1):
            node = nodes[row]
            node["children"].reverse()
            is_packed = depths[row] % _LEVELS_AT_ONCE == 0
            nodes[parents[row]]["children"].append(pack(node) if is_packed else node)
        root = nodes[0]
        root["children"].reverse()
        return {"aggregations": self.aggregations, **root} if self.aggregations else root


def _place(text: str, strings: tuple[str, ...]) -> int:
    return strings.index(text) if text in strings else -1


def _shown_columns(profile: Profile) -> dict[str, MetricColumn]:
    """Return the columns that upstream's tools have a use for."""
    own = _OWN | {_INSTANCES} if _INSTRUMENTED in profile.columns else _OWN
    return {
        name: column
        for name, column in profile.columns.items()
        if name not in own and not name.startswith(_NOT_ISSUED)
    }


def losses(profile: Profile) -> tuple[str, ...]:
    """Return messages about changed or missing parts of a hatchet file."""
    notes = [depth_loss(profile)]
    own = [name for name, column in profile.columns.items() if _left_out_at_root(column)]
    if own:
        notes.append(
            f"values of ROOT itself are left out for {', '.join(own)}, because there they would "
            "mark the metric as one to sum; .proton holds them"
        )
    return tuple(filter(None, notes))


def depth_loss(profile: Profile) -> str:
    """Return a message if the tree is deeper than a hatchet file, else ""."""
    depth = int(profile.depths().max())
    if depth <= MAX_DEPTH:
        return ""
    return (
        f"the tree is {depth} levels deep: levels below {MAX_DEPTH} are summed into their "
        "ancestor there; .proton holds them all"
    )


def _left_out_at_root(column: MetricColumn) -> bool:
    return bool(column.valid[0]) and not _is_hinted(column)


def _is_hinted(column: MetricColumn) -> bool:
    # hatchet adds hinted metrics to the 0 at ROOT, which fails for vectors.
    return column.spec.aggregation is Aggregation.INCLUSIVE and column.kind.is_number


def _aggregations(profile: Profile) -> dict[str, str]:
    stated = {}
    for name, column in sorted(profile.columns.items()):
        aggregation = column.spec.aggregation
        is_known = name in EXCLUSIVE_NAMES and aggregation is Aggregation.EXCLUSIVE
        if not is_known and not _is_hinted(column):
            stated[upstream_name(name)] = str(aggregation)
    return stated


def _cells(profile: Profile, first: Sequence[str]) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = [{} for _ in range(len(profile))]
    ranks = {name: rank for rank, name in enumerate(first, start=-len(first))}
    for name in sorted(
        {*profile.columns, DEVICE_ID, DEVICE_TYPE},
        key=lambda name: (ranks.get(name, 0), upstream_name(name)),
    ):
        if name in profile.columns:
            _add_column(cells, profile.columns[name])
        if name in {DEVICE_ID, DEVICE_TYPE}:
            _add_device(cells, profile, name)
    return cells


def _add_device(cells: list[dict[str, Any]], profile: Profile, name: str) -> None:
    texts = [str(device.index) if name == DEVICE_ID else device.kind for device in profile.devices]
    for cell, position in zip(cells, profile.device_rows.tolist(), strict=True):
        if position >= 0:
            cell[name] = texts[position]


def _add_column(cells: list[dict[str, Any]], column: MetricColumn) -> None:
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
    for cell, value, valid in zip(cells, values, column.valid.tolist(), strict=True):
        if valid:
            cell[name] = value
    if _left_out_at_root(column):
        del cells[0][name]
    elif _is_hinted(column) and not column.valid[0]:
        cells[0][name] = 0
