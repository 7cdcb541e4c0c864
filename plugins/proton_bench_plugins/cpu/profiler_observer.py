"""Operators through torch.profiler, for a torch that cannot be observed natively.

It is slower: torch keeps every event until a flush reads them. It sees only the thread that made
the observer and autograd's work for it, and it excludes the program's own torch.profiler. Our
scopes are marks among torch's events.
"""

from __future__ import annotations

import bisect
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proton_bench import _native

MARK = "proton_bench scope "
EVALUATION = "autograd::engine::evaluate_function"
Frame = tuple[str, int, int]  # name, kind, number in order of creation


@dataclass(slots=True)
class _OpenScope:
    depth: int  # of the thread's stack, with it
    path: tuple[Frame, ...]
    mark: Any = None


@dataclass(slots=True)
class _Operator:
    """An event in the order of a walk: parents come before their children."""

    parent: int
    path: tuple[Frame, ...]
    depth: int  # outer operators that count towards the limit
    duration_ns: int = 0
    is_recorded: bool = False
    nested_ns: int = 0  # recorded ones inside


class ProfilerObserver:
    """Records operators of the calling thread until it is removed.

    Args:
        max_depth: Operators deeper than that are not recorded; 0 records all.
    """

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth or sys.maxsize
        self._thread = threading.get_ident()
        self._paths: list[tuple[Frame, ...]] = []
        self._scopes: list[_OpenScope] = []
        for depth, frame in _native.open_frames():
            self._scopes.append(_OpenScope(depth, (*self._path(), frame)))
        self._profiler = self._start()
        _native.set_scope_observer(self._scope_changed)

    def flush(self) -> None:
        """Deliver what has ended; does nothing on other threads than the observed one."""
        if threading.get_ident() == self._thread:
            self._deliver()
            self._profiler = self._start()

    def remove(self) -> None:
        """Deliver the rest and stop."""
        _native.set_scope_observer(None)
        if threading.get_ident() == self._thread:
            self._deliver()
            return
        sys.stderr.write(
            "proton: warning: torch operators are incomplete: torch.profiler can be read only on "
            "the thread that imported torch or started the session\n"
        )

    def _start(self) -> Any:
        from torch.profiler import ProfilerActivity, profile

        profiler = profile(activities=[ProfilerActivity.CPU])
        profiler.start()
        for scope in self._scopes:
            scope.mark = self._open_mark(scope.path)
        return profiler

    def _deliver(self) -> None:
        for scope in reversed(self._scopes):
            scope.mark.__exit__(None, None, None)
        self._profiler.stop()
        results = self._profiler.profiler.kineto_results
        operators = self._walk(results.experimental_event_tree())
        for each in reversed(operators):  # children before their parents
            contained_ns = each.duration_ns if each.is_recorded else each.nested_ns
            if each.parent >= 0:
                operators[each.parent].nested_ns += contained_ns
        for each in operators:
            if each.is_recorded:
                own_ns = max(0, each.duration_ns - each.nested_ns)
                _native.record_operator(each.path, each.duration_ns, own_ns)
        self._paths.clear()

    def _path(self) -> tuple[Frame, ...]:
        return self._scopes[-1].path if self._scopes else ()

    def _open_mark(self, path: tuple[Frame, ...]) -> Any:
        from torch._C._profiler import _RecordFunctionFast

        mark = _RecordFunctionFast(f"{MARK}{len(self._paths)}")
        self._paths.append(path)
        mark.__enter__()
        return mark

    def _scope_changed(self, depth: int, entered: Frame | None) -> None:
        """Called when a scope was entered or scopes were left."""
        if threading.get_ident() != self._thread:
            return
        left = depth if entered is None else depth - 1
        while self._scopes and self._scopes[-1].depth > left:
            self._scopes.pop().mark.__exit__(None, None, None)
        if entered is not None:
            path = (*self._path(), entered)
            self._scopes.append(_OpenScope(depth, path, self._open_mark(path)))

    def _walk(self, roots: list[Any]) -> list[_Operator]:
        operators: list[_Operator] = []
        marks = _Marks(self._paths, roots)
        pending = [(root, -1) for root in reversed(roots)]
        while pending:
            event, parent = pending.pop()
            above = operators[parent] if parent >= 0 else _Operator(-1, (), 0)
            place = len(operators)
            operator = _Operator(parent, above.path, above.depth)
            operators.append(operator)
            pending.extend((child, place) for child in reversed(event.children))
            kind = _kind(event)
            if event.name.startswith(MARK):
                operator.path = marks.path(event)
            elif kind and operator.depth < self._max_depth:
                base = operator.path if parent >= 0 else marks.path_at(event.start_time_ns)
                operator.path = (*base, (event.name, _native.KIND_OP, 0))
                operator.duration_ns = max(0, event.end_time_ns - event.start_time_ns)
                operator.is_recorded = True
                counts = kind == "FUNCTION" and not event.name.startswith(EVALUATION)
                operator.depth += counts
        return operators


class _Marks:
    """The scopes among the events: an operator of another thread is in the scope of its time."""

    def __init__(self, paths: list[tuple[Frame, ...]], roots: list[Any]) -> None:
        self._paths = paths
        self._events = sorted(_marks_in(roots), key=lambda event: event.start_time_ns)
        self._starts = [event.start_time_ns for event in self._events]

    def path(self, event: Any) -> tuple[Frame, ...]:
        """Return the path of a mark."""
        return self._paths[int(event.name.removeprefix(MARK))]

    def path_at(self, time_ns: int) -> tuple[Frame, ...]:
        """Return the path of the innermost scope that was open at that time."""
        for place in range(bisect.bisect_right(self._starts, time_ns) - 1, -1, -1):
            if self._events[place].end_time_ns >= time_ns:
                return self.path(self._events[place])
        return ()


def _marks_in(roots: list[Any]) -> Iterator[Any]:
    pending = list(roots)
    while pending:
        event = pending.pop()
        pending.extend(event.children)
        if event.name.startswith(MARK):
            yield event


def _kind(event: Any) -> str:
    """Return the name of an operator's RecordScope; "" for other events."""
    scope = getattr(event.typed[1], "scope", None)
    return scope.name if scope is not None else ""
