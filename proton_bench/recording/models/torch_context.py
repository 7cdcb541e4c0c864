"""Attaches to torch for the sessions that want layers or operators in their call paths.

The frames themselves are made in the native module: it stands in the function through which
torch calls modules, and observes torch's operators. Here is decided when.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.models.collectives import groups
from proton_bench.recording.models.data_loaders import watch_loaders
from proton_bench.recording.models.torch_work import read_inputs
from proton_bench.recording.native import native
from proton_bench.recording.session.steps import watch_steps
from proton_bench.recording.stderr import say, warn

if TYPE_CHECKING:
    from proton_bench.recording.models.torch_verdict import Verdict


# The scope of a compilation; torch names its own ranges in that way.
COMPILATION = "torch.compile (dynamo_timed)"


class TorchContext:
    """What the live sessions want of torch. The caller serialises all calls."""

    def __init__(self) -> None:
        self._holders: dict[int, frozenset[str]] = {}
        self._waiting: ImportCallback | None = None
        self._torch: ModuleType | None = None
        self._verdict: Verdict | None = None
        self._attached: frozenset[str] = frozenset()
        self._undo: dict[str, Callable[[], None]] = {}
        self._watchers = _WATCHERS | {"collectives": self._watch_collectives}
        self._is_probed_early = False  # so that no window begins with that
        self._has_told = False

    def hold(
        self,
        session: int,
        context: str,
        *,
        marks_steps: bool = False,
        compilations: bool = False,
        memory: bool = False,
        is_dormant: bool = False,
    ) -> None:
        """Attach to torch for a session, now or when the program imports it.

        Args:
            session: Number of the session.
            context: Its sources, joined by ``+``.
            marks_steps: Steps are marked whatever the sources are.
            compilations: Compilations are scopes; else samples of the host tell of them.
            memory: Allocations on GPUs are recorded. Between windows they are followed as well:
                what is alive when a window begins is known then.
            is_dormant: Only steps are marked and memory is followed, until the next call.
        """
        sources = frozenset(context.split("+")) & {"layers", "ops", "shapes"}
        wanted = frozenset() if is_dormant else sources
        if marks_steps or "layers" in wanted:
            wanted |= {"steps"}
        wanted |= {"memory"} if memory else set()
        if not wanted:
            return
        wanted |= {"loaders"}
        if not is_dormant:
            wanted |= {"collectives", "compilations"} if compilations else {"collectives"}
        self._is_probed_early = is_dormant and bool(sources)
        self._holders[session] = wanted
        if self._torch is not None:
            self._update()
        elif self._waiting is None:
            self._waiting = ImportCallback("torch", self._imported)

    def release(self, session: int) -> None:
        """Detach what no other session wants; does nothing for a session that holds nothing."""
        if self._holders.pop(session, None) is None:
            return
        if not self._holders and self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        self._update()

    def forget_after_fork(self) -> None:
        """In a forked child: no session lives, and what is attached does nothing until one does."""
        self._holders.clear()
        groups.forget()

    def wants(self, source: str) -> bool:
        """Whether a session wants ``layers``, ``ops`` or ``shapes``."""
        return any(source in wanted for wanted in self._holders.values())

    def _imported(self, torch: ModuleType) -> None:
        self._torch, self._waiting = torch, None
        try:
            self._update()
        except Exception as error:  # noqa: BLE001 - the target's import must not fail because of us
            warn(f"layers, operators and memory are not recorded: {type(error).__name__}: {error}")

    def _update(self) -> None:
        if self._torch is None or not hasattr(self._torch, "nn"):
            return  # not imported, or what a test put in its place
        wanted = frozenset[str]().union(*self._holders.values())
        new = wanted - self._attached
        old = self._attached - wanted
        self._attached = wanted
        for source in old & self._watchers.keys():
            self._undo.pop(source)()
        if "layers" in old:
            native.unwatch_modules()
        for source in sorted(old - self._watchers.keys()):
            native.leave_torch(source)
        if "layers" in new:
            self._watch_modules(self._torch)
        for source in new & self._watchers.keys():
            self._undo[source] = self._watchers[source](self._torch)
        if new - self._watchers.keys():
            self._observe(self._torch, new - self._watchers.keys())
        elif new and self._is_probed_early:
            self._probed(self._torch)

    def _watch_modules(self, torch: ModuleType) -> None:
        if not native.watch_modules(torch.nn.Module.__call__):
            warn("layers are not recorded: another tool took the place of torch.nn.Module.__call__")

    def _watch_collectives(self, torch: ModuleType) -> Callable[[], None]:
        """Observe backends once there is a process group; return what undoes that."""

        def joined() -> None:
            try:
                reason = self._observe_collectives(torch)
            except Exception as error:  # noqa: BLE001 - the program's call must not fail because of us
                reason = f"{type(error).__name__}: {error}"
            if reason and not self._has_told:
                say(f"note: no collectives: torch cannot be observed natively, {reason}")

        native.forget_collectives()  # of earlier sessions
        stop = groups.watch(joined)

        def undo() -> None:
            stop()
            native.leave_torch("collectives")

        return undo

    def _observe_collectives(self, torch: ModuleType) -> str:
        """Return why they are not observed, "" if they are."""
        verdict = self._probed(torch)
        if verdict.reason:
            return verdict.reason
        read_inputs(verdict.inputs)  # their tensors; without, bytes are unknown
        native.find_comm_groups()
        layout = (verdict.reads_scope, verdict.node_offset, verdict.fwd_thread_offset)
        return "" if native.follow_torch("collectives", *layout) else "it lacks the symbols"

    def _observe(self, torch: ModuleType, sources: frozenset[str]) -> None:
        verdict = self._probed(torch)
        reason = verdict.reason
        layout = (verdict.reads_scope, verdict.node_offset, verdict.fwd_thread_offset)
        for source in sorted(sources):
            if source == "shapes" and not reason and not read_inputs(verdict.inputs):
                say(
                    "note: no shapes and no flops of operators: torch does not show their arguments"
                )
            elif not reason and not native.follow_torch(source, *layout):
                reason = "it lacks the symbols"
        if self._has_told:
            return  # before an earlier window
        self._has_told = bool(reason or ("layers" in sources and verdict.node_offset == 0))
        if reason:
            say(f"note: no operators and no backward passes in call paths: {reason}")
        elif "layers" in sources and verdict.node_offset == 0:
            say("note: backward passes are not below layers: torch does not show their nodes")

    def _probed(self, torch: ModuleType) -> Verdict:
        if self._verdict is None:
            from proton_bench.recording.models.torch_verdict import judge_torch

            self._verdict = judge_torch(torch)
        return self._verdict


def watch_compilations(_torch: ModuleType) -> Callable[[], None]:
    """Have each compilation by Dynamo open a scope; return what undoes that."""
    open_on: dict[int, Any] = {}
    handlers: list[Any] = []

    def begin(_args: object) -> None:
        scope = open_on[threading.get_ident()] = native.scope(COMPILATION)
        scope.__enter__()

    def end(_args: object) -> None:
        scope = open_on.pop(threading.get_ident(), None)
        if scope is not None:
            scope.__exit__()

    def watch(callback: ModuleType) -> None:
        with contextlib.suppress(Exception):  # a torch with other internals
            callback.callback_handler.register_start_callback(begin)
            callback.callback_handler.register_end_callback(end)
            handlers.append(callback.callback_handler)

    waiting = ImportCallback("torch._dynamo.callback", watch)

    def unwatch() -> None:
        waiting.cancel()
        for handler in handlers:
            handler.remove_start_callback(begin)
            handler.remove_end_callback(end)

    return unwatch


def watch_memory(_torch: ModuleType) -> Callable[[], None]:
    """Have allocations on GPUs recorded; return what undoes that."""
    if native.has_torch_memory() and not native.watch_torch_memory():
        say("note: device memory is not recorded: torch's allocator does not report it as expected")
    return native.unwatch_torch_memory


# What is watched without the observers of operators.
_WATCHERS = {
    "steps": watch_steps,
    "loaders": watch_loaders,
    "compilations": watch_compilations,
    "memory": watch_memory,
}
torch_context = TorchContext()
