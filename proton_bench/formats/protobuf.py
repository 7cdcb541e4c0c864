"""Writing Protocol Buffers: numbers, texts and messages in messages."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Message", "varint"]

_VARINT, _BYTES = 0, 2
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
        if content:
            self._content += varint(field << 3 | _BYTES) + varint(len(content)) + content
        return self

    def message(self, field: int, inner: Message) -> Message:
        """Add a message, also an empty one."""
        content = bytes(inner)
        self._content += varint(field << 3 | _BYTES) + varint(len(content)) + content
        return self

    def text(self, field: int, value: str) -> Message:
        """Add a text, also an empty one: in a list every element counts."""
        content = value.encode("utf-8", "backslashreplace")
        self._content += varint(field << 3 | _BYTES) + varint(len(content)) + content
        return self
