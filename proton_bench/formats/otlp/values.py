"""Attributes of OTLP: keys with texts, numbers, lists and maps."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proton_bench.formats.base import MAX_NESTING
from proton_bench.formats.otlp.schema import AnyValue, ArrayValue, KeyValue, KeyValueList
from proton_bench.formats.protobuf import DamagedMessage, Message, read_fields, signed, text_of

__all__ = ["key_value", "read_key_value", "read_value", "value_message"]

_INT64 = range(-(2**63), 2**63)


def key_value(key: str, value: Any) -> Message:
    """Return the message KeyValue."""
    return Message().text(KeyValue.KEY, key).message(KeyValue.VALUE, value_message(value))


def value_message(value: Any) -> Message:
    """Return the message AnyValue of a plain value; integers beyond 64 bits become floats."""
    found = Message()
    if isinstance(value, bool):
        found.number(AnyValue.BOOL_VALUE, int(value), keep_zero=True)
    elif isinstance(value, int) and value in _INT64:
        found.number(AnyValue.INT_VALUE, value, keep_zero=True)
    elif isinstance(value, int | float):
        found.fixed64(AnyValue.DOUBLE_VALUE, struct.pack("<d", value))
    elif isinstance(value, str):
        found.text(AnyValue.STRING_VALUE, value)
    elif isinstance(value, bytes):
        found.content(AnyValue.BYTES_VALUE, value)
    elif isinstance(value, Mapping):
        entries = Message()
        for key, inner in value.items():
            entries.message(KeyValueList.VALUES, key_value(key, inner))
        found.message(AnyValue.KVLIST_VALUE, entries)
    elif isinstance(value, Sequence):
        elements = Message()
        for inner in value:
            elements.message(ArrayValue.VALUES, value_message(inner))
        found.message(AnyValue.ARRAY_VALUE, elements)
    return found


def read_key_value(content: bytes, strings: Sequence[str], *, depth: int = 0) -> tuple[str, Any]:
    """Return key and value of a message KeyValue.

    Args:
        content: The message.
        strings: The string table of the file.
        depth: Levels of lists and maps around it.

    Raises:
        DamagedMessage: The bytes are damaged, or nested too deeply.
    """
    key, value = "", None
    for number, found in read_fields(content):
        if number == KeyValue.KEY:
            key = text_of(found)
        elif number == KeyValue.KEY_STRINDEX and isinstance(found, int):
            key = _interned(found, strings)
        elif number == KeyValue.VALUE and isinstance(found, bytes):
            value = read_value(found, strings, depth=depth)
    return key, value


def read_value(content: bytes, strings: Sequence[str], *, depth: int = 0) -> Any:
    """Return the value of a message AnyValue, None for an empty one; see `read_key_value`."""
    if depth > MAX_NESTING:
        raise DamagedMessage(f"attributes are nested deeper than {MAX_NESTING} levels")
    value: Any = None
    for number, found in read_fields(content):
        if isinstance(found, int):
            convert = _NUMBERS.get(number)
            if convert is not None:
                value = convert(found)
            elif number == AnyValue.STRING_VALUE_STRINDEX:
                value = _interned(found, strings)
        elif number == AnyValue.STRING_VALUE:
            value = text_of(found)
        elif number == AnyValue.BYTES_VALUE:
            value = found
        elif number == AnyValue.ARRAY_VALUE:
            value = [
                read_value(each, strings, depth=depth + 1)
                for field, each in read_fields(found)
                if field == ArrayValue.VALUES and isinstance(each, bytes)
            ]
        elif number == AnyValue.KVLIST_VALUE:
            value = dict(
                read_key_value(each, strings, depth=depth + 1)
                for field, each in read_fields(found)
                if field == KeyValueList.VALUES and isinstance(each, bytes)
            )
    return value


_NUMBERS: dict[int, Callable[[int], Any]] = {
    AnyValue.BOOL_VALUE: bool,
    AnyValue.INT_VALUE: signed,
    AnyValue.DOUBLE_VALUE: lambda value: struct.unpack("<d", value.to_bytes(8, "little"))[0],
}


def _interned(index: int, strings: Sequence[str]) -> str:
    if index >= len(strings):
        raise DamagedMessage(f"an attribute names text {index} of {len(strings)}")
    return strings[index]
