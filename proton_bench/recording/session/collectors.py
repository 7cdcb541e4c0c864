"""The collectors of this process: one per backend, shared by all sessions that use the backend."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.plugin.backend import (
    Backend,
    Collector,
    Detachable,
    Mode,
    Remarking,
    SelfDescribing,
)
from proton_bench.recording.native import native


@dataclass(slots=True, eq=False)
class _Shared:
    """A collector, the sessions that hold it and those among them that are active.

    ``is_unused``: no session is active with it, and it runs until no graph is captured any more.
    """

    backend: Backend
    mode: Mode
    collector: Collector
    is_running: bool = False
    is_unused: bool = False
    holders: list[CollectorLease] = field(default_factory=list)
    users: list[CollectorLease] = field(default_factory=list)


_shared: dict[str, _Shared] = {}


class CollectorLease:
    """What one session holds of the shared collectors. The caller serialises all calls.

    Args:
        owner: Text that names the session in messages.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._collectors: list[_Shared] = []

    def hold(self, backend: Backend, mode: Mode) -> None:
        """Take a share in the backend's collector, which is made for its first holder.

        Raises:
            UsageError: Another session holds it in another mode.
        """
        shared = _shared.get(backend.name)
        if shared is not None and shared.mode.text != mode.text:
            if shared.holders:
                raise UsageError(_conflict(shared, mode, self.owner))
            _stop(shared)  # left running by the parent of a forked child, or under capture
            shared = None
        if shared is None:
            shared = _shared[backend.name] = _Shared(backend, mode, backend.open(mode))
        shared.holders.append(self)
        self._collectors.append(shared)

    def start(self) -> None:
        """Start the collectors that do not run; when one fails, those started here are stopped."""
        with contextlib.ExitStack() as undo:
            for shared in self._collectors:
                if self in shared.users:
                    continue
                if not shared.is_running:
                    shared.collector.start()
                    shared.is_running = True
                shared.is_unused = False
                shared.users.append(self)
                undo.callback(self._leave, shared)
            undo.pop_all()

    def flush(self) -> None:
        """Have the running collectors deliver every record of work submitted so far."""
        for shared in self._collectors:
            if shared.is_running:
                shared.collector.flush()

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return what collectors say about where their records come from, by backend."""
        return {
            shared.backend.name: dict(shared.collector.facts())
            for shared in self._collectors
            if isinstance(shared.collector, SelfDescribing)
        }

    def remarks(self, counts: Mapping[str, int]) -> list[str]:
        """Return what collectors have to say at the end of a session with these counts."""
        collectors = [shared.collector for shared in self._collectors]
        said = [each.remark(counts) for each in collectors if isinstance(each, Remarking)]
        return [remark for remark in said if remark]

    def stop(self) -> None:
        """Leave the collectors; those without another active session are flushed and stopped.

        While a graph is captured they run on, since a flush would wait for the device, which ends
        the capture: `stop_unused` stops them. What they record meanwhile belongs to no session.
        """
        with contextlib.ExitStack() as steps:
            for shared in self._collectors:
                if self in shared.users:
                    steps.callback(self._leave, shared)

    def detach(self) -> None:
        """Have those that no session is active with cost nothing."""
        for shared in self._collectors:
            if not shared.is_running and isinstance(shared.collector, Detachable):
                shared.collector.detach()

    def release(self) -> None:
        """Give the shares back; a collector without a holder is forgotten."""
        try:
            self.stop()
        finally:
            for shared in self._collectors:
                shared.holders.remove(self)
                _forget_if_over(shared)
            self._collectors.clear()

    def _leave(self, shared: _Shared) -> None:
        shared.users.remove(self)
        shared.is_unused = shared.is_running and not shared.users
        if shared.is_unused and not native.any_capture_open():
            _stop(shared)


def lease_collectors(
    owner: str, backends: Sequence[Backend], modes: Sequence[Mode]
) -> CollectorLease:
    """Take shares in the collectors of several backends, or in none of them.

    Args:
        owner: Text that names the session in messages.
        backends: Backends of the session.
        modes: One mode per backend.

    Raises:
        UsageError: A collector is held in another mode.
    """
    lease = CollectorLease(owner)
    try:
        for backend, mode in zip(backends, modes, strict=True):
            lease.hold(backend, mode)
    except BaseException:
        lease.release()
        raise
    return lease


def stop_unused() -> bool:
    """Stop the collectors that no session is active with, unless a graph is captured.

    Returns:
        Whether none of them is left.
    """
    unused = [shared for shared in _shared.values() if shared.is_unused]
    if not unused or native.any_capture_open():
        return not unused
    with contextlib.ExitStack() as steps:
        for shared in unused:
            steps.callback(_forget_if_over, shared)
            steps.callback(_stop, shared)
    return True


def forget_after_fork() -> None:
    """In a forked child: no session holds a collector any more.

    Collectors stay as they are, still hooked into the child's libraries: stopping one could wait
    for a lock of a thread that does not exist here. A later session of the child goes on with them.
    """
    for shared in _shared.values():
        shared.holders.clear()
        shared.users.clear()
        shared.is_unused = False


def _stop(shared: _Shared) -> None:
    if not shared.is_running:
        return
    shared.is_running = shared.is_unused = False
    try:
        shared.collector.flush()
    finally:
        shared.collector.stop()


def _forget_if_over(shared: _Shared) -> None:
    if not shared.holders and not shared.is_unused:
        _shared.pop(shared.backend.name, None)


def _conflict(shared: _Shared, mode: Mode, owner: str) -> str:
    first = shared.holders[0]
    return (
        "Cannot add a session with the same profiler but a different mode than existing sessions: "
        f"{owner} asks backend {shared.backend.name!r} for mode {mode.text!r}, "
        f"and {first.owner} holds it in mode {shared.mode.text!r}; "
        "use one mode for both, or finalize the other session first"
    )
