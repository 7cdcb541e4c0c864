"""Events of kernels: spans that may start in one warp and end in another.

The compiler sees an event as a value of its own type, so that it passes through loops, branches and
calls of other kernels. Classes of Triton's front end are bases here, so this module is imported
only if a kernel uses events.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import Any

from triton.language import core as tl

from proton_bench.errors import UsageError
from proton_bench.recording.kernels import interpreted_kernel
from proton_bench.recording.kernels import kernel_records as records
from proton_bench.recording.native import native

_open = threading.local()


class _EventType(tl.base_type):  # type: ignore[misc]
    """Type of an event in the front end; in a kernel without records it has no value."""

    def __init__(self, *, is_recorded: bool) -> None:
        self.is_recorded = is_recorded

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Event, int]:
        if not self.is_recorded:
            return Event("", None), cursor
        return Event("", handles[cursor]), cursor + 1

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        if self.is_recorded:
            tl.int32._flatten_ir_types(builder, out)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _EventType) and other.is_recorded == self.is_recorded

    def __hash__(self) -> int:
        return hash((_EventType, self.is_recorded))

    def mangle(self) -> str:
        return "PEvent"

    def __str__(self) -> str:
        return "proton.event"


class Event(tl.base_value):  # type: ignore[misc]
    """Result of ``allocate_event``, only for ``start_event`` and ``end_event``.

    Args:
        name: Name of the frame; known if Python runs the kernel.
        handle: Value in the compiler; None without records.
    """

    def __init__(self, name: str, handle: Any) -> None:
        self.name = name
        self.handle = handle
        self.type = _EventType(is_recorded=handle is not None)

    def _flatten_ir(self, handles: list[Any]) -> None:
        if self.handle is not None:
            handles.append(self.handle)

    def _set_name(self, builder: Any, name: str) -> None:
        if self.handle is not None:
            self.handle.set_loc(builder.create_name_loc(name, self.handle.get_loc()))


def allocate(name: str, semantic: Any) -> Event:
    """Declare an event.

    Args:
        name: Name of the frame.
        semantic: The compiler's ``_semantic``, None if Python runs the kernel.

    Raises:
        UsageError: This Triton's compiler has no events, or accepts no records here.
    """
    if semantic is None or not records.are_wanted(semantic):
        return Event(name, None)
    records.check_language(semantic)
    dialect = records.dialect(semantic)
    if not hasattr(dialect, "create_proton_allocate_event"):
        version = getattr(sys.modules.get("triton"), "__version__", "of an unknown version")
        raise UsageError(
            f"event {name!r}: the compiler of this Triton ({version}) has no events; use "
            "enter_scope and exit_scope, or Triton 3.9 or newer"
        )
    return Event(name, dialect.create_proton_allocate_event(semantic.builder, name))


def record_event(event: Event, semantic: Any, *, is_start: bool) -> None:
    """Record one end of an event.

    Args:
        event: Result of ``allocate``.
        semantic: The compiler's ``_semantic``, None if Python runs the kernel.
        is_start: Which end.

    Raises:
        UsageError: It is not an event.
    """
    if not isinstance(event, Event):
        raise UsageError(
            f"expected an event returned by allocate_event, not a {type(event).__name__}"
        )
    if semantic is None:
        _start_on_host(event) if is_start else _end_on_host(event)
    elif event.handle is not None and records.are_wanted(semantic):
        records.dialect(semantic).create_proton_event(semantic.builder, is_start, event.handle)


@dataclass(slots=True, eq=False)
class _OnHost:
    """An event of a kernel that Python runs."""

    event: Event
    depth: int  # of the thread's stack, with the event's scope
    has_ended: bool = False


def _start_on_host(event: Event) -> None:
    events = _host_events()
    native.enter_scope(event.name)
    events.append(_OnHost(event, native.thread_depth()))


def _end_on_host(event: Event) -> None:
    # Host scopes nest and events need not: one that ends inside another is closed with that.
    events = _host_events()
    for each in reversed(events):
        if each.event is event and not each.has_ended:
            each.has_ended = True
            break
    while events and events[-1].has_ended:
        interpreted_kernel.exit_scope(events.pop().event.name)


def _host_events() -> list[_OnHost]:
    if not hasattr(_open, "events"):
        _open.events = []
    events: list[_OnHost] = _open.events
    while events and events[-1].depth > native.thread_depth():
        events.pop()  # closed with its kernel, which did not end it
    return events
