"""Scopes and events inside kernels, under upstream's submodule name.

In a kernel that Triton's interpreter runs, and in plain Python, a scope is a host scope of the
running thread. In a compiled kernel it is a pair of records if a session with the backend
``instrumentation`` is active while the kernel is compiled, and no instruction at all otherwise.

As upstream, records are accepted in Gluon kernels, and in Triton's own after
``enable_semantic("triton")``: Triton's compiler moves, duplicates and pipelines what it compiles,
so a record there may bracket less than its place in the source suggests.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from proton_bench.flags import flags
from proton_bench.recording.kernels import interpreted_kernel
from proton_bench.recording.kernels import kernel_records as records
from proton_bench.recording.native import native

if TYPE_CHECKING:
    from proton_bench.recording.kernels.kernel_events import Event

__all__ = [
    "Event",
    "allocate_event",
    "disable_semantic",
    "enable_semantic",
    "end_event",
    "enter_scope",
    "exit_scope",
    "flags",
    "record",
    "record_event",
    "scope",
    "start_event",
]

_F = TypeVar("_F")


def _builtin(function: _F) -> _F:
    """Let Triton's compiler call the function with its ``_semantic`` instead of compiling it."""
    function.__triton_builtin__ = True  # type: ignore[attr-defined]
    return function


@_builtin
def enter_scope(name: str, _semantic: Any = None) -> None:
    """Open a scope in a kernel.

    Args:
        name: Name of the frame; may be a ``tl.constexpr``.

    Raises:
        UsageError: Records are not accepted in kernels of this language.
    """
    if _semantic is None:
        native.enter_scope(records.plain(name))
    else:
        record(is_start=True, scope_name=name, semantic=_semantic)


@_builtin
def exit_scope(name: str, _semantic: Any = None) -> None:
    """Close a scope in a kernel.

    Args:
        name: Name of the scope; may be a ``tl.constexpr``.

    Raises:
        UsageError: Records are not accepted in kernels of this language.
        ScopeError: Outside of a compiled kernel: it is not the newest open scope.
    """
    if _semantic is None:
        interpreted_kernel.exit_scope(records.plain(name))
    else:
        record(is_start=False, scope_name=name, semantic=_semantic)


class scope:  # noqa: N801 - upstream's name
    """Context manager around ``enter_scope`` and ``exit_scope``.

    Args:
        name: Name of the frame; may be a ``tl.constexpr``.
    """

    def __init__(self, name: str, _semantic: Any = None) -> None:
        self.name = name
        self._semantic = _semantic
        self._depth = 0  # of the thread's stack before, where Python runs the kernel

    def __enter__(self) -> None:
        if self._semantic is None:
            self._depth = native.thread_depth()
        enter_scope(self.name, _semantic=self._semantic)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_value is not None and self._semantic is None:
            interpreted_kernel.abandon_scopes(self._depth)  # scopes inside may be open still
        else:
            exit_scope(self.name, _semantic=self._semantic)


def record(is_start: bool, scope_name: str, semantic: Any) -> None:  # noqa: FBT001 - upstream's signature
    """Emit one record into the kernel that is being compiled, if it gets records.

    Args:
        is_start: Whether the record opens or closes the scope.
        scope_name: Name of the scope.
        semantic: What the compiler calls builtins with.

    Raises:
        UsageError: Records are not accepted in kernels of this language.
    """
    if records.are_wanted(semantic):
        records.emit(semantic, records.plain(scope_name), is_start=bool(records.value(is_start)))


@_builtin
def allocate_event(name: str, _semantic: Any = None) -> Event:
    """Declare an event: a span that one warp may start and another one end.

    Args:
        name: Name of the frame; may be a ``tl.constexpr``.

    Raises:
        UsageError: This Triton's compiler has no events, or accepts no records here.
    """
    from proton_bench.recording.kernels.kernel_events import allocate

    return allocate(records.plain(name), _semantic)


@_builtin
def start_event(event: Event, _semantic: Any = None) -> None:
    """Start an event.

    Args:
        event: What ``allocate_event`` returned.

    Raises:
        UsageError: It is something else.
    """
    record_event(event, is_start=True, _semantic=_semantic)


@_builtin
def end_event(event: Event, _semantic: Any = None) -> None:
    """End an event.

    Args:
        event: What ``allocate_event`` returned.

    Raises:
        UsageError: It is something else.
    """
    record_event(event, is_start=False, _semantic=_semantic)


def record_event(event: Event, is_start: bool, _semantic: Any = None) -> None:  # noqa: FBT001 - upstream's signature
    """Start or end an event.

    Args:
        event: What ``allocate_event`` returned.
        is_start: Whether it starts.

    Raises:
        UsageError: It is something else.
    """
    from proton_bench.recording.kernels import kernel_events

    kernel_events.record_event(event, _semantic, is_start=bool(records.value(is_start)))


def enable_semantic(semantic_name: str) -> None:
    """Accept scopes in instrumented kernels of a language; ``gluon`` is accepted from the start.

    Args:
        semantic_name: ``triton`` or ``gluon``.

    Raises:
        UsageError: The language does not exist.
    """
    records.accept(semantic_name)


def disable_semantic(semantic_name: str) -> None:
    """Disable scopes in instrumented kernels of a language: compiling one raises.

    Args:
        semantic_name: ``triton`` or ``gluon``.

    Raises:
        UsageError: The language does not exist.
    """
    records.refuse(semantic_name)


def __getattr__(name: str) -> Any:
    if name == "Event":  # a class of Triton's front end: importing Triton can wait
        from proton_bench.recording.kernels import kernel_events

        return kernel_events.Event
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
