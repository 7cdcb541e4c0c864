"""A profile for hatchet's formats: folded rows, each with its metrics by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proton_bench.formats.hatchet.tree import DEVICE_ID, DEVICE_TYPE, EXCLUSIVE_NAMES, upstream_name
from proton_bench.model import preorder
from proton_bench.model.arrays import Indexes, Mask
from proton_bench.model.device import Device
from proton_bench.model.frame import CAPTURED_NAME, FrameKind, StringTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import sum_column
from proton_bench.model.steps import SAMPLED

TRIALS = "<autotune>"  # the frame of an autotuner's trials, which upstream does not have
_NOT_RECORDED = "<not recorded>"
# A row with any other metric was given values by the program.
_RECORDED = frozenset({"time (ns)", "count", WALL})
_METADATA, _HELPER = "__proton_launch_metadata", "<metric>"
_SAMPLES = "num_samples"
_NONE = -1


def upstream_tree(profile: Profile) -> Profile:
    """Return the same numbers in the rows of upstream.

    - Siblings are distinguished by their names alone; of several devices the last one stays.
    - Trials of an autotuner are among the other launches, lines of code directly below kernels.
    - What a launch of a graph ran comes after the other children of its scope, and captured work
      has a row without numbers in its old place.
    - Values that were given under capture have the row of the kernel that would have kept them.
    - Samples of the host are left out.
    """
    columns = {name: each for name, each in profile.columns.items() if name not in SAMPLED}
    return _Reshaping(replace(profile, columns=columns)).run()


class _Reshaping:
    """Rows of the new tree by parent and name, in the order in which they appear."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._strings = StringTable()
        numbers = [self._strings.index(text) for text in profile.strings]
        self._names = [numbers[frame] for frame in profile.frames.tolist()]
        self._captured_at = self._strings.index(CAPTURED_NAME)
        self._not_recorded = self._strings.index(_NOT_RECORDED)
        self._trials = self._strings.index(TRIALS)
        self._kinds = profile.kinds.tolist()
        self._parents = profile.parents.tolist()
        self._devices = profile.device_rows.tolist()
        self._is_leaf = (profile.subtree_end == np.arange(1, len(profile) + 1)).tolist()
        given = np.zeros(len(profile), dtype=np.bool_)
        for name, column in profile.columns.items():
            if name not in _RECORDED:
                given |= column.valid
        self._is_given = given.tolist()
        self._shown = [_NONE] * len(profile)  # of each row, that of the new tree
        self._captured = [False] * len(profile)
        self._live = [_NONE] * len(profile)  # of what was captured, the new row where that was
        self._rows: dict[tuple[int, int], int] = {(_NONE, self._names[0]): 0}
        self._device_of: dict[int, int] = {}
        self._entered: dict[tuple[int, int], int] = {}  # new rows that were not captured

    def run(self) -> Profile:
        self._shown[0] = 0
        rows = range(1, len(self._profile))
        for row in rows:
            is_graph = self._kinds[row] == FrameKind.GRAPH and self._names[row] == self._captured_at
            self._captured[row] = self._captured[self._parents[row]] or is_graph
        under_capture = [row for row in rows if self._captured[row]]
        for row in rows:
            if not self._captured[row]:
                self._place(row)
        for row in under_capture:
            self._find_live(row)
        for row in under_capture:
            self._place(row)
        return self._built()

    def _row(self, parent: int, name: int) -> int:
        return self._rows.setdefault((parent, name), len(self._rows))

    def _place(self, row: int) -> None:
        parent, kind = self._parents[row], self._kinds[row]
        is_captured, name = self._captured[row], self._names[row]
        is_host = self._shown[parent] == _NONE or (
            kind == FrameKind.PYTHON and parent == 0 and name == self._not_recorded
        )
        if is_host or (is_captured and kind == FrameKind.COPY):
            return  # samples of the host, and copies of graphs
        is_trials = kind == FrameKind.STATE and name == self._trials
        # It stands for the launch in a timeline.
        is_call = is_captured and kind == FrameKind.GRAPH and self._is_leaf[row]
        if is_trials or is_call or kind == FrameKind.TEST:
            self._shown[row] = self._shown[parent]
            return
        above = parent
        while kind == FrameKind.LINE and self._kinds[above] == FrameKind.LINE:
            above = self._parents[above]
        shown = self._shown[row] = self._row(self._shown[above], name)
        if not is_captured:
            self._entered.setdefault((self._shown[above], name), shown)
        if self._devices[row] >= 0:
            self._device_of[shown] = self._devices[row]
        if is_captured and self._is_given[row]:
            self._add_helper(row)

    def _add_helper(self, row: int) -> None:
        """Distinguish helpers of a kernel's launch by the name that it was compiled under."""
        metadata, helper = self._strings.index(_METADATA), self._strings.index(_HELPER)
        if self._kinds[row] != FrameKind.KERNEL:
            self._row(self._row(self._shown[row], metadata), helper)
            return
        name, variant = self._names[row], int(self._profile.variant_rows[row])
        if variant >= 0 and self._profile.variants[variant].raw_name:
            name = self._strings.index(self._profile.variants[variant].raw_name)
        above = self._row(self._shown[self._parents[row]], metadata)
        self._row(self._row(above, name), helper)

    def _find_live(self, row: int) -> None:
        # Scopes of a capture in another phase do not exist, and neither do its frames.
        if self._kinds[row] == FrameKind.GRAPH:
            self._live[row] = 0
            return
        above = self._live[self._parents[row]]
        if above == _NONE:
            return
        if self._kinds[row] == FrameKind.KERNEL:
            self._row(above, self._names[row])
            return
        self._live[row] = self._entered.get((above, self._names[row]), _NONE)

    def _built(self) -> Profile:
        total = len(self._rows)
        parents = np.array([parent for parent, _ in self._rows], dtype="<i4")
        frames = np.array([name for _, name in self._rows], dtype="<i4")
        places = preorder.positions(parents)
        order = np.argsort(places)
        parents = np.where(parents[order] >= 0, places[parents[order]], -1).astype("<i4")
        shown = np.array(self._shown, dtype="<i4")
        target = np.where(shown >= 0, places[shown], 0).astype("<i4")
        devices, device_rows = self._used_devices(places, total)
        kinds = np.zeros(total, dtype=np.uint8)
        kinds[0] = FrameKind.ROOT
        return replace(
            self._profile,
            strings=self._strings.texts(),
            parents=parents,
            frames=frames[order],
            kinds=kinds,
            device_rows=device_rows,
            variant_rows=np.full(total, -1, dtype="<i4"),
            devices=devices,
            variants=(),
            columns={each.spec.name: each for each in self._columns(shown >= 0, target, total)},
            distributions={},
        )

    def _used_devices(self, places: Indexes, total: int) -> tuple[tuple[Device, ...], Indexes]:
        numbers: dict[int, int] = {}
        rows = np.full(total, -1, dtype="<i4")
        for row, device in self._device_of.items():
            rows[places[row]] = numbers.setdefault(device, len(numbers))
        return tuple(self._profile.devices[device] for device in numbers), rows

    def _columns(self, is_shown: Mask, target: Indexes, total: int) -> Iterator[MetricColumn]:
        for name, column in self._profile.columns.items():
            kept = replace(column, valid=column.valid & is_shown)
            if not column.kind.is_vector:
                absent = column.kind.dtype.type(-1 if column.kind is ValueKind.STR else 0)
                kept = replace(kept, values=np.where(kept.valid, column.values, absent))
            summed = sum_column(kept, target, total)
            if name == _SAMPLES:
                # Kernels too short for a sample have the metric; that of others is on their lines.
                is_kernel = (self._profile.kinds == FrameKind.KERNEL) & np.array(self._is_leaf)
                valid = summed.valid.copy()
                valid[target[is_kernel & is_shown]] = True
                summed = replace(summed, valid=valid)
            if summed.valid.any():
                yield summed


# Readers of JSON recurse twice a level; Python 3.11 allows 1000 calls, the program among them.
MAX_DEPTH = 400
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
    has_values: Mask
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
