"""The collector of the ``cpu`` backend: native timing, attached to torch and Triton."""

from __future__ import annotations

import contextlib
import errno
import operator
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from proton_bench import _native
from proton_bench.model.metrics.counter_columns import INSTRUCTIONS
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.models.torch_verdict import judge_torch
from proton_bench.recording.stderr import warn
from proton_bench_plugins.cpu.interpreter import InterpreterObserver
from proton_bench_plugins.cpu.interpreter_driver import install_driver
from proton_bench_plugins.cpu.profiler_observer import ProfilerObserver

if TYPE_CHECKING:
    from proton_bench_plugins.instrumentation.passes import Rule
    from proton_bench_plugins.instrumentation.passes.interpreted import InterpretedScopes


# The interpreter keeps a scalar in an array of one element. Triton 3.6 passes such a bound to
# ``int``, which numpy warns about and, since 2.4, rejects; later releases extract the element.
def mend_loop_bounds(module: ModuleType) -> bool:
    """Make an interpreter that cannot use a scalar as a loop bound extract the element.

    It stays for the rest of the process: a program that could loop while it was profiled must not
    fail once profiling is paused.

    Args:
        module: ``triton.runtime.interpreter``.

    Returns:
        True if the interpreter needed it.
    """
    if _can_loop(module):
        return False
    patch_tensor = module._patch_lang_tensor

    def patch_tensor_and_bounds(tensor: type, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda scalar: int(scalar.handle.data.item()))

    vars(module)["_patch_lang_tensor"] = patch_tensor_and_bounds
    return True


def _can_loop(module: ModuleType) -> bool:
    """Give a class of ours what the interpreter gives Triton's tensor, and use it as a bound."""
    import numpy as np

    class Scalar:
        handle = SimpleNamespace(data=np.zeros(1, dtype=np.int32))

    try:
        module._patch_lang_tensor(Scalar, SimpleNamespace(set_attr=setattr))
    except (AttributeError, TypeError):
        return True  # an unknown interpreter: do not change it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return operator.index(Scalar()) == 0  # type: ignore[arg-type]
        except (TypeError, DeprecationWarning):
            return False


DEFAULT_DEPTH = 2  # operators that the program calls, and those that they call


class HostCollector:
    """Times torch operators and interpreted Triton kernels on the threads that run them.

    It attaches to torch and Triton when the program imports them, before or after ``start``.

    Args:
        max_depth: Operators nested deeper are not recorded; 0 records all.
        passes: What to bracket in interpreted kernels.
        event: What the processor counts inside of what is timed.
    """

    def __init__(
        self,
        max_depth: int = DEFAULT_DEPTH,
        passes: tuple[Rule, ...] = (),
        event: Event | None = None,
    ) -> None:
        self._max_depth = max_depth
        self._passes = passes
        self._interpreted: list[InterpretedScopes] = []
        self._observers: list[InterpreterObserver] = []
        self._native = _native.CpuCollector(max_depth, event)
        self._profiler: ProfilerObserver | None = None
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
                ("triton.runtime.driver", install_driver),
                ("triton.runtime.interpreter", mend_loop_bounds),
            ):
                undo.callback(ImportCallback(name, _contained(attach)).cancel)
            self._undo = undo.pop_all()

    def flush(self) -> None:
        """Deliver the times so far."""
        if self._profiler is not None:
            self._profiler.flush()
        self._native.flush()

    def stop(self) -> None:
        """Detach from torch and Triton and stop timing."""
        self._undo.close()
        self._profiler = None

    def remark(self, counts: Mapping[str, int]) -> str | None:
        """Return which passes recorded nothing and why, or None."""
        del counts
        if not self._passes:
            return None
        from proton_bench_plugins.instrumentation.passes.listing import unused_passes

        kernels = [*{name: None for each in self._observers for name in each.kernels}]
        taken = {rule for each in self._interpreted for rule in each.taken}
        return unused_passes(self._passes, kernels, taken)

    def _attach_torch(self, torch: ModuleType) -> None:
        verdict = judge_torch(torch)
        reason = verdict.reason
        layout = (verdict.reads_scope, verdict.node_offset, verdict.fwd_thread_offset)
        if not reason and self._native.attach_torch(*layout):
            self._undo.callback(self._native.detach_torch)
            return
        observer = ProfilerObserver(self._max_depth)
        self._undo.callback(observer.remove)
        self._profiler = observer
        sys.stderr.write(
            "proton: note: operators are recorded through torch.profiler, which costs more and "
            "excludes the program's own torch.profiler: torch cannot be observed natively, "
            f"{reason or 'it lacks the symbols'}\n"
        )

    def _attach_interpreter(self, module: ModuleType) -> None:
        self._observers.append(InterpreterObserver(self._native, module))
        self._undo.callback(self._observers[-1].remove)
        if self._passes:
            from proton_bench_plugins.instrumentation.passes.interpreted import InterpretedScopes

            self._interpreted.append(InterpretedScopes(self._passes, module))
            self._undo.callback(self._interpreted[-1].remove)


