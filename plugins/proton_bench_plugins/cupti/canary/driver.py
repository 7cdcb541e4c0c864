"""Calls of the CUDA driver that is already loaded in this process."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from proton_bench import _native

__all__ = ["RELAXED", "Driver"]

_LIBRARY = "libcuda.so.1"
_MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class Driver:
    """The functions of libcuda; a failing call raises OSError.

    Args:
        library: Library with the functions as attributes.
    """

    def __init__(self, library: Any) -> None:
        self._library = library

    @classmethod
    def loaded(cls) -> Driver | None:
        """Return the driver if it is already loaded, or None."""
        try:
            return cls(ctypes.CDLL(_LIBRARY, mode=os.RTLD_NOW | os.RTLD_NOLOAD))
        except OSError:
            return None

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            OSError: It returned an error.
        """
        code = int(getattr(self._library, name)(*arguments))
        if code != 0:
            raise OSError(f"{name} failed with code {code} of the CUDA driver")

    def quietly(self, name: str, *arguments: Any) -> None:
        """Call a function, ignoring failure."""
        getattr(self._library, name)(*arguments)

    def device_in_use(self) -> int | None:
        """Return the first device with a context, or the only device; None if CUDA was not started.

        A context takes memory of its device, so none is created if there are several devices.
        """
        count = ctypes.c_int()
        if self._library.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return None
        flags, active = ctypes.c_uint(), ctypes.c_int()
        for device in range(count.value):
            references = (ctypes.byref(flags), ctypes.byref(active))
            self.call("cuDevicePrimaryCtxGetState", ctypes.c_int(device), *references)
            if active.value:
                return device
        return 0 if count.value == 1 else None

    def exchange_capture(self, mode: int) -> int:
        """Set this thread's capture mode; return the previous one."""
        return _native.exchange_capture_mode(mode) if mode >= 0 else mode

    def push_context(self, device: int) -> None:
        """Make the primary context current; the target keeps it, so it is not released."""
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(device))
        self.call("cuCtxPushCurrent_v2", context)

    def pop_context(self) -> None:
        """Remove it from this thread."""
        self.quietly("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def load_module(self, ptx: bytes) -> ctypes.c_void_p:
        """Compile PTX and load it."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx)
        return module

    def function(self, module: ctypes.c_void_p, name: bytes) -> ctypes.c_void_p:
        """Return a kernel of a module."""
        found = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(found), module, name)
        return found

    def multiprocessors(self, device: int) -> int:
        """Return how many multiprocessors a device has."""
        count = ctypes.c_int()
        where = (ctypes.c_int(_MULTIPROCESSORS), ctypes.c_int(device))
        self.call("cuDeviceGetAttribute", ctypes.byref(count), *where)
        return count.value

    def allocate(self, size: int) -> ctypes.c_uint64:
        """Return memory of the device."""
        memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        return memory

    def stream(self) -> ctypes.c_void_p:
        """Return a non-blocking stream."""
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), ctypes.c_uint(_NON_BLOCKING))
        return made
