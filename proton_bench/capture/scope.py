"""Scopes: named ranges of the calling thread under which launches and metrics are filed."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast

from proton_bench.capture.metric import add_scope_metrics, parse_metric_name
from proton_bench.capture.native import native
from proton_bench.errors import MetricError

__all__ = ["cpu_timed_scope", "decorate", "enter_scope", "exit_scope", "scope"]

scope = native.scope

_F = TypeVar("_F", bound=Callable[..., object])
_CPU_TIME = "cpu_time"


def enter_scope(name: str, *, metrics: Mapping[str, object] | None = None) -> int | None:
    """Open a scope on the calling thread.

    Args:
        name: Name of the frame.
        metrics: Values by name, added to the scope.

    Returns:
        The scope's id, or None while no session is active.

    Raises:
        MetricError: A metric is not usable; the scope is closed again.
    """
    identifier = native.enter_scope(name)
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
        name: Name of the scope, if it is to be checked.
        metrics: Values by name, added to the scope before it is closed.

    Returns:
        The scope's id, or None when it was opened while no session was active.

    Raises:
        ScopeError: No scope is open, or the innermost one has another name.
        MetricError: A metric is not usable; the scope is closed all the same.
    """
    try:
        if metrics is not None:
            add_scope_metrics(metrics)
    finally:
        identifier = native.exit_scope(name)
    return identifier


class cpu_timed_scope:
    """Scope that also records how long it was open, as ``cpu_time (ns)`` (exclusive).

    Args:
        name: Name of the frame.
        metrics: Values by name, added to the scope when it is entered.

    Raises:
        MetricError: ``metrics`` has a ``cpu_time`` of its own.
    """

    def __init__(self, name: str, metrics: Mapping[str, object] | None = None) -> None:
        for key in metrics or ():
            base = parse_metric_name(key)[0].partition("(")[0].strip()
            if base == _CPU_TIME:
                raise MetricError(
                    f"metric {key!r} of cpu_timed_scope {name!r} is measured by the scope itself: "
                    "give it another name"
                )
        self.name = name
        self.metrics = metrics
        self._scope = native.scope(name, metrics)
        self._start_ns = 0

    @property
    def id(self) -> int | None:
        """Id of the scope; None before it is entered and while no session is active."""
        return self._scope.id

    def __enter__(self) -> cpu_timed_scope:
        self._scope.__enter__()
        self._start_ns = time.perf_counter_ns()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        elapsed = time.perf_counter_ns() - self._start_ns
        try:
            if self.id is not None:
                native.add_metrics([(f"{_CPU_TIME} (ns)", "exc", elapsed)], self.id)
        finally:
            self._scope.__exit__(exc_type, exc, traceback)

    def __call__(self, func: _F) -> _F:
        """Open a new scope like this one around every call of ``func``."""
        return decorate(self, func)


def decorate(template: Any, func: _F) -> _F:
    """Wrap a function so that every call runs in a scope of its own.

    Recursive and concurrent calls do not share a scope object. A coroutine function is timed until
    it returns; run one such coroutine at a time per thread, as scopes nest. A generator function is
    timed until it has made its generator; open a scope in its body to time that.

    Args:
        template: A ``scope`` or ``cpu_timed_scope`` whose name and metrics are used.
        func: Function or coroutine function.
    """
    make, name, metrics = type(template), template.name, template.metrics
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
