"""Launch hooks: objects that are called for every kernel that Triton loads and launches."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, ClassVar, Protocol

from proton_bench.recording.launcher.on_import import ImportCallback

_KNOBS = "triton.knobs"
_EXIT = "launch_exit_hook"


# Called with whether all sessions rest between their recording windows, when that may have changed:
# what costs each launch something is off meanwhile.
rest_listeners: list[Callable[[bool], None]] = []


class TritonHeads:
    """Functions that are in Triton's hook chains while they are needed.

    A non-empty chain disables Triton's fast launch paths, so the chains are empty otherwise. This
    does not import Triton: the functions are added once the target imports it. Hooks of other tools
    in the same chains are not changed.

    Args:
        heads: Function by the name of its chain in ``triton.knobs.runtime``; a chain that this
            Triton does not have (``kernel_unload_hook`` before 3.9) is left out.
        exits_last: Whether they run last at the end of a launch.
    """

    def __init__(
        self, heads: Mapping[str, Callable[..., None]], *, exits_last: bool = False
    ) -> None:
        self._heads = dict(heads)
        self._exits_last = exits_last
        self._waiting: ImportCallback | None = None
        self._chains: dict[str, Any] = {}
        self._singles: list[tuple[Any, str, Any]] = []

    def attach(self) -> None:
        """Add the functions to the chains, unless they are there."""
        if self._waiting is None:
            self._waiting = ImportCallback(_KNOBS, self._add)

    def detach(self) -> None:
        """Remove the functions from the chains."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        for name, chain in self._chains.items():
            chain.remove(self._heads[name])
        for runtime, name, single in self._singles:
            if getattr(runtime, name) is self._chains[name]:
                setattr(runtime, name, single)
        self._chains.clear()
        self._singles.clear()

    def replace(self, name: str, head: Callable[..., None]) -> None:
        """Replace a function in a chain, at the same place.

        Args:
            name: Name of the chain.
            head: The function.
        """
        older, self._heads[name] = self._heads[name], head
        calls: list[Any] = getattr(self._chains.get(name), "calls", [])
        if older in calls:
            calls[calls.index(older)] = head

    def _add(self, knobs: ModuleType) -> None:
        for name, head in self._heads.items():
            chain = self._chain(knobs, name)
            if chain is not None:
                chain.add(head)
                calls: list[Any] = getattr(chain, "calls", [])
                if self._exits_last and name == _EXIT and head in calls:
                    calls.insert(0, calls.pop(calls.index(head)))  # it is walked backwards
                self._chains[name] = chain

    def _chain(self, knobs: ModuleType, name: str) -> Any:
        present: Any = getattr(knobs.runtime, name, None)
        make_chain = getattr(knobs, "HookChain", None)
        if hasattr(present, "add"):
            return present
        if not callable(present) or make_chain is None:
            return None
        # A function replaced the chain: it becomes the first of a new chain while ours are there.
        chain = make_chain()
        chain.add(present)
        setattr(knobs.runtime, name, chain)
        self._singles.append((knobs.runtime, name, present))
        return chain


class LaunchMetadata(Protocol):
    """Facts of a launch from Triton, in the form of its ``LazyDict``.

    Attributes:
        data: ``name``, ``function`` and ``stream`` of the launch, then the additions of ``get``.
    """

    data: Mapping[str, Any]

    def get(self) -> Mapping[str, Any]:
        """Evaluate the kernel's ``launch_metadata`` once and return all of ``data``."""


