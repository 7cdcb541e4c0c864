"""Observes Triton's interpreter: every launch passes through its ``GridExecutor``."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

from proton_bench.recording.kernels import interpreted_kernel
from proton_bench_plugins.cpu.launch import Launch, describe_launch
from proton_bench_plugins.patch import Patch

if TYPE_CHECKING:
    from proton_bench._native import CpuCollector

__all__ = ["InterpreterObserver"]


class InterpreterObserver:
    """Reports interpreted launches to the native collector and to Triton's launch hooks.

    The interpreter copies every argument to the host and back with torch operators; these are not
    the target's and not in the profile.

    Args:
        collector: Receives the kernels.
        module: ``triton.runtime.interpreter``.

    Attributes:
        kernels: Names of the kernels that ran, in order.
    """

    def __init__(self, collector: CpuCollector, module: ModuleType) -> None:
        self.kernels: dict[str, None] = {}
        self._collector = collector
        self._running = threading.local()
        executor = module.GridExecutor
        self._patches = [
            Patch(executor, "__call__", self._call),
            Patch(executor, "_init_args_hst", self._muted),
            Patch(executor, "_restore_args_dev", self._muted),
            Patch(module.InterpretedFunction, "run", self._run),
            Patch(module.InterpreterBuilder, "set_grid_idx", self._begin_program),
        ]

    def remove(self) -> None:
        """Put Triton's own methods back."""
        for patch in self._patches:
            patch.remove()

    def _run(self, original: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        # The executor knows only the rewritten function; this one has launch_metadata.
        outer = getattr(self._running, "function", None)
        self._running.function = function
        try:
            return original(function, *args, **kwargs)
        finally:
            self._running.function = outer

    def _call(self, original: Any, executor: Any, *args: Any, **kwargs: Any) -> Any:
        function = getattr(self._running, "function", None)
        launch = describe_launch(executor, args, kwargs, function=function)
        enter_hook, exit_hook = _launch_hooks()
        if not (enter_hook.calls or exit_hook.calls):
            return self._record(launch, original, executor, *args, **kwargs)
        metadata = _lazy_metadata(launch)
        enter_hook(metadata)
        try:
            return self._record(launch, original, executor, *args, **kwargs)
        finally:
            exit_hook(metadata)

    def _record(
        self, launch: Launch, original: Any, executor: Any, *args: Any, **kwargs: Any
    ) -> Any:
        self.kernels[launch.name] = None
        self._collector.enter_kernel(launch.name, launch.variant())
        try:
            with interpreted_kernel.interpreting(launch.name):
                return original(executor, *args, **kwargs)
        finally:
            self._collector.exit_kernel()

    def _begin_program(self, original: Any, *args: Any) -> Any:
        interpreted_kernel.end_program()  # of the one before
        return original(*args)

    def _muted(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self._collector.mute()
        try:
            return original(*args, **kwargs)
        finally:
            self._collector.unmute()


def _launch_hooks() -> tuple[Any, Any]:
    # Looked up at each launch, because a scope of Triton's knobs may replace the chains.
    from triton import knobs

    return knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook


def _lazy_metadata(launch: Launch) -> Any:
    from triton.compiler.compiler import LazyDict

    metadata = LazyDict({"name": launch.name, "function": id(launch.function), "stream": 0})
    describe = launch.launch_metadata()
    if describe is not None:
        metadata.add(describe, (launch.grid, launch.metadata(), dict(launch.arguments)))
    return metadata
