"""Scopes: named ranges of the calling thread that contain launches and metrics."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast

from proton_bench.errors import MetricError
from proton_bench.flags import flags
from proton_bench.recording.context.compiled import follow_dynamo
from proton_bench.recording.context.metric import add_scope_metrics, parse_metric_name
from proton_bench.recording.native import native

scope = native.scope

_F = TypeVar("_F", bound=Callable[..., object])
_CPU_TIME = "cpu_time"
_CPU_TIME_NS = f"{_CPU_TIME} (ns)"
# Without super(), which costs as much as the call.
_init, _enter, _exit = scope.__init__, scope.__enter__, scope.__exit__


class _ThreadLocalScopes:
    """Upstream's name for the stack of scopes, which is native here."""

    @property
    def scopes(self) -> list[tuple[int, str]]:
        """Id and name of the open scopes of the calling thread, outermost first."""
        return native.entered_scopes()


thread_local_scopes = _ThreadLocalScopes()


def enter_scope(name: str, *, metrics: Mapping[str, object] | None = None) -> int | None:
    """Open a scope on the calling thread.

    Args:
        name: Name of the frame.
        metrics: Values by name, added to the scope.

    Returns:
        The scope's id, or None while there is no session.

    Raises:
        MetricError: A metric is not usable; the scope is closed again.
    """
    identifier = native.enter_scope(name)
    if identifier is None and flags.profiling_on:
        identifier = native.number_scope()  # all sessions are paused
    if metrics is not None:
        try:
            add_scope_metrics(metrics)
        except BaseException:
            native.exit_scope()
            raise
    return identifier


def exit_scope(
    name: str | None = None, *, metrics: Mapping[str, object] | None = None
) -> int | None:
    """Close the innermost scope of the calling thread.

    Args:
        name: Name of the scope, to check it.
        metrics: Values by name, added to the scope before it is closed.

    Returns:
        The scope's id, or None if it was opened without a session.

    Raises:
        ScopeError: No scope is open, or the innermost one has another name.
        MetricError: A metric is not usable; the scope is closed anyway.
    """
    try:
        if metrics is not None:
            add_scope_metrics(metrics)
    finally:
        identifier = native.exit_scope(name)
    return identifier


class cpu_timed_scope(scope):
    """Scope that also records how long it was open, as ``cpu_time (ns)`` (exclusive).

    Args:
        name: Name of the frame.
        metrics: Values by name, added to the scope when it is entered.

    Attributes:
        start_time: Last entry, in nanoseconds of a monotonic clock.

    Raises:
        MetricError: ``metrics`` has a ``cpu_time`` of its own.
    """

    start_time: int | None = None

    def __init__(self, name: str, metrics: Mapping[str, object] | None = None) -> None:
        for key in metrics or ():
            base = parse_metric_name(key)[0].partition("(")[0].strip()
            if base == _CPU_TIME:
                raise MetricError(
                    f"The metric name {_CPU_TIME!r} is reserved: cpu_timed_scope {name!r} measures "
                    f"{key!r} itself; give yours another name"
                )
        _init(self, name, metrics)

    def __enter__(self) -> cpu_timed_scope:
        _enter(self)
        self.start_time = time.perf_counter_ns()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        now = time.perf_counter_ns()
        try:
            identifier = self.id
            if identifier is not None and self.start_time is not None:
                native.add_metrics([(_CPU_TIME_NS, "exc", now - self.start_time)], identifier)
        finally:
            _exit(self, exc_type, exc_value, traceback)


def _copy(template: Any, _name: str, _metrics: Mapping[str, object] | None) -> Any:
    return copy.copy(template)


def decorate(template: Any, func: _F) -> _F:
    """Wrap a function so that every call runs in its own scope.

    Recursive and concurrent calls do not share a scope object. A coroutine function is timed until
    it returns. A generator function is timed until it has made its generator; open a scope in its
    body to time that.

    Args:
        template: A ``scope`` or ``cpu_timed_scope`` whose name and metrics are used; an object of a
            subclass is copied for each call.
        func: Function or coroutine function.
    """
    name, metrics = template.name, template.metrics
    make: Callable[..., Any] = type(template)
    if make not in (scope, cpu_timed_scope):  # its constructor may need other arguments
        make = functools.partial(_copy, template)
    if inspect.iscoroutinefunction(func):

        @functools.wraps(func)
        async def run_coroutine(*args: object, **kwargs: object) -> object:
            with make(name, metrics):
                return await func(*args, **kwargs)

        return cast("_F", run_coroutine)

    @functools.wraps(func)
    def run(*args: object, **kwargs: object) -> object:
        with make(name, metrics):
            return func(*args, **kwargs)

    return cast("_F", run)


follow_dynamo(sys.modules[__name__])