class Hook:
    """Base of launch hooks; pass an instance as ``start(hook=...)``.

    A method that a subclass lacks does nothing.

    Attributes:
        priority: Hooks with a higher one enter earlier and exit later.
        is_called: False for a hook that is only listed among the active hooks.
    """

    priority: int = 0
    is_called: ClassVar[bool] = True

    def init_handle(  # noqa: PLR0917 - Triton's signature
        self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        """Called after a kernel was loaded onto a device."""

    def enter(self, metadata: LaunchMetadata) -> None:
        """Called before a launch, on the launching thread."""

    def exit(self, metadata: LaunchMetadata) -> None:
        """Called after the launch call returned."""

    def activate(self) -> None:
        """Switch on: the first session that uses the hook became active."""

    def deactivate(self) -> None:
        """Switch off: the last active session that used the hook left it."""

    def destroy_handle(  # noqa: PLR0917 - optional; Triton's signature
        self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        """Called after a kernel was unloaded; does nothing unless overridden (Triton >= 3.9)."""

    def flush(self) -> None:
        """Record all running work; waits for devices if necessary."""

    def release(self) -> None:
        """Reset settings: the last session that used the hook was finalized."""


class HookManager:
    """The active hooks and their sessions; one per process, hence static.

    Attributes:
        active_hooks: Hooks that are switched on, highest priority first.
        session_hooks: The hooks of every session, and whether it is active with them.
    """

    active_hooks: ClassVar[list[Hook]] = []
    session_hooks: ClassVar[defaultdict[int, defaultdict[Hook, bool]]] = defaultdict(
        lambda: defaultdict(bool)
    )

    @staticmethod
    def register(hook: Hook, session: int) -> None:
        """Switch a hook on for a session.

        Args:
            hook: Hook; the same object for several sessions is switched on once.
            session: Session number.
        """
        switch_on(hook)
        HookManager.session_hooks[session][hook] = True

    @staticmethod
    def unregister(session: int | None = None) -> None:
        """Remove the hooks of a session, or of all, and switch off unused ones."""
        sessions = _numbers(session)
        forgotten = [hook for number in sessions for hook in HookManager.session_hooks.pop(number)]
        switch_off_unused(forgotten)
        for hook in dict.fromkeys(forgotten):
            if not any(hook in hooks for hooks in HookManager.session_hooks.values()):
                _optional(hook, "release")()

    @staticmethod
    def activate(session: int | None = None) -> None:
        """Switch on the hooks of a session, or of all sessions."""
        for number in _numbers(session):
            for hook in HookManager.session_hooks[number]:
                switch_on(hook)
                HookManager.session_hooks[number][hook] = True

    @staticmethod
    def deactivate(session: int | None = None) -> None:
        """Switch off the hooks of a session, or of all, that no other active session uses."""
        left: list[Hook] = []
        for number in _numbers(session):
            hooks = HookManager.session_hooks[number]
            left += hooks
            hooks.update(dict.fromkeys(hooks, False))
        switch_off_unused(left)

    @staticmethod
    def flush(session: int) -> None:
        """Make the hooks of a session record running work."""
        for hook in list(HookManager.session_hooks.get(session, ())):
            _optional(hook, "flush")()

    @staticmethod
    def init_handle(  # noqa: PLR0917 - Triton's signature
        module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        """Tell the active hooks that a kernel was loaded."""
        for hook in HookManager.active_hooks:
            hook.init_handle(module, function, name, metadata_group, hash)

    @staticmethod
    def destroy_handle(  # noqa: PLR0917 - Triton's signature
        module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        """Tell the active hooks that a kernel was unloaded."""
        for hook in reversed(HookManager.active_hooks):
            hook.destroy_handle(module, function, name, metadata_group, hash)

    @staticmethod
    def enter(metadata: LaunchMetadata) -> None:
        """Tell the active hooks of a launch, highest priority first."""
        for hook in HookManager.active_hooks:
            hook.enter(metadata)

    @staticmethod
    def exit(metadata: LaunchMetadata) -> None:
        """Tell the active hooks that a launch call returned, lowest priority first."""
        for hook in reversed(HookManager.active_hooks):
            hook.exit(metadata)


_heads = TritonHeads(
    {
        "kernel_load_end_hook": HookManager.init_handle,
        "kernel_unload_hook": HookManager.destroy_handle,
        "launch_enter_hook": HookManager.enter,
        "launch_exit_hook": HookManager.exit,
    },
    # A collector of the launch's end still finds the frame of a hook open.
    exits_last=True,
)


def _numbers(session: int | None) -> list[int]:
    if session is None:
        return list(HookManager.session_hooks)
    return [session] if session in HookManager.session_hooks else []


def switch_on(hook: Hook) -> None:
    """Switch a hook on unless it is; on an exception it is off."""
    if hook in HookManager.active_hooks:
        return
    hook.activate()
    _set_active([*HookManager.active_hooks, hook])
    try:
        if _called(HookManager.active_hooks):  # launches pay for a chain that is not empty
            _heads.attach()
    except BaseException:
        switch_off_unused([hook])
        raise


def switch_off_unused(hooks: Iterable[Hook]) -> None:
    """Switch all of them off, even if one fails; the first failure is raised at the end."""
    with contextlib.ExitStack() as steps:
        for hook in dict.fromkeys(hooks):
            in_use = any(used.get(hook) for used in HookManager.session_hooks.values())
            if hook in HookManager.active_hooks and not in_use:
                _set_active([each for each in HookManager.active_hooks if each is not hook])
                steps.callback(hook.deactivate)
        if not _called(HookManager.active_hooks):
            steps.callback(_heads.detach)


def _set_active(hooks: list[Hook]) -> None:
    # A new list: a launch on another thread may be walking the old one.
    HookManager.active_hooks = sorted(hooks, key=lambda each: each.priority, reverse=True)
    # Triton calls a single hook directly, so that a launch does not pay for a loop.
    called = _called(hooks)
    is_alone = len(called) == 1
    _heads.replace("launch_enter_hook", called[0].enter if is_alone else HookManager.enter)
    _heads.replace("launch_exit_hook", called[0].exit if is_alone else HookManager.exit)


def _called(hooks: Iterable[Hook]) -> list[Hook]:
    return [hook for hook in hooks if getattr(hook, "is_called", True)]


def _optional(hook: Hook, method: str) -> Callable[[], None]:
    """Return an optional method, which a hook that is not a `Hook` may lack."""
    found: Callable[[], None] = getattr(hook, method, _nothing)
    return found


def _nothing() -> None:
    pass
