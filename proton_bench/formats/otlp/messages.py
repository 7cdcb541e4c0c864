"""Fields of messages by number, checked."""

from __future__ import annotations

from collections.abc import Iterator

from proton_bench.formats.budget import Limit, take
from proton_bench.formats.protobuf import DamagedMessage, read_fields, read_numbers

__all__ = ["Fields", "fields_of", "messages_of", "number_of", "numbers_of"]

Fields = dict[int, list[int | bytes]]


def fields_of(content: int | bytes) -> Fields:
    """Return the values of each field of a message.

    Raises:
        DamagedMessage: The bytes are damaged, or it is a number.
    """
    if isinstance(content, int):
        raise DamagedMessage("a number stands where a message should")
    found: Fields = {}
    for number, value in read_fields(content):
        found.setdefault(number, []).append(value)
    return found


def messages_of(fields: Fields, number: int) -> Iterator[Fields]:
    """Yield the messages of a repeated field, and charge the budget for them."""
    found = fields.get(number, ())
    take(Limit.EVENTS, len(found))
    return map(fields_of, found)


def number_of(fields: Fields, number: int) -> int:
    """Return the last value of a field, as protobuf asks for; 0 without one.

    Raises:
        DamagedMessage: It is a text or message.
    """
    value = fields.get(number, (0,))[-1]
    if isinstance(value, bytes):
        raise DamagedMessage("a text stands where a number should")
    return value


def numbers_of(fields: Fields, number: int) -> list[int]:
    """Return the unsigned numbers of a repeated field."""
    return [each for value in fields.get(number, ()) for each in read_numbers(value)]
