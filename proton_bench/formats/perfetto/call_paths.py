"""Slices of a Perfetto file as call paths: those of proton_bench tell them, others nest."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from proton_bench.formats.base import decoded, plain_map
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.perfetto.event import Track, TrackEvent
from proton_bench.formats.perfetto.trace import PerfettoTrace, Slice
from proton_bench.formats.timeline.devices import SessionDevices
from proton_bench.formats.timeline.own_timeline import SessionTimeline
from proton_bench.formats.timeline.ranges import Work
from proton_bench.model.device import UNNAMED_KIND
from proton_bench.model.frame import FrameKind
from proton_bench.model.origin import Origin
from proton_bench.model.profile import Profile
from proton_bench.model.ranks import rank_gaps

__all__ = ["SESSION_MARK", "START_OF_SESSION", "PerfettoReader"]

_SCOPES = {"scope": FrameKind.SCOPE, "metric": FrameKind.SCOPE, "test": FrameKind.TEST}
# What repeats kernels, or tells of their insides.
_IGNORED = frozenset(("graph_scope", "program", "kernel_scope"))
_OPS = {"op": FrameKind.OP, "kernel": FrameKind.KERNEL}
_WORK = {"kernel": FrameKind.KERNEL, "copy": FrameKind.COPY, "graph": FrameKind.GRAPH}
_LAUNCH = "launch"
_STACK, _CORRELATION, _OPEN = "call_stack", "correlation", "open"
_OF_EVENTS = frozenset((_CORRELATION, _OPEN))  # unless they are texts, which a program told
# What packets hold that tell of a session.
SESSION_MARK = b"proton_bench: "
START_OF_SESSION, _END = "proton_bench: start of session", "proton_bench: end of session"
_DEVICE = re.compile(r"(?P<kind>GPU|CPU device|Device|[A-Z]{2,8}:?) ?(?P<index>\d{1,9})")
_PROCESS = re.compile(r"(?:rank (?P<rank>\d{1,9}) ?)?(?:host (?P<host>\S+))?: (?P<program>.*)")
_KINDS = {"GPU": UNNAMED_KIND, "Device": UNNAMED_KIND, "CPU device": "CPU"}
_MOST_PARENTS = 16
_UNNAMED = "(unnamed)"
_INT64 = range(2**63)
_BITS, _MOST = 62, 2**62 - 1
_decode_map = msgspec.json.Decoder(dict[str, Any]).decode
_decode_names = msgspec.json.Decoder(list[str]).decode


@dataclass(slots=True)
class _Process:
    """One recorded process.

    Attributes:
        facts: What its session told.
        has_ended: Its session came to its end.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    has_ended: bool = False


class _Path(msgspec.Struct, gc=False):
    """A call path; its number and that of the path above it are -1 until somebody asks."""

    names: list[str]
    number: int = -1
    parent: int = -1


