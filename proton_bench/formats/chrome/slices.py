"""Timelines of ours in Chrome's format: slices one by one, and the profile of the whole."""

from __future__ import annotations

import binascii
import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from proton_bench.formats.base import corrupt
from proton_bench.formats.chrome.event import (
    TraceEvent,
    TraceHead,
    call_path,
    nanoseconds,
    read_trace,
)
from proton_bench.formats.chrome.split import Readable
from proton_bench.formats.limits import reading, take_bytes
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.timeline.own_timeline import (
    EmbeddedProfiles,
    SessionTimelines,
    embedded_or,
)
from proton_bench.formats.timeline.slices import (
    HOST,
    REPEATS,
    Take,
    TimelineSlice,
    copied_bytes,
    is_further_lane,
    not_ours,
)
from proton_bench.model.origin import Origin, is_partial_name
from proton_bench.model.profile import Profile
from proton_bench.support.inputs import open_file
from proton_bench.support.text import visible

_END = "proton_bench"  # key of what the session wrote at its end


def is_session_timeline(head: TraceHead) -> bool:
    """Say whether the timeline is ours, from the keys before its events."""
    facts = head.facts
    base = facts.get("baseTimeNanoseconds")
    return type(base) is int and base in range(2**63) and type(facts.get("process_id")) is int


def process_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts about the process from the keys beside the events, under keys of provenance."""
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
    provenance = _end_facts(facts).get("provenance")
    return {**found, **provenance} if isinstance(provenance, dict) else found


def is_unfinished(facts: dict[str, Any]) -> bool:
    """Say whether a session did not reach its end, from the keys beside its events."""
    return _END not in facts or _end_facts(facts).get("is_partial") is True


def dropped_records(facts: dict[str, Any]) -> dict[str, int]:
    """Return what a session lost, by reason."""
    dropped = _end_facts(facts).get("dropped")
    counts = dropped.items() if isinstance(dropped, dict) else ()
    return {key: count for key, count in counts if type(count) is int and count in range(2**63)}


def _end_facts(facts: dict[str, Any]) -> dict[str, Any]:
    found = facts.get(_END)
    return found if isinstance(found, dict) else {}


GZIP = b"\x1f\x8b"


@contextmanager
def opened_trace(file: Path) -> Iterator[Readable]:
    """Open a timeline, plain or compressed by gzip; one called partial may end anywhere."""
    with open_file(file) as stream:
        size = file.stat().st_size
        with reading(size, visible(file)):
            yield unpacked(stream, visible(file))


def unpacked(stream: IO[bytes], source: str) -> Readable:
    """Return the content of a file from its start; arguments as for `Format.decode`."""
    stream.seek(0)
    is_packed = stream.read(2) == GZIP
    stream.seek(0)
    return _Unpacked(stream, source) if is_packed else stream


class _Unpacked:
    """A compressed stream, which may end where it was cut off."""

    def __init__(self, stream: IO[bytes], source: str) -> None:
        self._stream = gzip.GzipFile(fileobj=_Watched(stream))
        self._source = source

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, none at the end.

        Raises:
            ProfileFormatError: They are damaged, or more than a file of its size may have.
        """
        pieces: list[bytes] = []
        try:
            # Reads grow with a value that is larger than a block.
            while size > 0 and (piece := self._stream.read1(size)):
                pieces.append(piece)
                size -= len(piece)
                take_bytes(len(piece))
        except EOFError as error:
            if not is_partial_name(self._source):
                raise corrupt(self._source, f"gzip: {error}") from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise corrupt(self._source, f"gzip: {error}") from None
        return b"".join(pieces)


class _Watched:
    """A compressed stream that looks at the clock: members may hold nothing at all."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes.

        Raises:
            ProfileFormatError: The file has taken too long.
        """
        take_bytes(0)
        return self._stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_PROFILE = "proton_bench.profile"
_KINDS = {"cpu_op": "op", "cuda_runtime": "launch", "gpu_memcpy": "copy", "gpu_memset": "copy"}
_GRAPH_ROWS = frozenset(("scope", "metric", "test"))
_INT32, _INT64 = range(2**31), range(2**63)


def read_session_profile(stream: IO[bytes], source: str) -> Profile:
    """Return the profile in a timeline of ours; arguments and errors as for `Format.decode`."""

    def of_slices() -> Profile:
        timelines = SessionTimelines(source)
        slices = _ChromeSlices(timelines.reading, timelines.add)
        slices.read(unpacked(stream, source))
        return timelines.profile(slices.facts, is_partial=slices.is_unfinished)

    return embedded_or(lambda: _embedded_profile(unpacked(stream, source), source), of_slices)


def _embedded_profile(stream: Readable, source: str) -> Profile | None:
    """Return the profile that the session wrote into the file, None if it did not."""
    head, profiles = TraceHead(), EmbeddedProfiles(source)
    is_partial = is_partial_name(source)
    mark = _PROFILE.encode()
    for batch in read_trace(stream, source, head, may_be_cut=is_partial, holding=mark):
        for event in batch:
            piece, rest = event.arguments.profile, event.arguments.rest
            if event.name == _PROFILE and isinstance(piece, str) and type(rest) is int:
                profiles.add(event.pid, _decode_piece(piece, source), rest)
    return profiles.profile(1)


