"""Memory of the device for buffers that Python reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from proton_bench import _native
from proton_bench.recording.context.metric import own_operators

__all__ = ["DeviceMemory", "TorchMemory"]


class DeviceMemory(Protocol):
    """Memory of the current device, from torch."""

    def allocate(self, size: int) -> Any:
        """Return zeroed memory with ``data_ptr()``, in the order of the current stream."""

    def fetch(self, memory: Any) -> memoryview:
        """Wait for the memory, and return its bytes."""


class TorchMemory:
    """Memory of torch's allocator."""

    def allocate(self, size: int) -> Any:
        """Return zeroed memory."""
        import torch

        with _unseen():
            return torch.zeros(size, dtype=torch.uint8, device="cuda")

    def fetch(self, memory: Any) -> memoryview:
        """Wait for the memory, and return its bytes."""
        with _unseen():
            return memoryview(memory.cpu().numpy())


@contextmanager
def _unseen() -> Iterator[None]:
    """Keep work of this thread out of the tree, because it is not the target's."""
    _native.mute_launches()
    try:
        with own_operators():
            yield
    finally:
        _native.unmute_launches()
