"""The collector of the ``cpu`` backend: native timing, attached to torch and Triton."""

from __future__ import annotations

import contextlib
import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from proton_bench import _native
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.models.torch_verdict import judge_torch
from proton_bench.recording.stderr import warn
from proton_bench_plugins.cpu.interpreter import InterpreterObserver
from proton_bench_plugins.cpu.interpreter_driver import install_driver
from proton_bench_plugins.cpu.perf_events import find_events
from proton_bench_plugins.cpu.profiler_observer import ProfilerObserver

if TYPE_CHECKING:
    from proton_bench_plugins.cpu.perf_events import Event
    from proton_bench_plugins.instrumentation.passes import Rule
    from proton_bench_plugins.instrumentation.passes.interpreted import InterpretedScopes

__all__ = ["DEFAULT_DEPTH", "CountingCollector", "HostCollector", "mend_loop_bounds"]


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
        events: What the processor counts inside of what is timed.
    """

    def __init__(
        self,
        max_depth: int = DEFAULT_DEPTH,
        passes: tuple[Rule, ...] = (),
        events: Sequence[Event] = (),
    ) -> None:
        self._max_depth = max_depth
        self._passes = passes
        self._interpreted: list[InterpretedScopes] = []
        self._observers: list[InterpreterObserver] = []
        self._native = _native.CpuCollector(max_depth, events)
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


class CountingCollector(HostCollector):
    """Also counts instructions, where the kernel allows.

    Args:
        max_depth: As for `HostCollector`.
    """

    def __init__(self, max_depth: int = DEFAULT_DEPTH) -> None:
        self._found = find_events()
        self._is_said = not self._found.error
        super().__init__(max_depth, events=self._found.events)

    def start(self) -> None:
        """Begin to time and to count; says in one line why nothing is counted."""
        super().start()
        if not self._is_said:
            self._is_said = True
            warn(f"processor counters are not recorded: {self._found.error}")

    def facts(self) -> Mapping[str, Any]:
        """Return what was counted, and in which part of the time: less than 1 is an estimate."""
        facts: dict[str, Any] = {"events": [name for name, _, _ in self._found.events]}
        if self._found.error:
            facts["error"] = self._found.error
        enabled_ns, running_ns = _native.perf_times()
        if enabled_ns:
            facts["running"] = running_ns / enabled_ns
        return {"cpu_counters": facts}


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
