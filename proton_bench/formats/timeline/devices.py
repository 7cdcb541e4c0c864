"""The devices of the processes that a timeline holds, as one table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from proton_bench.model.device import UNNAMED_KIND, Device

__all__ = ["SessionDevices"]

_HOST = "CPU"


class SessionDevices:
    """Numbers for devices. Those of two processes are two, whatever each of them calls them."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._devices: dict[int, Device] = {}
        self._taken: dict[str, set[int]] = {}
        self._most: dict[str, int] = {}  # of those that are taken
        self.host = self.number(None, _HOST, 0)

    def number(self, process: Hashable, kind: str, index: int) -> int:
        """Return the number of a device that a process calls so."""
        key = (process, kind, index)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._numbers)
            taken = self._taken.setdefault(kind, set())
            free = index if index not in taken else self._most[kind] + 1
            taken.add(free)
            self._most[kind] = max(free, self._most.get(kind, free))
            self._devices[found] = Device(kind or UNNAMED_KIND, free)
        return found

    def table(self) -> Mapping[int, Device]:
        """Return the device of each number."""
        return self._devices