Event = tuple[str, int, int]  # name of the column, type, config: as in perf_event_open(2)

INSTRUCTION_EVENT: Event = (INSTRUCTIONS, 0, 1)  # in user space alone
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_NO_HARDWARE = (
    "this machine counts none, as most virtual machines: use bare metal, or a virtual machine with "
    "a virtual PMU"
)
_REASONS = {
    errno.ENOENT: _NO_HARDWARE,
    errno.ENODEV: _NO_HARDWARE,
    errno.EOPNOTSUPP: _NO_HARDWARE,
    errno.EPERM: "a sandbox forbids perf_event_open: run the container with --cap-add PERFMON or a "
    "seccomp profile that allows it",
    errno.ENOSYS: "this kernel has no perf_event_open: use a Linux kernel with CONFIG_PERF_EVENTS",
}


def refusal() -> str:
    """Return why the kernel counts no instructions of this process and what to do, or ""."""
    code = _native.probe_perf_event(INSTRUCTION_EVENT)
    if code == errno.EACCES:
        try:
            paranoid = _PARANOID.read_text().strip()
        except OSError:
            paranoid = "unknown"
        return (
            f"perf_event_paranoid is {paranoid}: run `sysctl kernel.perf_event_paranoid=2` as "
            "root, or give the program CAP_PERFMON"
        )
    return _REASONS.get(code, f"perf_event_open failed: {os.strerror(code)}") if code else ""


class CountingCollector(HostCollector):
    """Also counts instructions, where the kernel allows.

    Args:
        max_depth: As for `HostCollector`.
    """

    def __init__(self, max_depth: int = DEFAULT_DEPTH) -> None:
        self._error = refusal()
        self._is_said = not self._error
        super().__init__(max_depth, event=None if self._error else INSTRUCTION_EVENT)

    def start(self) -> None:
        """Begin to time and to count; says in one line why nothing is counted."""
        super().start()
        if not self._is_said:
            self._is_said = True
            warn(f"instructions are not counted: {self._error}")

    def facts(self) -> Mapping[str, Any]:
        """Return what was counted, or why nothing was."""
        counted = {"error": self._error} if self._error else {"events": [INSTRUCTION_EVENT[0]]}
        return {"cpu_counters": counted}


def _contained(attach: Callable[[ModuleType], object]) -> Callable[[ModuleType], None]:
    """Leave an unknown version of a library unrecorded, but usable."""

    def attach_or_warn(module: ModuleType) -> None:
        try:
            attach(module)
        except Exception as error:  # noqa: BLE001 - the target's import must not fail because of us
            sys.stderr.write(
                f"proton: warning: {module.__name__} is not recorded: "
                f"{type(error).__name__}: {error}\n"
            )

    return attach_or_warn
