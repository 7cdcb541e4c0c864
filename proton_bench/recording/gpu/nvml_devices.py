"""The GPUs that a process uses, as NVIDIA's management library knows them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from proton_bench.recording.gpu.nvidia import has_driver
from proton_bench.recording.native import native


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """A GPU of this process.

    Attributes:
        handle: The library's handle; None if it does not know the GPU.
        is_slice: It is a part of a GPU (MIG).
    """

    handle: Any
    is_slice: bool = False


class NvmlDevices:
    """GPUs by their number in CUDA, matched by UUID because the library numbers them differently.

    This starts neither CUDA nor a GPU: a GPU is known once the program has used it. Only one thread
    may use it at a time.

    Attributes:
        nvml: The library; None while it is not open.
        missing: Why it cannot be opened, "" if it can or was not tried.
    """

    def __init__(self) -> None:
        self.nvml: Any = None
        self.missing = "" if has_driver() else "no NVIDIA driver"
        self._known: dict[int, NvmlDevice] = {}

    def open(self) -> bool:
        """Open the library; a failure is final."""
        if self.nvml is not None or self.missing:
            return self.nvml is not None
        try:
            import pynvml
        except ImportError:
            self.missing = "the package nvidia-ml-py is not installed"
            return False
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            self.missing = f"NVML does not start: {error}"
            return False
        self.nvml = pynvml
        return True

    def find(self, ordinal: int) -> NvmlDevice | None:
        """Return a GPU by its number in CUDA, or None if it may become known later."""
        known = self._known.get(ordinal)
        if known is not None:
            return known
        uuid = native.cuda_uuid(ordinal) if self.open() else ""
        if not uuid:
            return None  # a device of a recording, or CUDA is about to start
        return self._known.setdefault(ordinal, self._device(uuid))

    def close(self) -> None:
        """Release the library."""
        nvml, self.nvml = self.nvml, None
        self._known.clear()
        if nvml is not None:
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlShutdown()

    def _device(self, uuid: str) -> NvmlDevice:
        # The driver calls a slice of a GPU "GPU-...", too.
        names = {uuid: uuid.startswith("MIG-"), uuid.replace("GPU-", "MIG-", 1): True}
        for name, is_slice in names.items():
            with contextlib.suppress(self.nvml.NVMLError):
                return NvmlDevice(self.nvml.nvmlDeviceGetHandleByUUID(name), is_slice)
        return NvmlDevice(None)
