"""Nested hatchet nodes to a profile: one walk with a stack, for any depth."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.formats.base import corrupt
from proton_bench.formats.hatchet.devices import device_rows, device_table
from proton_bench.formats.hatchet.hints import assumed_aggregations
from proton_bench.formats.limits import take_table
from proton_bench.formats.sample_names import known_names
from proton_bench.model.builder import with_strings
from proton_bench.model.frame import CAPTURED_NAME, FrameKind, StringTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.profile import Profile

_PYTHON_FRAME = re.compile(r".*:\d+@.*", re.DOTALL)
_Mask = npt.NDArray[np.bool_]


class NodeFrame(msgspec.Struct, gc=False):
    """The frame of a node; other keys of upstream are ignored."""

    name: str


class Node(msgspec.Struct, gc=False):
    """One node of the file."""

    frame: NodeFrame
    metrics: dict[str, Any] = {}
    children: list[Node] = []
    aggregations: dict[str, Aggregation] = {}


class _Rows:
    """The result of the walk."""

    def __init__(self) -> None:
        self.strings = StringTable()
        self.parents: list[int] = []
        self.frames: list[int] = []
        self.cells: dict[str, tuple[list[int], list[Any]]] = {}

    def add(self, node: Node, parent: int) -> int:
        row = len(self.parents)
        self.parents.append(parent)
        self.frames.append(self.strings.index(node.frame.name))
        cells = self.cells
        for name, value in node.metrics.items():
            column = cells.get(name)
            if column is None:
                column = cells[name] = ([], [])
            column[0].append(row)
            column[1].append(value)
        return row

    def walk(self, root: Node) -> None:
        # Children are removed from their node, so that no deep structure remains to be freed.
        todo = [root]
        above = [-1]
        while todo:
            node = todo.pop()
            row = self.add(node, above.pop())
            children = node.children
            if children:
                todo.extend(reversed(children))
                above.extend([row] * len(children))
                node.children = []


def tree_profile(root: Node, devices: dict[str, Any], source: str) -> Profile:
    """Return the profile of a decoded file.

    Args:
        root: The tree; its nodes are consumed.
        devices: The device map, kind to index to facts.
        source: Name of the file, for messages.

    Raises:
        ProfileFormatError: Names, values or devices are not valid.
    """
    hinted = frozenset(name for name, value in root.metrics.items() if value == 0)
    # A 0 at ROOT is a hint, not a value.
    root.metrics = {name: value for name, value in root.metrics.items() if name not in hinted}
    stated = root.aggregations
    rows = _Rows()
    rows.walk(root)
    seen = {*rows.cells, *hinted, *stated}
    rows.cells = known_names(rows.cells, seen)
    hinted, stated = frozenset(known_names(dict.fromkeys(hinted), seen)), known_names(stated, seen)
    total = len(rows.parents)
    take_table(total, len({*rows.cells, *hinted}))
    known = device_table(devices, source)
    placed = device_rows(rows.cells, known, total=total)
    try:
        columns = _columns(rows, hinted | root.metrics.keys(), stated)
    except MetricError as error:
        raise corrupt(source, str(error)) from None
    frames = np.array(rows.frames, dtype="<i4")
    parents = np.array(rows.parents, dtype="<i4")
    strings = rows.strings.texts()
    try:
        profile = Profile(
            strings=strings,
            parents=parents,
            frames=frames,
            kinds=_kinds(strings, frames, parents, marked=_marked(columns, placed)),
            device_rows=placed,
            variant_rows=np.full(total, -1, dtype="<i4"),
            devices=tuple(known.values()),
            columns={column.spec.name: with_strings(column, strings) for column in columns},
        )
        profile.self_check()
    except ProfileFormatError as error:
        raise corrupt(source, str(error)) from None
    return profile


def _columns(
    rows: _Rows, hinted: frozenset[str], stated: dict[str, Aggregation]
) -> list[MetricColumn]:
    total = len(rows.parents)
    built = [
        MetricColumn.from_rows(
            MetricSpec(name), cells[0], cells[1], total=total, table=rows.strings
        )
        for name, cells in rows.cells.items()
    ]
    built.extend(
        MetricColumn(
            MetricSpec(name),
            ValueKind.INT,
            np.zeros(total, dtype="<i8"),
            np.zeros(total, dtype=np.bool_),
        )
        for name in sorted(hinted - rows.cells.keys() - {"device_id", "device_type"})
    )
    assumed = assumed_aggregations({c.spec.name: c.kind for c in built}, hinted)
    return [
        MetricColumn(
            MetricSpec(column.spec.name, stated.get(column.spec.name, assumed[column.spec.name])),
            column.kind,
            column.values,
            column.valid,
            column.offsets,
        )
        for column in built
    ]


def _marked(columns: list[MetricColumn], placed: npt.NDArray[np.int32]) -> tuple[_Mask, _Mask]:
    """Mark rows that ran on a device, and rows that were sampled."""
    ran, sampled = (np.zeros(len(placed), dtype=np.bool_) for _ in range(2))
    for column in columns:
        if column.spec.name == "time (ns)":
            ran = (placed >= 0) & column.valid
        elif column.spec.name == "num_samples":
            sampled = column.valid
    return ran, sampled


def _kinds(
    strings: tuple[str, ...],
    frames: npt.NDArray[np.int32],
    parents: npt.NDArray[np.int32],
    *,
    marked: tuple[_Mask, _Mask],
) -> npt.NDArray[np.uint8]:
    """Infer kinds from upstream's names and metrics; the rest stays unknown."""
    ran, sampled = marked
    used = np.unique(frames).tolist()
    by_name = np.zeros(len(strings), dtype=np.uint8)
    operators = np.zeros(len(strings), dtype=np.bool_)
    for position in used:
        name = strings[position]
        if name == CAPTURED_NAME:
            by_name[position] = FrameKind.GRAPH
        elif _PYTHON_FRAME.fullmatch(name):
            by_name[position] = FrameKind.PYTHON
        operators[position] = name.startswith("aten::")
    kinds = by_name[frames]
    # Only kernels and their lines are sampled; the launch of a kernel may have been missed.
    kinds[ran | (sampled & (kinds == FrameKind.UNKNOWN))] = FrameKind.KERNEL
    kinds[operators[frames]] = FrameKind.OP
    # Source lines of a kernel look like Python frames, but are sampled or below the kernel.
    lines = (kinds == FrameKind.PYTHON) & (sampled | (kinds[parents] == FrameKind.KERNEL))
    if lines.any():
        kinds[lines] = FrameKind.LINE
    lines = kinds == FrameKind.LINE
    above = np.maximum(parents[lines], 0)
    kinds[above[kinds[above] == FrameKind.UNKNOWN]] = FrameKind.KERNEL
    kinds[0] = FrameKind.ROOT
    return kinds
