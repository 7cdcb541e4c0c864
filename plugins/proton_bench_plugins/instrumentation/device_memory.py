"""Memory of the device for buffers that Python reads."""

from __future__ import annotations

from typing import Any, Protocol

from proton_bench import _native

__all__ = ["DeviceMemory", "TorchMemory"]


class DeviceMemory(Protocol):
    """Memory of the current device, as torch has it."""

    def allocate(self, size: int) -> Any:
        """Return zeroed memory with ``data_ptr()``, in the order of the current stream."""

    def fetch(self, memory: Any) -> memoryview:
        """Wait for the memory, and return its bytes."""


class TorchMemory:
    """Memory of torch's allocator."""

    def allocate(self, size: int) -> Any:
        """Return zeroed memory."""
        import torch

        _native.mute_ops()
        try:
            return torch.zeros(size, dtype=torch.uint8, device="cuda")
        finally:
            _native.unmute_ops()

    def fetch(self, memory: Any) -> memoryview:
        """Wait for the memory, and return its bytes."""
        _native.mute_ops()
        try:
            return memoryview(memory.cpu().numpy())
        finally:
            _native.unmute_ops()
