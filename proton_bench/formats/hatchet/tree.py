"""Nested hatchet nodes to a profile, and what names, devices and hints in such files stand for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.formats.base import corrupt
from proton_bench.formats.limits import take_table
from proton_bench.model.arrays import Indexes, Mask
from proton_bench.model.builder import with_strings
from proton_bench.model.device import Device
from proton_bench.model.frame import CAPTURED_NAME, FrameKind, StringTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.profile import Profile

# Files of upstream and of ours for its tools misspell a metric of PC samples.
_UPSTREAM = {"stalled_not_selected": "stalled_not_Selected"}
_OURS = {theirs: ours for ours, theirs in _UPSTREAM.items()}


def upstream_name(name: str) -> str:
    """Return upstream's name of a metric."""
    return _UPSTREAM.get(name, name)


def known_names(cells: Mapping[str, Any], taken: Collection[str] = ()) -> dict[str, Any]:
    """Return the same by our names; a misspelled name beside the right one stays.

    Args:
        cells: Anything by the name of a metric.
        taken: Other names that the file holds.
    """
    names = {*cells, *taken}
    return {
        name if _OURS.get(name, name) in names else _OURS.get(name, name): value
        for name, value in cells.items()
    }


# -- devices: a map at the end, and two text metrics on each row -----------------------------------
DEVICE_ID = "device_id"
DEVICE_TYPE = "device_type"
# Instrumented kernels have upstream's enumeration instead of the name.
_NUMBERED = {"1": "CUDA", "2": "HIP"}
_MAX_INDEX = 1 << 20

DeviceKey = tuple[str, int]
Cells = dict[str, tuple[list[int], list[Any]]]


def device_table(devices: dict[str, Any], source: str) -> dict[DeviceKey, Device]:
    """Return the devices of the file's device map by kind and index.

    Raises:
        ProfileFormatError: The map is not kind to index to facts.
    """
    found: dict[DeviceKey, Device] = {}
    for kind, entries in devices.items():
        if not isinstance(entries, dict):
            raise corrupt(source, f"the device map has no devices for {kind[:40]!r}")
        for text, facts in entries.items():
            index = _index(text)
            if index is None or not isinstance(facts, dict):
                raise corrupt(source, f"the device map has a device {str(text)[:40]!r}")
            found[kind, index] = Device(
                kind,
                index,
                arch=str(facts.get("arch", ""))[:64],
                num_sms=_fact(facts, "num_sms", source),
                clock_rate_khz=_fact(facts, "clock_rate", source),
                memory_clock_rate_khz=_fact(facts, "memory_clock_rate", source),
                bus_width_bits=_fact(facts, "bus_width", source),
            )
    return found


def _fact(facts: dict[str, Any], key: str, source: str) -> int:
    value = facts.get(key, 0)
    if not isinstance(value, int | float) or not 0 <= value < 2**63:
        raise corrupt(source, f"a device has the {key} {str(value)[:40]!r}")
    return int(value)


def _index(text: Any) -> int | None:
    try:
        index = int(text)
    except (TypeError, ValueError):
        return None
    return index if 0 <= index < _MAX_INDEX else None


def device_rows(cells: Cells, known: dict[DeviceKey, Device], *, total: int) -> Indexes:
    """Take the two device metrics out of ``cells`` and return each row's device position.

    Devices missing in the map are added to ``known`` with unknown facts. Rows with only one of the
    two metrics, or an unusable one, have no device.
    """
    types = dict(zip(*cells.pop(DEVICE_TYPE, ([], [])), strict=True))
    ids = zip(*cells.pop(DEVICE_ID, ([], [])), strict=True)
    positions = {key: place for place, key in enumerate(known)}
    placed = [-1] * total
    for row, text in ids:
        kind, index = types.get(row), _index(text)
        if not isinstance(kind, str) or index is None:
            continue
        key = (_NUMBERED.get(kind, kind), index)
        if key not in positions:
            positions[key] = len(known)
            known[key] = Device(*key)
        placed[row] = positions[key]
    return np.array(placed, dtype="<i4")


def device_map(devices: Iterable[Device]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the device map in upstream's form and order."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for device in sorted(devices, key=lambda each: (each.kind, str(each.index))):
        found.setdefault(device.kind, {})[str(device.index)] = {
            "clock_rate": device.clock_rate_khz,
            "memory_clock_rate": device.memory_clock_rate_khz,
            "bus_width": device.bus_width_bits,
            "arch": device.arch,
            "num_sms": device.num_sms,
        }
    return found


# -- how metrics add up ----------------------------------------------------------------------------
# These files only hint at it. Upstream writes a 0 for an inclusive metric into the metrics of
# ROOT. Triton 3.6.0 does so for every metric that is not exclusive, properties too; 3.9.0 only
# for its own metrics, so inclusive, exclusive and property metrics of the user cannot be
# distinguished:
# 1. the key `aggregations` of ROOT counts, which we write if the rules below would be wrong;
# 2. texts are properties, and so are the names in `_PROPERTIES`;
# 3. metrics hinted at ROOT are inclusive;
# 4. vectors are inclusive, but never hinted, because hatchet fails to add them to a 0;
# 5. the names in `EXCLUSIVE_NAMES` are exclusive: each row includes the rows below (3.9.0 hints at
#    cycles anyway, which counts nested scopes twice);
# 6. if ROOT hints at some user metric, the others are exclusive (3.6.0 and proton_bench);
# 7. else they are inclusive (3.9.0), as almost all metrics of launch hooks are.
_PROPERTIES = frozenset(
    {
        "device_id", "device_type", "stream_id", "is_metric_kernel", "kernel_id", "kernel_name",
        "block_id", "processor_id", "unit_id", "end_unit_id", "is_async", "start_time (ns)",
        "end_time (ns)", "start_cycle", "end_cycle", "init_time", "pre_final_time",
        "post_final_time",
    }
)  # fmt: skip
EXCLUSIVE_NAMES = frozenset({"cpu_time (ns)", WALL, "cycles", "normalized_cycles"})
_BUILT_IN = frozenset(
    {"count", "time (ns)", "cycles", "normalized_cycles", "num_samples", "num_stalled_samples"}
)


def assumed_aggregations(
    kinds: Mapping[str, ValueKind], hinted: frozenset[str]
) -> dict[str, Aggregation]:
    """Return how each metric adds up by rules 2 to 7, from its type and the hints at ROOT."""
    user_hints = any(not _is_built_in(name) for name in hinted)
    rest = Aggregation.EXCLUSIVE if user_hints else Aggregation.INCLUSIVE
    assumed: dict[str, Aggregation] = {}
    for name, kind in kinds.items():
        if kind is ValueKind.STR or name in _PROPERTIES:
            assumed[name] = Aggregation.PROPERTY
        elif name in hinted or kind.is_vector:
            assumed[name] = Aggregation.INCLUSIVE
        elif name in EXCLUSIVE_NAMES:
            assumed[name] = Aggregation.EXCLUSIVE
        else:
            assumed[name] = rest
    return assumed


def _is_built_in(name: str) -> bool:
    return name in _BUILT_IN or name.startswith("stalled_")


_PYTHON_FRAME = re.compile(r".*:\d+@.*", re.DOTALL)


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


def _marked(columns: list[MetricColumn], placed: Indexes) -> tuple[Mask, Mask]:
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
    frames: Indexes,
    parents: Indexes,
    *,
    marked: tuple[Mask, Mask],
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
