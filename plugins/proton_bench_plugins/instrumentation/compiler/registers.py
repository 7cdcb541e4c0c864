"""Registers per thread of a compiled kernel, read from its binary without a driver."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

__all__ = ["read_registers"]

_ELF = b"\x7fELF"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
# The section of a cubin that describes its functions, by attributes of (form, kind, size or value).
_ATTRIBUTES = b".nv.info\0"
_ATTRIBUTE = struct.Struct("<BBH")
_SIZED = 4  # form of an attribute with as many bytes behind it as its third field says
_REGISTER_COUNT = 0x2F
_COUNT = struct.Struct("<II")  # symbol of the function, registers


def read_registers(path: Path) -> int | None:
    """Return the registers of a thread, None if the file does not say.

    Args:
        path: A cubin; other binaries have no such number.
    """
    try:
        binary = path.read_bytes()
        return max(_counts(binary), default=None) if binary.startswith(_ELF) else None
    except (OSError, OverflowError, struct.error, IndexError):
        return None


def _counts(binary: bytes) -> Iterator[int]:
    header = _HEADER.unpack_from(binary)
    offset, entry_size, count, names_at = header[6], header[11], header[12], header[13]
    sections = [_SECTION.unpack_from(binary, offset + index * entry_size) for index in range(count)]
    names = sections[names_at][4]
    for section in sections:
        if binary.startswith(_ATTRIBUTES, names + section[0]):
            yield from _register_counts(binary[section[4] : section[4] + section[5]])


def _register_counts(attributes: bytes) -> Iterator[int]:
    place = 0
    while place + _ATTRIBUTE.size <= len(attributes):
        form, kind, size = _ATTRIBUTE.unpack_from(attributes, place)
        place += _ATTRIBUTE.size
        if kind == _REGISTER_COUNT and form == _SIZED:
            yield _COUNT.unpack_from(attributes, place)[1]
        place += size if form == _SIZED else 0
