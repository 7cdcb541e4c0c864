"""The packets of a Perfetto file, piece by piece: plain, or in gzip members, maybe cut off."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from itertools import chain
from typing import IO, TYPE_CHECKING

from proton_bench.formats.base import corrupt
from proton_bench.formats.limits import take_bytes, take_items
from proton_bench.formats.protobuf import DamagedMessage, read_fields

if TYPE_CHECKING:
    from proton_bench.formats.chrome.split import Readable


GZIP = b"\x1f\x8b"
MAX_PACKET = 1 << 25
_BLOCK = 1 << 18
_LARGE = 1 << 16
_BYTES_OF_FIELD = 6  # in large packets, on average at least
_PACKET = b"\x0a"  # field 1, of known length
_KEY, _LONG = _PACKET[0], 128
_COMPRESSED = 50  # packets in a packet
_MAY_BE_COMPRESSED = b"\x92\x03"  # that field begins so; few packets hold these bytes anywhere
_LONGEST_LENGTH = 10
# Of TracePacket: user, clocks, time, sequence, event, config, marker, defaults, descriptor, uuid.
_USUAL = frozenset((3, 6, 8, 10, 11, 33, 36, 50, 59, 60, 89))
_MOST_FIELDS = 1000


class PacketStream:
    """Hands out the packets of a file, of any size, as bytes.

    A file that ends inside a packet or a gzip member is what a killed program leaves: what is whole
    is handed out, and `is_cut` says so afterwards. `is_packed` says then whether all of it stood in
    gzip members.

    Args:
        stream: The file.
        source: Its name, for messages.
    """

    def __init__(self, stream: IO[bytes], source: str) -> None:
        self._stream = stream
        self._source = source
        self.is_cut = False
        self.is_packed = True

    def __iter__(self) -> Iterator[bytes]:
        """Yield the packets.

        Raises:
            ProfileFormatError: The file holds something else, or a packet is too large.
        """
        rest = b""
        for block in self._blocks():
            rest += block
            place = yield from self._whole_packets(rest)
            rest = rest[place:]
        self.is_cut = self.is_cut or bool(rest)

    def _whole_packets(
        self, content: bytes, *, is_inner: bool = False
    ) -> Generator[bytes, None, int]:
        """Yield the packets of which all is there, and return where the rest begins."""
        place, end, count = 0, len(content), 0
        while place < end:
            if content[place] == _KEY and place + 1 < end and content[place + 1] < _LONG:
                start, stop = place + 2, place + 2 + content[place + 1]  # as nearly all are
            elif (found := self._packet(content, place)) is not None:
                start, stop = found
            else:
                break
            if stop > end:
                break
            packet, place = content[start:stop], stop
            count += 1
            if stop - start > _LARGE:
                take_items((stop - start) // _BYTES_OF_FIELD)
            if _MAY_BE_COMPRESSED in packet:
                yield from self._opened(packet, is_inner=is_inner)
            else:
                yield packet
        take_items(count)
        return place

    def _packet(self, content: bytes, place: int) -> tuple[int, int] | None:
        """Return where the packet at a place begins and ends, None if it is not there yet."""
        if place >= len(content):
            return None
        if content[place : place + 1] != _PACKET:
            raise corrupt(self._source, "it holds bytes that are not a packet of a Perfetto trace")
        size = shift = 0
        for at in range(place + 1, min(place + 1 + _LONGEST_LENGTH, len(content))):
            size |= (content[at] & 127) << shift
            shift += 7
            if content[at] < 128:
                if size > MAX_PACKET:
                    raise corrupt(self._source, f"a packet is larger than {MAX_PACKET >> 20} MiB")
                end = at + 1 + size
                return (at + 1, end) if end <= len(content) else None
        if len(content) - place > _LONGEST_LENGTH:
            raise corrupt(self._source, "a packet has an invalid length")
        return None

    def _opened(self, packet: bytes, *, is_inner: bool) -> Iterator[bytes]:
        """Yield the packet, or the packets that it holds compressed."""
        inner = _compressed(packet)
        if not inner:
            yield packet
        elif is_inner:
            # Each further level could be a thousand times as large; no tool writes one.
            raise corrupt(self._source, "compressed packets hold compressed packets")
        for content in inner:
            yield from self._inflated(content)

    def _inflated(self, content: bytes) -> Iterator[bytes]:
        unpacker = zlib.decompressobj()
        rest = b""
        while content:
            try:
                block = unpacker.decompress(content, _BLOCK)
            except zlib.error as error:
                raise corrupt(self._source, f"compressed packets: {error}") from None
            content = unpacker.unconsumed_tail
            take_bytes(len(block))
            rest += block
            place = yield from self._whole_packets(rest, is_inner=True)
            rest = rest[place:]

    def _blocks(self) -> Iterator[bytes]:
        """Yield the content without compression, also that of a file that was packed once more."""
        pieces = self._unpacked(self._stream)
        first = next(pieces, b"")
        if first[: len(GZIP)] == GZIP:
            self.is_packed = False
            yield from self._unpacked(_Pieces(chain((first,), pieces)))
        else:
            yield first
            yield from pieces

    def _unpacked(self, stream: Readable) -> Iterator[bytes]:
        """Yield the content of gzip members and plain parts, which may alternate."""
        rest = b""
        while block := rest or stream.read(_BLOCK):
            if len(block) < len(GZIP):
                block += stream.read(_BLOCK)
            if block == GZIP[:1]:  # not even the mark of a member
                self.is_cut = True
                return
            if block[: len(GZIP)] == GZIP:
                rest = yield from self._member(stream, block)
            else:
                # No packet begins like a member, so the rest of the file is plain.
                self.is_packed = False
                yield block
                yield from iter(lambda: stream.read(_BLOCK), b"")
                return

    def _member(self, stream: Readable, block: bytes) -> Generator[bytes, None, bytes]:
        """Yield the content of one gzip member, and return what was read behind it."""
        unpacker = zlib.decompressobj(wbits=31)
        take_items(1)
        while True:
            try:
                content = unpacker.decompress(block, _BLOCK)
            except zlib.error as error:
                raise corrupt(self._source, f"gzip: {error}") from None
            left = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            take_bytes(len(content))
            if content:
                yield content
            if unpacker.eof:
                return left
            block = left or stream.read(_BLOCK)
            if not block:
                self.is_cut = True
                return b""


def _compressed(packet: bytes) -> list[bytes]:
    """Return what a packet holds compressed; the reader of a damaged one reports it."""
    try:
        fields = read_fields(packet)
    except DamagedMessage:
        return []
    return [value for field, value in fields if field == _COMPRESSED and isinstance(value, bytes)]


class _Pieces:
    """Reads pieces as they come, whatever size is asked for."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, size: int, /) -> bytes:
        """Return the next piece, none at the end."""
        del size
        return next(self._pieces, b"")


def looks_like_packets(content: bytes) -> bool:
    """Say whether the start of a file is a packet; cheap, and never raises."""
    for _ in range(2):  # a file in members may have been packed once more
        if content[: len(GZIP)] != GZIP:
            break
        try:
            content = zlib.decompressobj(wbits=31).decompress(content, 1 << 16)
        except zlib.error:
            return False
    if content[:1] != _PACKET:
        return False
    size = shift = 0
    for at in range(1, min(1 + _LONGEST_LENGTH, len(content))):
        size |= (content[at] & 127) << shift
        shift += 7
        if content[at] < 128:
            return _is_packet(content[at + 1 : at + 1 + size], size)
    return False


def _is_packet(content: bytes, size: int) -> bool:
    if len(content) < size:
        return False  # the first packet of a file is small
    try:
        numbers = {number for number, _ in read_fields(content)}
    except DamagedMessage:
        return False
    # Files of upstream begin with a line break too, and what follows is text.
    return not numbers.isdisjoint(_USUAL) and max(numbers) < _MOST_FIELDS
