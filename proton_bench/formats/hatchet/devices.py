"""Devices in the hatchet formats: a map at the end, and two text metrics on each row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.formats.base import corrupt
from proton_bench.model.device import Device

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


def device_rows(
    cells: Cells, known: dict[DeviceKey, Device], *, total: int
) -> npt.NDArray[np.int32]:
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
