"""Timelines in Perfetto's format one behind the other, which makes one timeline of them."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from proton_bench.errors import OutputError, UsageError
from proton_bench.formats.base import corrupt
from proton_bench.formats.limits import reading
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.perfetto.reader import SESSION_MARK, PerfettoSlices
from proton_bench.formats.perfetto.stream import PacketStream
from proton_bench.formats.perfetto.trace import number_field
from proton_bench.formats.protobuf import DamagedMessage, read_fields, varint
from proton_bench.model.origin import Origin
from proton_bench.support.inputs import open_file
from proton_bench.support.text import visible


@dataclass(frozen=True, slots=True)
class TimelineInput:
    """A file and its facts, read before its events are copied.

    Attributes:
        file: The file.
        source: Its name, for messages.
        origin: Which process it comes from.
        facts: What it says of itself.
    """

    file: Path
    source: str
    origin: Origin
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What its tracks are called: rank, host and number of the process, as far as known."""
        origin = self.origin
        parts = [] if origin.rank is None else [f"rank {origin.rank}"]
        if origin.host:
            parts.append(f"host {origin.host}")
        if origin.process_id is not None:
            parts.append(f"process {origin.process_id}")
        if origin.is_partial:
            parts.append("partial")
        return " ".join(parts) or self.file.name


@contextmanager
def copying(found: TimelineInput) -> Iterator[None]:
    """Name the file where it cannot be read again; errors of the output pass.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read {found.source}: {reason}; name a file that exists") from None


def merged_already(source: str) -> UsageError:
    """Return the error for a file whose processes cannot be distinguished from others."""
    return UsageError(
        f"{source} is of several processes already: name the files that it was merged from"
    )


_SEQUENCE, _EVENT, _DESCRIPTOR, _UUID = 10, 11, 60, 1
_PACKET = b"\x0a"
_MEMBER_BYTES = 1 << 22
_TRACKS, _SEQUENCES, _IS_COPIED = "tracks", "sequences", "is_copied"


def survey_perfetto(file: Path) -> TimelineInput:
    """Return the process that a file describes, and the numbers that the file uses.

    Raises:
        UsageError: It is of several processes already.
        ProfileFormatError: It is damaged, or not a timeline.
        OSError: It cannot be read.
    """
    source = visible(file)
    survey = _Survey(source)
    with open_file(file) as stream, reading(file.stat().st_size, source):
        packets = PacketStream(stream, source)
        for packet in packets:
            survey.take(packet)
    processes = list(survey.slices.facts().values())
    if len(processes) > 1:
        raise merged_already(source)
    is_partial = packets.is_cut or survey.slices.is_unfinished
    origin = Origin.of(processes[0] if processes else {}, file.name, is_partial=is_partial)
    numbers: dict[str, Any] = {_TRACKS: survey.tracks, _SEQUENCES: survey.sequences}
    numbers[_IS_COPIED] = packets.is_packed and not packets.is_cut
    return TimelineInput(file, source, origin, numbers)


class _Survey:
    """Numbers that one file uses.

    Attributes:
        slices: Knows the process.
        tracks: Numbers of tracks.
        sequences: Numbers of sequences.
    """

    def __init__(self, source: str) -> None:
        self.slices = PerfettoSlices(Reading(source), _leave_out, _leave_out)
        self.tracks: set[int] = set()
        self.sequences: set[int] = set()
        self._source = source

    def take(self, packet: bytes) -> None:
        """Note the numbers of a packet."""
        fields = _fields(packet, self._source)
        self.sequences.add(number_field(fields, _SEQUENCE))
        descriptor = fields.get(_DESCRIPTOR)
        if isinstance(descriptor, bytes):
            self.tracks.add(number_field(_fields(descriptor, self._source), _UUID))
        # Only events of sessions matter, and the packets that they count on.
        if _EVENT not in fields or SESSION_MARK in packet:
            self.slices.trace.add([packet])


def _leave_out(found: object) -> None:
    del found


def merge_perfetto(inputs: Sequence[TimelineInput], stream: IO[bytes]) -> None:
    """Write all packets of several files as one.

    Whole gzip members are copied as they are. A file that was cut off loses its torn end.

    Raises:
        UsageError: Two files have the same numbers for tracks, and are not parts of one process.
    """
    _check_numbers(inputs)
    for each in inputs:
        with copying(each):
            _copy(each, stream)


def _copy(found: TimelineInput, stream: IO[bytes]) -> None:
    size = found.file.stat().st_size
    with open_file(found.file) as source, reading(size, found.source):
        if found.facts[_IS_COPIED]:
            shutil.copyfileobj(source, stream, _MEMBER_BYTES)
        else:
            _pack(PacketStream(source, found.source), stream)


def _pack(packets: PacketStream, stream: IO[bytes]) -> None:
    """Write packets as gzip members of some MiB."""
    kept: list[bytes] = []
    size = 0
    for packet in packets:
        kept.append(_PACKET + varint(len(packet)) + packet)
        size += len(kept[-1])
        if size >= _MEMBER_BYTES:
            stream.write(_member(kept))
            kept, size = [], 0
    if kept:
        stream.write(_member(kept))


def _member(packets: Sequence[bytes]) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(b"".join(packets)) + packer.flush()


def _fields(content: bytes, source: str) -> dict[int, int | bytes]:
    try:
        return dict(read_fields(content))
    except DamagedMessage as error:
        raise corrupt(source, f"a packet is damaged: {error}") from None


def _check_numbers(inputs: Sequence[TimelineInput]) -> None:
    """Check that no two files of different processes would write on the same tracks.

    Raises:
        UsageError: Two would.
    """
    owners: dict[tuple[str, int], TimelineInput] = {}
    for each in inputs:
        used = [(kind, number) for kind in (_TRACKS, _SEQUENCES) for number in each.facts[kind]]
        for key in used:
            other = owners.setdefault(key, each)
            if other is not each and not _are_parts(other, each):
                raise UsageError(
                    f"{other.source} and {each.source} use the same numbers of tracks: they are "
                    "the same recording, or of a tool that counts anew in each file, and cannot be "
                    "one timeline; name one of them"
                )


def _are_parts(one: TimelineInput, other: TimelineInput) -> bool:
    parts = {one.origin.part, other.origin.part}
    return len(parts) > 1 and None not in parts and one.origin.place == other.origin.place
