"""Protocol Buffers: numbers, texts and messages in messages, written and read."""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _BYTES = 0, 2
_WIDTHS = {1: 8, 5: 4}
_WIRE, _LOW = 7, 127
_MOST_BITS = 63
_MASK = 2**64 - 1


def varint(number: int) -> bytes:
    """Return a number of 64 bits, seven bits to a byte; negative ones take ten bytes."""
    left, found = number & _MASK, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


class Message:
    """A message that is being written, field by field. Fields that are 0 or empty are left out."""

    def __init__(self) -> None:
        self._content = bytearray()

    def __bytes__(self) -> bytes:
        return bytes(self._content)

    def number(self, field: int, value: int) -> Message:
        """Add an integer."""
        if value:
            self._content += varint(field << 3 | _VARINT) + varint(value)
        return self

    def numbers(self, field: int, values: Iterable[int]) -> Message:
        """Add integers, packed."""
        return self.packed(field, b"".join(map(varint, values)))

    def packed(self, field: int, content: bytes) -> Message:
        """Add integers that are packed already."""
        return self.content(field, content) if content else self

    def content(self, field: int, content: bytes) -> Message:
        """Add bytes, also none: in a list every element counts."""
        self._content += varint(field << 3 | _BYTES) + varint(len(content)) + content
        return self

    def message(self, field: int, inner: Message) -> Message:
        """Add a message, also an empty one."""
        return self.content(field, bytes(inner))

    def text(self, field: int, value: str) -> Message:
        """Add a text, also an empty one."""
        return self.content(field, value.encode("utf-8", "backslashreplace"))


class DamagedMessage(ValueError):  # noqa: N818 - it says what was found
    """Bytes are not a message, or a truncated one."""


def read_fields(content: bytes) -> list[tuple[int, int | bytes]]:
    """Return number and value of each field of a message, in the order of the file.

    Integers are unsigned; numbers of fixed width are bit patterns. Texts
    and messages in the message are bytes.

    Raises:
        DamagedMessage: The bytes are not a message, or a truncated one.
    """
    try:
        return _fields(content)
    except IndexError:
        raise DamagedMessage("a message ends inside a field") from None


def _fields(content: bytes) -> list[tuple[int, int | bytes]]:
    found: list[tuple[int, int | bytes]] = []
    place, end = 0, len(content)
    while place < end:
        key = content[place]
        place += 1
        if key > _LOW:
            key, place = _rest_of(key, content, place)
        wire = key & _WIRE
        if wire in _WIDTHS:
            size = _WIDTHS[wire]
        else:  # what follows is a number, or a length
            size = content[place]
            place += 1
            if size > _LOW:
                size, place = _rest_of(size, content, place)
            if wire == _VARINT:
                found.append((key >> 3, size))
                continue
            if wire != _BYTES:
                raise DamagedMessage(f"a field has the type {wire}, which does not exist")
        place += size
        if place > end:
            raise DamagedMessage("a field ends after its message")
        piece = content[place - size : place]
        found.append((key >> 3, piece if wire == _BYTES else int.from_bytes(piece, "little")))
    return found


def signed(value: int) -> int:
    """Return the signed number of 64 bits that is written as this unsigned one."""
    return value - 2**64 if value >= 2**63 else value


def text_of(value: int | bytes) -> str:
    """Return a field as text, whatever its bytes are."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else ""


def _rest_of(first: int, content: bytes, place: int) -> tuple[int, int]:
    """Return a number of several bytes and the position after it."""
    value, shift = first & _LOW, 7
    while True:
        byte = content[place]
        place += 1
        value |= (byte & _LOW) << shift
        if byte <= _LOW:
            return value & _MASK, place
        shift += 7
        if shift > _MOST_BITS:
            raise DamagedMessage("a number is longer than 64 bits")