class PerfettoReader:
    """Takes packets, and makes a profile of their slices at the end.

    Args:
        source: Name of the file, for messages.
    """

    def __init__(self, source: str) -> None:
        self._session = SessionTimeline(source)
        self.trace = PerfettoTrace(self, self._session.reading)
        self._devices = SessionDevices()
        self._processes: dict[int, _Process] = {}
        self._paths: dict[str, _Path | None] = {}
        self._device_of: dict[int, int | None] = {}

    @property
    def reading(self) -> Reading:
        """What was learned beside the tree."""
        return self._session.reading

    def add_instant(self, event: TrackEvent, sequence: int, at_ns: int) -> None:
        """Take an event without a length; those of sessions tell about them."""
        if event.name == START_OF_SESSION:
            # Parts of one process follow one another.
            process = self._processes.setdefault(sequence, _Process())
            process.facts.setdefault("start_time_ns", at_ns)
            process.facts.update(self._told_of_process(event))
            process.has_ended = False
        elif event.name == _END:
            process = self._processes.setdefault(sequence, _Process())
            process.has_ended = not event.annotations.get("is_partial")
            process.facts.update(self._told_at_end(event.annotations))

    def add_slice(self, found: Slice) -> None:
        """Take a slice that ended."""
        duration = found.end_ns - found.start_ns
        if duration < 0:
            self.reading.drop("slice that ends before it starts: left out")
            return
        path = self._path(found.annotations.get(_STACK))
        if path is not None and found.category in _IGNORED:
            return
        if path is None:
            thread = self._session.timeline.number(found.track)
            name = found.name or _UNNAMED
            self._session.timeline.add_range(
                thread, name, FrameKind.SCOPE, start_ns=found.start_ns, end_ns=found.end_ns
            )
        elif (device := self._device(found)) is not None:
            self._add_work(found, path, device)
        else:
            self._add_host_slice(found, path)

    def _add_host_slice(self, found: Slice, path: _Path) -> None:
        session = self._session
        if found.category == _LAUNCH:
            correlation = self._correlation(found)
            if correlation >= 0:
                process = session.timeline.number(("process", found.sequence))
                session.timeline.add_launch(process, correlation, 0, start_ns=found.start_ns)
            return
        if path.number < 0:
            path.number = session.path(path.names)
        if found.category in _OPS:
            session.add_op(
                session.timeline.number(found.track),
                path.number,
                _OPS[found.category],
                start_ns=found.start_ns,
                end_ns=found.end_ns,
            )
        else:
            is_open = found.annotations.get(_OPEN) is True
            kind = _SCOPES.get(found.category, FrameKind.SCOPE)
            session.add_scope(path.number, kind, None if is_open else found.end_ns - found.start_ns)
            told = _told_metrics(found)
            if told:
                session.add_metrics(path.number, told)

    def _add_work(self, found: Slice, path: _Path, device: int) -> None:
        if path.parent < 0:
            path.parent = self._session.path(path.names[:-1])
        self._session.add_work(
            path.parent,
            path.names[-1],
            Work(
                process=self._session.timeline.number(("process", found.sequence)),
                correlation=self._correlation(found),
                name=0,
                kind=_WORK.get(found.category, FrameKind.KERNEL),
                start_ns=found.start_ns,
                duration_ns=found.end_ns - found.start_ns,
                device=device,
            ),
            metrics=_told_metrics(found),
        )

    def _path(self, told: Any) -> _Path | None:
        """Return the call path that an event tells as JSON, None where it tells none.

        A text that was told once is told again by a few bytes, so it is not looked at again.
        """
        if not isinstance(told, str):
            return None
        if told in self._paths:
            return self._paths[told]
        found = self._paths[told] = self._read_path(told)
        return found

    def _read_path(self, told: str) -> _Path | None:
        try:
            names = _decode_names(told)
        except msgspec.MsgspecError:
            return None
        names = names[1:] if names[:1] == ["ROOT"] else names
        return _Path(names) if names else None

    def _device(self, found: Slice) -> int | None:
        """Return the number of the device that a track belongs to, None for the host's."""
        if found.track not in self._device_of:
            self._device_of[found.track] = self._looked_up(found)
        return self._device_of[found.track]

    def _looked_up(self, found: Slice) -> int | None:
        track = self.trace.tracks.get(found.track)
        for _ in range(_MOST_PARENTS):
            if track is None or track.process_id is not None:
                return None
            match = _DEVICE.fullmatch(track.name)
            if match is not None and not _is_line(track):
                kind = _KINDS.get(match["kind"], match["kind"].rstrip(":"))
                return self._devices.number(found.sequence, kind, int(match["index"]))
            track = self.trace.tracks.get(track.parent)
        return None

    def _correlation(self, found: Slice) -> int:
        """Return what a launch and its work have in common, -1 for nothing.

        Graphs tell the number of their launch; all else has one arrow.
        """
        told = self._number(found.annotations, _CORRELATION)
        if told or not found.flow:
            return told or -1
        # Columns hold 62 bits; the first byte of a launch's number is the last one of its flow.
        return (found.flow ^ found.flow >> _BITS) & _MOST

    def _number(self, annotations: dict[str, Any], key: str) -> int:
        found = annotations.get(key)
        return found if type(found) is int and found in _INT64 else 0

    def _told_of_process(self, event: TrackEvent) -> dict[str, Any]:
        """Return the facts of a process, from its track where its session does not tell them."""
        track = self.trace.tracks.get(event.track)
        if track is not None and track.process_id is None:  # the session has a track of its own
            track = self.trace.tracks.get(track.parent)
        match = _PROCESS.fullmatch(track.name) if track is not None else None
        found: dict[str, Any] = {}
        if match is not None:
            found["program"] = match["program"]
            if match["host"]:
                found["host"] = match["host"]
            if match["rank"]:
                found["rank"] = int(match["rank"])
        told = dict(event.annotations)
        for name, ours in (("process_id", "pid"), ("process_name", "program")):
            if name in told:
                told[ours] = told.pop(name)
        return plain_map({**found, **told}, self.reading.source)

    def _told_at_end(self, annotations: dict[str, Any]) -> dict[str, Any]:
        dropped = annotations.get("dropped")
        for reason, count in (dropped if isinstance(dropped, dict) else {}).items():
            if type(count) is int and count in _INT64:
                self.reading.drop(reason, count)
        told: dict[str, Any] = {}
        provenance = annotations.get("provenance")
        if isinstance(provenance, str):
            told = decoded(lambda: _decode_map(provenance), self.reading.source)
        drift_ns = annotations.get("clock_drift_ns")
        if type(drift_ns) is int:
            told["clock_drift_ns"] = drift_ns
        return plain_map(told, self.reading.source)

    @property
    def process_count(self) -> int:
        """How many processes have told of their sessions."""
        return len(self._processes)

    def process_facts(self) -> dict[str, Any]:
        """Return what the first session told of its process, and whether it ``is_partial``."""
        first = next(iter(self._processes.values()), None)
        if first is None:
            return {}
        return {**first.facts, "is_partial": not first.has_ended}

    def profile(self, *, is_cut: bool) -> tuple[Profile, bool]:
        """Return the profile of all that was added, and whether some of it is missing.

        Args:
            is_cut: The file ends inside a packet.

        Raises:
            ProfileFormatError: Numbers are not what they can be.
        """
        self.trace.finish()
        self.reading.provenance = self._provenance()
        profile = self._session.profile(self._devices.table(), self._devices.host)
        has_open = any(not process.has_ended for process in self._processes.values())
        return profile, is_cut or has_open

    def _provenance(self) -> dict[str, Any]:
        facts = [process.facts for process in self._processes.values()]
        found: dict[str, Any] = {
            "tool": "proton_bench" if facts else "perfetto",
            "format": "perfetto",
        }
        if len(facts) == 1:
            found = {**facts[0], **found}
        elif facts:
            found["parts"] = [
                {key: value for key, value in each.items() if isinstance(value, int | str)}
                for each in facts
            ]
            starts = [each["start_time_ns"] for each in facts if "start_time_ns" in each]
            if starts:
                found["start_time_ns"] = min(starts)
        gaps = rank_gaps(
            Origin.of(process.facts, "", is_partial=not process.has_ended)
            for process in self._processes.values()
        )
        if len(facts) > 1 and gaps.present:
            found["ranks"] = gaps.to_plain()
        return found


def _told_metrics(found: Slice) -> dict[str, Any]:
    """Return what the program told of a slice."""
    told = found.annotations
    if len(told) == 1:  # its call path, as of nearly all
        return {}
    return {
        key: value
        for key, value in told.items()
        if key != _STACK and (isinstance(value, str) or key not in _OF_EVENTS)
    }


def _is_line(track: Track) -> bool:
    """Tell whether a track is a thread: one may be called like a device."""
    return track.thread_id is not None
