"""The collector of the ``cpu`` backend: native timing plus what attaches it to torch and Triton."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from types import ModuleType

from proton_bench import _native
from proton_bench.capture.on_import import ImportCallback
from proton_bench_plugins.cpu.autotune import mark_trials
from proton_bench_plugins.cpu.dispatch_observer import DispatchObserver
from proton_bench_plugins.cpu.interpreter import InterpreterObserver
from proton_bench_plugins.cpu.interpreter_driver import install_driver
from proton_bench_plugins.cpu.interpreter_loops import mend_loop_bounds

__all__ = ["HostCollector"]


class HostCollector:
    """Times torch operators and interpreted Triton kernels on the threads that run them.

    torch and Triton are attached when they are imported, before or after ``start``; neither is
    imported by us.
    """

    def __init__(self) -> None:
        self._native = _native.CpuCollector()
        self._undo = contextlib.ExitStack()

    def start(self) -> None:
        """Begin to time; on an exception nothing stays attached."""
        with contextlib.ExitStack() as undo:
            self._native.start()
            undo.callback(self._native.stop)
            self._undo = undo
            for name, attach in (
                ("torch", self._attach_torch),
                ("triton.runtime.interpreter", self._attach_interpreter),
                ("triton.runtime.autotuner", self._attach_autotuner),
                ("triton.runtime.driver", install_driver),
                ("triton.runtime.interpreter", mend_loop_bounds),
            ):
                undo.callback(ImportCallback(name, _contained(attach)).cancel)
            self._undo = undo.pop_all()

    def flush(self) -> None:
        """Deliver what was timed so far."""
        self._native.flush()

    def stop(self) -> None:
        """Detach from torch and Triton and stop timing."""
        self._undo.close()

    def _attach_torch(self, _module: ModuleType) -> None:
        if self._native.attach_torch():
            self._undo.callback(self._native.detach_torch)
            return
        sys.stderr.write(
            "proton: note: this torch has no observer that can be used; operators of the main "
            "thread are timed through a dispatch mode, which costs more\n"
        )
        self._undo.callback(DispatchObserver(self._native).remove)

    def _attach_interpreter(self, module: ModuleType) -> None:
        self._undo.callback(InterpreterObserver(self._native, module).remove)

    def _attach_autotuner(self, module: ModuleType) -> None:
        self._undo.callback(mark_trials(module).remove)


def _contained(attach: Callable[[ModuleType], object]) -> Callable[[ModuleType], None]:
    """Let a library that looks unlike every version we know go unrecorded, not unusable."""

    def attach_or_warn(module: ModuleType) -> None:
        try:
            attach(module)
        except Exception as error:  # noqa: BLE001 - the target's import must not fail because of us
            sys.stderr.write(
                f"proton: warning: {module.__name__} is not recorded: "
                f"{type(error).__name__}: {error}\n"
            )

    return attach_or_warn
