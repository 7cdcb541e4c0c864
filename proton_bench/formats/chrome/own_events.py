"""Traces of proton_bench in Chrome's format: every event tells its call path and its device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from proton_bench.formats.base import corrupt
from proton_bench.formats.chrome.event import TraceEvent, TraceHead, nanoseconds
from proton_bench.formats.timeline.devices import SessionDevices
from proton_bench.formats.timeline.own_timeline import SessionTimeline
from proton_bench.formats.timeline.ranges import Work
from proton_bench.model.device import UNNAMED_KIND
from proton_bench.model.frame import ROOT_NAME, FrameKind
from proton_bench.model.profile import Profile

__all__ = [
    "SessionTraceReader",
    "dropped_records",
    "is_session_trace",
    "is_unfinished",
    "process_facts",
]

_SCOPES = {"scope": FrameKind.SCOPE, "metric": FrameKind.SCOPE, "test": FrameKind.TEST}
_OPS = {"cpu_op": FrameKind.OP, "kernel": FrameKind.KERNEL}
_WORK = {
    "kernel": FrameKind.KERNEL,
    "gpu_memcpy": FrameKind.COPY,
    "gpu_memset": FrameKind.COPY,
    "graph": FrameKind.GRAPH,
}
_LAUNCH = "cuda_runtime"
# What repeats kernels, or tells of their insides.
_IGNORED = frozenset(("program", "kernel_scope"))
_END = "proton_bench"  # key of what the session told at its end
_PROCESSES = "processes"  # of a merged trace: the facts of each
_INT32, _INT64 = range(2**31), range(2**63)


def is_session_trace(head: TraceHead) -> bool:
    """Say whether the trace is ours, from the keys before its events."""
    facts = head.facts
    return "baseTimeNanoseconds" in facts and (
        type(facts.get("process_id")) is int or isinstance(facts.get(_PROCESSES), list)
    )


def process_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what the keys beside the events tell of the process, by the names of provenance."""
    found: dict[str, Any] = {"tool": "proton_bench", "format": "chrome_trace"}
    base = facts.get("baseTimeNanoseconds")
    if type(base) is int:
        found["base_time_ns"] = found["start_time_ns"] = base
    for key, ours in (("host_name", "host"), ("process_id", "pid"), ("process_name", "program")):
        if isinstance(facts.get(key), int | str):
            found[ours] = facts[key]
    distributed = facts.get("distributedInfo")
    if isinstance(distributed, dict):
        for key in ("rank", "local_rank", "world_size"):
            if type(distributed.get(key)) is int:
                found[key] = distributed[key]
    if isinstance(facts.get(_PROCESSES), list):
        found[_PROCESSES] = facts[_PROCESSES]
    told = _told_at_end(facts).get("provenance")
    return {**found, **told} if isinstance(told, dict) else found


def is_unfinished(facts: dict[str, Any]) -> bool:
    """Tell whether a session did not come to its end, from the keys beside its events."""
    return _END not in facts or _told_at_end(facts).get("is_partial") is True


def dropped_records(facts: dict[str, Any]) -> dict[str, int]:
    """Return what a session lost, by reason."""
    told = _told_at_end(facts).get("dropped")
    counts = told.items() if isinstance(told, dict) else ()
    return {key: count for key, count in counts if type(count) is int and count in _INT64}


def _told_at_end(facts: dict[str, Any]) -> dict[str, Any]:
    told = facts.get(_END)
    return told if isinstance(told, dict) else {}


class SessionTraceReader:
    """Takes batches of events, and makes a profile of them at the end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._session = SessionTimeline(source)
        self._devices = SessionDevices()

    def add(self, events: Iterable[TraceEvent]) -> None:
        """Take a batch.

        Raises:
            ProfileFormatError: A field has a value that it cannot have.
        """
        for event in events:
            if event.ph == "X":
                self._add_slice(event)

    def _add_slice(self, event: TraceEvent) -> None:
        reading, arguments = self._session.reading, event.arguments
        start = nanoseconds(event.ts, self._source)
        duration = nanoseconds(event.dur, self._source)
        if start is None or duration is None or duration < 0:
            reading.drop("slice without a time, or of negative length: left out")
            return
        path = self._path(arguments.call_stack)
        if event.cat in _IGNORED or (arguments.call_stack is None and event.cat in _SCOPES):
            return  # a range of a graph has no path: its kernels tell the time
        device = self._integer(arguments.device, "device", _INT32)
        if not path:
            reading.drop("slice without a call path: left out")
        elif device is not None:
            self._add_work(event, path, start=start, duration=duration)
        elif event.cat == _LAUNCH:
            correlation = self._integer(arguments.correlation, "correlation", _INT64)
            if correlation:
                process = self._session.timeline.number(event.pid)
                self._session.timeline.add_launch(process, correlation, 0, start_ns=start)
        elif event.cat in _OPS:
            thread = self._session.timeline.number((event.pid, event.tid))
            self._session.add_op(
                thread,
                self._session.path(path),
                _OPS[event.cat],
                start_ns=start,
                end_ns=start + duration,
            )
        elif event.cat in _SCOPES:
            number = self._session.path(path)
            is_open = arguments.open is True
            self._session.add_scope(number, _SCOPES[event.cat], None if is_open else duration)
            self._session.add_metrics(number, arguments.metrics)
        else:
            reading.drop("slice of an unknown category: left out")

    def _add_work(self, event: TraceEvent, path: list[str], *, start: int, duration: int) -> None:
        kind = _WORK.get(event.cat)
        if kind is None:
            self._session.reading.drop("device work of an unknown category: left out")
            return
        arguments = event.arguments
        self._session.add_work(
            self._session.path(path[:-1]),
            path[-1],
            Work(
                process=self._session.timeline.number(event.pid),
                correlation=self._integer(arguments.correlation, "correlation", _INT64) or -1,
                name=0,
                kind=kind,
                start_ns=start,
                duration_ns=duration,
                device=self._devices.number(event.pid, UNNAMED_KIND, arguments.device),
            ),
            metrics=arguments.metrics,
        )

    def _path(self, stack: Any) -> list[str]:
        if stack is None:
            return []
        if not isinstance(stack, list) or not all(isinstance(name, str) for name in stack):
            raise corrupt(self._source, "a call_stack is no list of names")
        return stack[1:] if stack[:1] == [ROOT_NAME] else stack

    def _integer(self, value: Any, what: str, allowed: range) -> int | None:
        if value is None:
            return None
        if type(value) is not int or value not in allowed:
            raise corrupt(self._source, f"{what} is {str(value)[:60]!r}, not a number of it")
        return value

    def profile(self, head: TraceHead) -> Profile:
        """Return the profile of all that was added.

        Raises:
            ProfileFormatError: Numbers are not what they can be.
        """
        self._session.reading.provenance = process_facts(head.facts)
        for reason, count in dropped_records(head.facts).items():
            self._session.reading.drop(reason, count)
        profile = self._session.profile(self._devices.table(), self._devices.host)
        return replace(profile, partial=is_unfinished(head.facts))
