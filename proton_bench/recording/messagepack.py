"""Encodes plain facts as MessagePack, without a library in the target's process."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

__all__ = ["encode_facts"]

_FIXMAP, _FIXARRAY, _FIXSTR = 0x80, 0x90, 0xA0
_STR32, _ARRAY32, _MAP32 = 0xDB, 0xDD, 0xDF
_INT64, _UINT64, _DOUBLE = 0xD3, 0xCF, 0xCB
_SMALL_COUNT, _SMALL_TEXT, _SMALL_INT = 16, 32, 128


def encode_facts(value: object) -> bytes:
    """Encode None, bool, int, float, text, sequences and mappings; anything else as its text.

    Args:
        value: What to encode. Surrogates in texts are escaped; integers beyond 64 bits become
            floats.
    """
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return struct.pack(">Bd", _DOUBLE, value)
    if isinstance(value, Mapping):
        items = [encode_facts(str(key)) + encode_facts(each) for key, each in value.items()]
        return _head(len(items), _SMALL_COUNT, (_FIXMAP, _MAP32)) + b"".join(items)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        items = [encode_facts(each) for each in value]
        return _head(len(items), _SMALL_COUNT, (_FIXARRAY, _ARRAY32)) + b"".join(items)
    text = str(value).encode("utf-8", "backslashreplace")
    return _head(len(text), _SMALL_TEXT, (_FIXSTR, _STR32)) + text


def _integer(value: int) -> bytes:
    if 0 <= value < _SMALL_INT:
        return bytes([value])
    if -(2**63) <= value < 2**63:
        return struct.pack(">Bq", _INT64, value)
    if 0 < value < 2**64:
        return struct.pack(">BQ", _UINT64, value)
    return encode_facts(float(value))


def _head(count: int, small: int, codes: tuple[int, int]) -> bytes:
    if count < small:
        return bytes([codes[0] | count])
    return struct.pack(">BI", codes[1], count)
