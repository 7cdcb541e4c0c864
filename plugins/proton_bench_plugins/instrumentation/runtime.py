"""Runtimes that collect the buffers of launches: the native one, or a mode's own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from proton_bench_plugins.instrumentation.calibration import KERNEL, Calibration
from proton_bench_plugins.instrumentation.compiler.scope_table import KernelScopes
from proton_bench_plugins.instrumentation.settings import Settings

_NARROW_BYTES = 1 << 31


class Runtime(Protocol):
    """Gives each launch a buffer, and collects it when the launch is over."""

    @property
    def allocator(self) -> Callable[..., Any]:
        """Triton's allocator for the buffer of a launch: ``(size, alignment, stream)``."""

    @property
    def launch_exit(self) -> Callable[..., None]:
        """Called by Triton with its metadata after a launch."""

    def start(self) -> None:
        """Begin; on an exception nothing is left switched on."""

    def flush(self) -> None:
        """Deliver the records of launches before this call."""

    def stop(self) -> None:
        """End."""

    def add_kernel(self, function: int, kernel: KernelScopes) -> None:
        """Register a loaded function with records."""

    def add_plain(self, function: int) -> None:
        """Register a loaded function without records."""

    def remove_kernel(self, function: int) -> None:
        """Unregister a function; unknown ones are ignored."""

    def read_records(self, stream: int) -> bytes | None:
        """Wait for the launch that this thread is ending, and return its buffer; None without."""

    def facts(self) -> Mapping[str, Any]:
        """Return facts for the profile's provenance."""


def open_runtime(settings: Settings) -> Runtime:
    """Make the runtime of a mode.

    Args:
        settings: Options of the mode.
    """
    if settings.custom is not None:
        from proton_bench_plugins.instrumentation.value_runtime import ValueRuntime

        return ValueRuntime(settings.custom, settings.byte_limit)
    return NativeRuntime(settings)


class NativeRuntime:
    """The native runtime, which is independent of the compiler.

    Args:
        settings: Options of the mode.
    """

    def __init__(self, settings: Settings) -> None:
        from proton_bench import _native

        self._settings = settings
        self._native = _native.InstrumentationRuntime(
            byte_limit=settings.byte_limit,
            trace=settings.trace,
            addressable_bytes=addressable_bytes(),
        )
        self.allocator: Callable[..., Any] = self._native.allocator
        self.launch_exit: Callable[..., None] = self._native.launch_exit
        self.start = self._native.start
        self.flush = self._native.flush
        self.stop = self._native.stop
        self.add_plain = self._native.add_plain
        self.remove_kernel = self._native.remove_kernel
        self.read_records = self._native.read_records
        self._calibration = Calibration(self._native, _warps_that_record(settings))

    def add_kernel(self, function: int, kernel: KernelScopes) -> None:
        """Register a loaded function with records."""
        layout = native_layout(kernel, self._settings)
        if kernel.name == KERNEL:
            self._calibration.note(function)
            self._native.add_kernel(function, {**layout, "programs": [], "private": True})
            return
        # Measuring compiles and launches a kernel, so do it only if the cost is used.
        if self._settings.deducts_cost and kernel.target.get("backend") == "cuda":
            cost = self._calibration.cost(kernel.mode)
            if cost is not None:
                layout["record_cost"] = cost
        self._native.add_kernel(function, layout)

    def facts(self) -> dict[str, Any]:
        """Return facts for the profile's provenance."""
        return {**self._native.facts(), **self._calibration.facts()}


def _warps_that_record(settings: Settings) -> int:
    """Return a number of warps, a power of two of at least 4, that includes all recording ones."""
    return 1 << max(max(settings.warp_ids, default=0).bit_length(), 2)


def native_layout(kernel: KernelScopes, settings: Settings) -> dict[str, Any]:
    """Return the layout of a kernel for the native runtime.

    Args:
        kernel: The kernel.
        settings: Options of the mode.
    """
    return {
        "name": kernel.name,
        "scratch_bytes": kernel.profile_scratch_size,
        "warps": kernel.num_warps,
        "warp_ids": list(settings.warp_ids),
        "names": dict(kernel.names),
        "parents": dict(kernel.parents),
        "programs": list(settings.cta),
        "short_clock": not settings.wide_clock,
    }


def addressable_bytes() -> int:
    """Return the most bytes that a kernel of this Triton can address; 0 for any number.

    Before 3.9 a kernel multiplies its program's number by the size of a block in 32 bits, of which
    one is the sign. Triton is not imported to distinguish the two.
    """
    found = importlib.util.find_spec("triton")
    folders = (found.submodule_search_locations if found else None) or []
    is_wide = any(Path(folder, "_instrumentation.py").exists() for folder in folders)
    return 0 if is_wide else _NARROW_BYTES
