"""Facts of an export of Nsight Systems about the run and its GPUs."""

from __future__ import annotations

from typing import Any

from proton_bench.formats.nsys.schema import NsysTables
from proton_bench.model.device import Device

__all__ = ["GpuTable", "nsys_provenance"]

_EXPORT_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_VERSIONS = {
    "EXPORT_PRODUCT_VERSION": "tool_version",
    "NSIGHT_SYSTEMS_VERSION": "tool_version",
    "EXPORT_SCHEMA_VERSION": "schema_version",
}
_PID_BITS = 0xFFFFFF
_PID_SHIFT = 24
_KIND = "CUDA"
_INT32 = range(2**31)


class GpuTable:
    """The GPUs of an export, with the machine's numbers.

    A process may see other numbers (``CUDA_VISIBLE_DEVICES``); newer exports say which.
    """

    def __init__(self, tables: NsysTables) -> None:
        self._gpus: dict[int, tuple[str, Device]] = {}
        self._used: set[int] = set()
        facts = {"name": None, "smCount": None, "computeMajor": None, "computeMinor": None}
        if tables.has("TARGET_INFO_GPU", "id"):
            for index, name, *numbers in tables.rows("TARGET_INFO_GPU", ("id",), facts):
                if _is_index(index):
                    self._gpus[index] = (str(name or ""), _device(index, numbers))
        self._physical: dict[tuple[Any, Any], int] = {}
        if tables.has("TARGET_INFO_CUDA_DEVICE", "cudaId"):
            for visible, gpu, pid in tables.rows(
                "TARGET_INFO_CUDA_DEVICE", ("cudaId",), {"gpuId": None, "pid": None}
            ):
                if _is_index(visible) and _is_index(gpu) and gpu in self._gpus:
                    self._physical[visible, pid] = gpu

    def number(self, visible: int, global_process: int | None) -> int:
        """Return the machine's number of the device with this number in a process."""
        pid = None if global_process is None else global_process >> _PID_SHIFT & _PID_BITS
        found = self._physical.get((visible, pid), visible)
        if found not in _INT32:
            return -1
        self._used.add(found)
        return found

    def devices(self) -> dict[int, Device]:
        """Return the devices that rows name, by number."""
        return {
            index: self._gpus[index][1] if index in self._gpus else Device(_KIND, index)
            for index in sorted(self._used)
        }

    def names(self) -> dict[str, str]:
        """Return the name of each GPU of the machine."""
        return {f"{_KIND}:{index}": name for index, (name, _) in sorted(self._gpus.items())}


def _is_index(value: Any) -> bool:
    return type(value) is int and value in _INT32


def _device(index: int, facts: list[Any]) -> Device:
    sms, major, minor = facts
    is_known = _is_index(major) and _is_index(minor) and major > 0
    return Device(
        _KIND,
        index,
        arch=f"{major}{minor}" if is_known else "",
        num_sms=sms if _is_index(sms) else 0,
    )


def nsys_provenance(tables: NsysTables, gpus: GpuTable) -> dict[str, Any]:
    """Return tool, versions, host, start and names of GPUs, as far as the file has them."""
    found: dict[str, Any] = {"tool": "nsys", "format": "nsys_sqlite"}
    for table in _EXPORT_TABLES:
        for name, value in _pairs(tables, table):
            if name in _VERSIONS:
                found.setdefault(_VERSIONS[name], str(value))
    for name, value in _pairs(tables, "TARGET_INFO_SYSTEM_ENV"):
        if name == "Hostname":
            found.setdefault("host", str(value))
    if tables.has("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"):
        for (start,) in tables.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)):
            if type(start) is int:
                found.setdefault("start_time_ns", start)
    if gpus.names():
        found["device_names"] = gpus.names()
    return found


def _pairs(tables: NsysTables, table: str) -> list[tuple[Any, Any]]:
    if not tables.has(table, "name") or not tables.has(table, "value"):
        return []
    return [(name, value) for name, value in tables.rows(table, ("name", "value"))]
