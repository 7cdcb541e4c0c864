"""What takes the buffers of launches and makes records of them; the native one, or a mode's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from proton_bench_plugins.instrumentation.compiler.scope_table import KernelScopes
from proton_bench_plugins.instrumentation.settings import Settings

__all__ = ["NativeRuntime", "Runtime", "open_runtime"]


class Runtime(Protocol):
    """Gives each launch a buffer, and collects it when the launch is over."""

    @property
    def allocator(self) -> Callable[..., Any]:
        """What Triton asks for the buffer of a launch: ``(size, alignment, stream)``."""

    @property
    def launch_exit(self) -> Callable[..., None]:
        """What Triton calls with its metadata after a launch."""

    def start(self) -> None:
        """Begin; on an exception nothing is left switched on."""

    def flush(self) -> None:
        """Deliver what launches before this call recorded."""

    def stop(self) -> None:
        """End."""

    def add_kernel(self, function: int, kernel: KernelScopes) -> None:
        """Learn what a loaded function records."""

    def remove_kernel(self, function: int) -> None:
        """Forget a function; one that is not known does no harm."""

    def facts(self) -> Mapping[str, Any]:
        """Return what belongs into the profile's provenance."""


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
    """The native runtime, which knows nothing of the compiler.

    Args:
        settings: Options of the mode.
    """

    def __init__(self, settings: Settings) -> None:
        from proton_bench import _native

        self._settings = settings
        self._native = _native.InstrumentationRuntime(
            byte_limit=settings.byte_limit, trace=settings.trace
        )
        self.allocator: Callable[..., Any] = self._native.allocator
        self.launch_exit: Callable[..., None] = self._native.launch_exit
        self.start = self._native.start
        self.flush = self._native.flush
        self.stop = self._native.stop
        self.remove_kernel = self._native.remove_kernel
        self.facts = self._native.facts

    def add_kernel(self, function: int, kernel: KernelScopes) -> None:
        """Learn what a loaded function records."""
        self._native.add_kernel(function, layout=self._layout(kernel))

    def _layout(self, kernel: KernelScopes) -> dict[str, Any]:
        return {
            "name": kernel.name,
            "scratch_bytes": kernel.profile_scratch_size,
            "warps": kernel.num_warps,
            "warp_ids": list(self._settings.warp_ids),
            "names": dict(kernel.names),
            "parents": dict(kernel.parents),
            "programs": [list(each) for each in self._settings.cta],
        }