def _decode_piece(piece: str, source: str) -> bytes:
    try:
        return binascii.a2b_base64(piece, strict_mode=True)
    except ValueError as error:
        raise corrupt(source, f"a profile in it: {error}") from None


def read_chrome_slices(file: Path, take: Take) -> Reading:
    """Hand over every slice of a file, and return what could not be read of it.

    Raises:
        UsageError: It is not a timeline of proton_bench.
        ProfileFormatError: It is damaged.
        OSError: It cannot be read.
    """
    slices = _ChromeSlices(Reading(visible(file)), take)
    with opened_trace(file) as stream:
        slices.read(stream)
    return slices.reading


class _ChromeSlices:
    """Hands over slices.

    Attributes:
        reading: Receives what could not be read, and its losses.
        facts: Provenance of the process.
        is_unfinished: Whether a session did not reach its end.
    """

    def __init__(self, reading: Reading, take: Take) -> None:
        self.reading = reading
        self.facts: dict[Origin, dict[str, Any]] = {}
        self.is_unfinished = True
        self._take = take
        self._base_ns: int | None = None  # None: the head was not read yet
        self._origin = Origin()
        self._program = ""
        self._threads: dict[object, tuple[int, str]] = {}

    def read(self, stream: Readable) -> None:
        """Hand over the slices of a file."""
        source, head = self.reading.source, TraceHead()
        for batch in read_trace(stream, source, head, may_be_cut=is_partial_name(source)):
            self._take_head(head)
            self._add_all(batch)
        self._take_head(head)
        self.facts[self._origin] = process_facts(head.facts)
        self.is_unfinished = is_unfinished(head.facts)
        for reason, count in dropped_records(head.facts).items():
            self.reading.drop(reason, count)

    def _take_head(self, head: TraceHead) -> None:
        if self._base_ns is not None:
            return
        if not is_session_timeline(head):
            raise not_ours(self.reading.source)
        facts = process_facts(head.facts)
        self._base_ns = head.facts["baseTimeNanoseconds"]
        self._origin = Origin.of(facts, Path(self.reading.source).name)
        self._program = str(facts.get("program") or "")

    def _add_all(self, events: Iterable[TraceEvent]) -> None:
        for event in events:
            if event.ph == "M":
                self._add_name(event)
            elif event.ph == "X" and event.cat not in REPEATS:
                self._add_slice(event)

    def _add_name(self, event: TraceEvent) -> None:
        arguments = event.arguments
        name = arguments.name if isinstance(arguments.name, str) else ""
        if event.name == "thread_name" and type(arguments.thread_id) is int:
            # Lanes beside the first are not threads of the system.
            number = event.tid if is_further_lane(name) else arguments.thread_id
            called = arguments.thread_name if isinstance(arguments.thread_name, str) else name
            self._threads[event.pid, event.tid] = (number if type(number) is int else 0, called)

    def _add_slice(self, event: TraceEvent) -> None:
        source, arguments = self.reading.source, event.arguments
        start, duration = nanoseconds(event.ts), nanoseconds(event.dur)
        if start is None or duration is None or duration < 0:
            self.reading.drop("slice without a time, or of negative length: left out")
            return
        path = call_path(arguments.call_stack, source)
        if not path:
            if event.cat not in _GRAPH_ROWS:  # those have none: their kernels have the time
                self.reading.drop("slice without a call path: left out")
            return
        device = self._integer(arguments.device, "device", _INT32)
        lane, called = arguments.stream, ""
        if device is None:
            own = event.tid if type(event.tid) is int else 0
            lane, called = self._threads.get((event.pid, event.tid), (own, ""))
        values = arguments.metrics
        if not isinstance(values, dict | None):
            raise corrupt(source, "the metrics of an event are not a map")
        self._take(
            TimelineSlice(
                origin=self._origin,
                path=path,
                program=self._program,
                kind=_KINDS.get(event.cat, event.cat),
                name=_plain_name(event.name, values),
                start_ns=(self._base_ns or 0) + start,
                duration_ns=duration,
                device=HOST if device is None else device,
                row=(event.pid, event.tid),
                lane=lane if type(lane) is int else 0,
                lane_name=called,
                correlation=self._integer(arguments.correlation, "correlation", _INT64) or 0,
                moved_bytes=copied_bytes(values, arguments.bytes),
                values=values or {},
                is_open=arguments.open is True,
            )
        )

    def _integer(self, value: Any, what: str, allowed: range) -> int | None:
        if value is None:
            return None
        if type(value) is not int or value not in allowed:
            source = self.reading.source
            raise corrupt(source, f"{what} is {str(value)[:60]!r}, not a number of it")
        return value


def _plain_name(name: str, values: dict[str, Any] | None) -> str:
    """Return the name of a scope without the values that stand behind it."""
    if not values:
        return name
    behind = ", ".join(f"<{key}, {value}>" for key, value in sorted(values.items()))
    return name.removesuffix(f": {behind}")
