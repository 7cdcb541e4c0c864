"""The call paths of a timeline in Perfetto's format: ours, or of another tool."""

from __future__ import annotations

from typing import IO

from proton_bench.formats.base import corrupt
from proton_bench.formats.perfetto.slices import START_OF_SESSION, PerfettoSlices
from proton_bench.formats.perfetto.stream import PacketStream
from proton_bench.formats.perfetto.trace import Slice
from proton_bench.formats.protobuf import DamagedMessage, read_fields, varint
from proton_bench.formats.timeline.embedded_profiles import EmbeddedProfiles, embedded_or
from proton_bench.formats.timeline.own_timeline import SessionTimelines
from proton_bench.model.frame import FrameKind
from proton_bench.model.origin import Origin
from proton_bench.model.profile import Profile

__all__ = ["read_timeline"]

_START = START_OF_SESSION.encode()
_SEQUENCE, _PROFILE, _REST, _PIECE = 10, 1984, 1, 2
_PROFILE_KEY = varint(_PROFILE << 3 | 2)
_KEY_ENDS = 16  # behind the number of the sequence
_BEFORE_SESSION = 1000  # packets: a session begins with a few of them
_UNNAMED = "(unnamed)"
_OTHERS = {"tool": "perfetto", "format": "perfetto"}


def read_timeline(stream: IO[bytes], source: str) -> Profile:
    """Return the profile; one that was cut off is read as far as it goes and is partial.

    Arguments and errors as for `Format.decode`.
    """
    try:
        return embedded_or(
            lambda: _embedded_profile(stream, source),
            lambda: _profile_of_slices(stream, source),
        )
    except (OverflowError, MemoryError) as error:
        raise corrupt(source, f"it holds more than this release can read: {error}") from None


def _embedded_profile(stream: IO[bytes], source: str) -> Profile | None:
    """Return the profile that sessions wrote into the file, None unless all of them did.

    Of a timeline of another tool, only the beginning is read.
    """
    profiles, sessions = EmbeddedProfiles(source), 0
    try:
        for place, packet in enumerate(PacketStream(stream, source)):
            if _PROFILE_KEY in packet[:_KEY_ENDS]:
                _add_piece(profiles, packet)
            elif _START in packet:
                sessions += 1
            elif not sessions and place >= _BEFORE_SESSION:
                return None
    except DamagedMessage as error:
        raise corrupt(source, f"a packet is damaged: {error}") from None
    return profiles.profile(sessions) if sessions else None


def _add_piece(profiles: EmbeddedProfiles, packet: bytes) -> None:
    fields = dict(read_fields(packet))
    content = fields.get(_PROFILE)
    inner = dict(read_fields(content)) if isinstance(content, bytes) else {}
    piece, rest = inner.get(_PIECE), inner.get(_REST, 0)
    if isinstance(piece, bytes) and isinstance(rest, int):
        profiles.add(fields.get(_SEQUENCE), piece, rest)


def _profile_of_slices(stream: IO[bytes], source: str) -> Profile:
    timelines = SessionTimelines(source)

    def nest(found: Slice) -> None:
        timeline = timelines.of(Origin()).timeline
        timeline.add_range(
            timeline.number(found.track),
            found.name or _UNNAMED,
            FrameKind.SCOPE,
            start_ns=found.start_ns,
            end_ns=found.end_ns,
        )

    slices = PerfettoSlices(timelines.reading, timelines.add, nest)
    stream.seek(0)
    packets = PacketStream(stream, source)
    slices.trace.add(packets)
    slices.trace.finish()
    facts = slices.facts() or {Origin(): _OTHERS}
    return timelines.profile(facts, is_partial=packets.is_cut or slices.is_unfinished)
