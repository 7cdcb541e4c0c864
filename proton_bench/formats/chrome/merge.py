"""Timelines in Chrome's format laid beside one another, on one time base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

from proton_bench.errors import UsageError
from proton_bench.formats.base import corrupt, decoded, plain_map
from proton_bench.formats.chrome.event import TraceHead, nanoseconds
from proton_bench.formats.chrome.own_facts import (
    dropped_records,
    is_session_timeline,
    is_unfinished,
    merged_processes,
    process_facts,
)
from proton_bench.formats.chrome.split import Batch, split_trace
from proton_bench.formats.chrome.stream import opened_trace
from proton_bench.formats.timeline.inputs import TimelineInput, copying, merged_already
from proton_bench.formats.timeline.ranges import MAX_NS
from proton_bench.model.origin import Origin, is_partial_name
from proton_bench.support.text import visible

__all__ = ["merge_chrome", "survey_chrome"]

_BASE = "baseTimeNanoseconds"
_MOST_PROCESSES = 1 << 16
_ROOM = 10_000_000  # between the sort numbers of two files; Kineto's go up to 5 000 008
_DECIMALS = 6  # picoseconds
_IDS = ("id", "bind_id")
_METADATA = msgspec.Raw(b'"M"')
_OF_PROCESSES = (msgspec.Raw(b'"process_name"'), msgspec.Raw(b'"process_sort_index"'))
_INT53 = range(2**53)

_Event = dict[str, msgspec.Raw]
_decode_events = msgspec.json.Decoder(list[_Event]).decode
_decode_any = msgspec.json.Decoder().decode
_decode_time = msgspec.json.Decoder(float).decode
_encode = msgspec.json.encode


class _Ids(msgspec.Struct, gc=False):
    """Fields of an event that may be the same in two files."""

    pid: int | str | None = None
    id: Any = None
    bind_id: Any = None


_decode_ids = msgspec.json.Decoder(list[_Ids]).decode


@dataclass(slots=True)
class _Survey:
    """Names and numbers that one file uses.

    Attributes:
        pids: Its names of processes.
        most_id: Largest number of a flow.
    """

    pids: dict[int | str, None] = field(default_factory=dict)
    most_id: int = 0

    def take(self, event: _Ids) -> None:
        """Note the numbers of an event."""
        if event.pid is not None:
            self.pids.setdefault(event.pid)
        for number in (event.id, event.bind_id):
            if type(number) is int and number in _INT53:
                self.most_id = max(self.most_id, number)


def survey_chrome(file: Path) -> TimelineInput:
    """Return the process that a file describes.

    Raises:
        UsageError: It does not say when its times begin, so that it cannot be laid beside others,
            or is of several processes already.
        ProfileFormatError: It is damaged, or not a timeline.
        OSError: It cannot be read.
    """
    source = visible(file)
    head = TraceHead()
    for piece in _pieces(file, source):
        if not isinstance(piece, Batch):
            _take_facts(piece.content, head, source, is_whole=piece.is_whole)
    facts = head.facts
    base = facts.get(_BASE)
    if type(base) is not int:
        raise UsageError(
            f"{source}: it does not say when its times begin ({_BASE}), so it cannot be laid "
            "beside others; Triton 3.9.0, torch 2.4 and proton_bench write that"
        )
    own = process_facts(facts)
    merged = merged_processes(facts)
    if len({(each.get("host"), each.get("pid"), each.get("rank")) for each in merged}) > 1:
        raise merged_already(source)
    if merged:  # parts of one
        own = {**merged[0], **own}
    is_partial = is_session_timeline(head) and is_unfinished(facts)
    return TimelineInput(file, source, Origin.of(own, file.name, is_partial=is_partial), facts)


def merge_chrome(inputs: Sequence[TimelineInput], stream: IO[bytes]) -> None:
    """Write all events of several files as one.

    Processes get numbers of their own and names with rank and host; times count from the
    earliest base of all.

    Args:
        inputs: Files in their order; those of one process follow one another.
        stream: Where to write.

    Raises:
        UsageError: They are of different tools.
        ProfileFormatError: A file is damaged.
    """
    _check_alike(inputs)
    base = min(each.facts[_BASE] for each in inputs)
    stream.write(_head(inputs, base))
    merger = _Merger(stream, base)
    for each in inputs:
        with copying(each):
            merger.add(each)
    stream.write(b"]}\n")


class _Merger:
    def __init__(self, stream: IO[bytes], base_ns: int) -> None:
        self._stream = stream
        self._base_ns = base_ns
        self._processes: dict[tuple[object, int | str], int] = {}
        self._ids: dict[object, int] = {}
        self._next_id = 0
        self._is_first = True
        self._files = 0

    def add(self, found: TimelineInput) -> None:
        """Write the events of one file."""
        survey = _survey(found)
        # Parts of one process share its numbers; arrows may lead from one part to the next.
        process: object = found.origin.place if found.origin.part is not None else found.source
        for pid in survey.pids:
            key = (process, pid)
            if key not in self._processes:
                self._processes[key] = len(self._processes)
                self._name_process(self._processes[key], pid, found)
        offset = self._ids.setdefault(process, self._next_id)
        self._next_id = max(self._next_id, offset + survey.most_id + 1)
        shift_us = (found.facts[_BASE] - self._base_ns) / 1e3
        for piece in _pieces(found.file, found.source):
            if isinstance(piece, Batch):
                events = decoded(lambda c=piece.content: _decode_events(c), found.source)  # type: ignore[misc]
                for event in events:
                    self._shift(event, found.source, shift_us)
                    self._renumber(event, process, offset)
                    self._write(event)
        self._files += 1

    def _shift(self, event: _Event, source: str, shift_us: float) -> None:
        if "ts" not in event:
            return
        time_us = decoded(lambda: _decode_time(event["ts"]), source)
        if not abs(nanoseconds(time_us) or 0) < MAX_NS:
            raise corrupt(source, f"{time_us} microseconds are not a valid time")
        event["ts"] = msgspec.Raw(_encode(round(time_us + shift_us, _DECIMALS)))

    def _renumber(self, event: _Event, process: object, offset: int) -> None:
        if "pid" in event:
            pid = _decode_any(event["pid"])
            number = self._processes.get((process, pid)) if isinstance(pid, int | str) else None
            if number is not None:
                event["pid"] = msgspec.Raw(_encode(number))
        if not offset:
            return
        for key in _IDS:
            if key in event:
                before = _decode_any(event[key])
                is_number = type(before) is int and before in _INT53
                moved = before + offset if is_number else f"{offset}.{before}"
                event[key] = msgspec.Raw(_encode(moved))

    def _name_process(self, number: int, pid: int | str, found: TimelineInput) -> None:
        name = found.label if pid == 0 else f"{found.label}: {pid}"
        order = self._files * _ROOM + number
        for what, arguments in (
            ("process_name", {"name": name}),
            ("process_sort_index", {"sort_index": order}),
        ):
            event = {"args": arguments, "name": what, "ph": "M", "pid": number, "tid": 0}
            self._separate()
            self._stream.write(_encode(event))

    def _write(self, event: _Event) -> None:
        if event.get("ph") == _METADATA and event.get("name") in _OF_PROCESSES:
            return  # its name with the rank is there
        self._separate()
        self._stream.write(_encode(event))

    def _separate(self) -> None:
        if not self._is_first:
            self._stream.write(b",\n")
        self._is_first = False


def _survey(found: TimelineInput) -> _Survey:
    survey = _Survey()
    for piece in _pieces(found.file, found.source):
        if isinstance(piece, Batch):
            events = decoded(lambda c=piece.content: _decode_ids(c), found.source)  # type: ignore[misc]
            for event in events:
                survey.take(event)
        if len(survey.pids) > _MOST_PROCESSES:
            raise corrupt(found.source, "it holds more processes than a timeline can have")
    return survey


def _pieces(file: Path, source: str) -> Iterator[Any]:
    with opened_trace(file) as stream:
        yield from split_trace(stream, source, may_be_cut=is_partial_name(file.name))


def _take_facts(content: bytes, head: TraceHead, source: str, *, is_whole: bool) -> None:
    closed = content if is_whole else content + (b"]" if content.lstrip()[:1] == b"[" else b"]}")
    frame = decoded(lambda: _decode_any(closed), source)
    if isinstance(frame, dict):
        frame.pop("traceEvents", None)
        head.facts = plain_map(frame, source) | head.facts


def _check_alike(inputs: Sequence[TimelineInput]) -> None:
    ours = [is_session_timeline(TraceHead(facts=each.facts)) for each in inputs]
    if len(set(ours)) > 1:
        one, other = inputs[ours.index(True)], inputs[ours.index(False)]
        raise UsageError(
            f"{one.source} is of proton_bench and {other.source} of another tool: merge timelines "
            "of one tool"
        )


def _head(inputs: Sequence[TimelineInput], base: int) -> bytes:
    facts: dict[str, Any] = {_BASE: base}
    for key in ("displayTimeUnit", "schemaVersion", "deviceProperties"):
        found = [each.facts[key] for each in inputs if key in each.facts]
        if found:
            facts[key] = found[0]
    if is_session_timeline(TraceHead(facts=inputs[0].facts)):
        processes = [process_facts(each.facts) for each in inputs]
        facts["processes"] = [
            {key: value for key, value in each.items() if isinstance(value, int | str)}
            for each in processes
        ]
        dropped: Counter[str] = Counter()
        for each in inputs:
            dropped.update(dropped_records(each.facts))
        facts["proton_bench"] = {
            "is_partial": any(each.origin.is_partial for each in inputs),
            "dropped": dict(dropped),
        }
    return _encode(facts)[:-1] + b',"traceEvents":[\n'
