"""A double of the part of torch that times functions on a GPU."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any


class Event:
    def __init__(self, log: list[str]) -> None:
        self._log = log

    def record(self) -> None:
        self._log.append("record")

    def synchronize(self) -> None:
        self._log.append("wait")

    def elapsed_time(self, last: Event) -> float:
        del last
        return 0.25


class Graph:
    def __init__(self, log: list[str]) -> None:
        self._log = log

    def replay(self) -> None:
        self._log.append("replay")


class TorchOnGpu:
    """Logs what it is asked for; ``allocated`` and ``available`` are for tests to set."""

    int8 = "int8"

    def __init__(self) -> None:
        self.log: list[str] = []
        self.allocated = 0
        self.available = True
        self.capturing = False
        self.flushed_bytes = 0
        self.nn = SimpleNamespace(Module=type("Module", (), {}))
        stream = SimpleNamespace(wait_stream=lambda other: None)
        self.cuda = SimpleNamespace(
            is_available=lambda: self.available,
            is_initialized=lambda: True,
            synchronize=lambda: None,
            is_current_stream_capturing=lambda: self.capturing,
            current_device=lambda: 0,
            current_stream=lambda: stream,
            Stream=lambda: stream,
            stream=lambda chosen: nullcontext(),
            Event=lambda enable_timing: Event(self.log),
            CUDAGraph=lambda: Graph(self.log),
            graph=lambda chosen: nullcontext(),
            memory_stats=lambda: {"allocation.all.allocated": self.allocated},
            get_device_properties=lambda index: SimpleNamespace(L2_cache_size=50 << 20),
        )

    def empty(self, size: int, *, dtype: str, device: str) -> Any:
        assert (dtype, device) == ("int8", "cuda")
        self.flushed_bytes = size
        return SimpleNamespace(zero_=lambda: self.log.append("flush"))
