"""A JSON parser without recursion, for trees that are too deep for the fast one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from proton_bench.formats.base import corrupt

__all__ = ["parse_json"]

_TOKEN = re.compile(
    r'[ \t\r\n]*(?:([\[\]{},:])|("[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*")'
    r"|(-?\d{1,400}(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))"
)
_CLOSING = {"[": "]", "{": "}"}


class _Level:
    """One open array or object."""

    __slots__ = ("bracket", "items", "key", "wants")

    def __init__(self, bracket: str) -> None:
        self.bracket = bracket
        self.items: list[Any] = []
        self.key: str | None = None
        # What may follow: "first", "item", "colon", "value" or "comma".
        self.wants = "first"


def parse_json(text: str, on_object: Callable[[dict[str, Any]], Any], source: str) -> Any:
    """Return the value of a JSON document of any depth.

    Args:
        text: The document.
        on_object: Called with each complete object; its result replaces the object.
        source: Name of the file, for messages.

    Raises:
        ProfileFormatError: The text is not JSON.
    """
    outer = _Level("[")
    levels = [outer]
    for token, value, start in _tokens(text, source):
        level = levels[-1]
        if token in _CLOSING:
            _expect(level, {"first", "item", "value"}, start, source=source)
            if level.bracket == "{" and level.wants != "value":
                raise corrupt(source, f"an object key is not a text at character {start}")
            levels.append(_Level(token))
        elif token == "":
            _put(level, value, start, source=source)
        elif token == ",":
            _expect(level, {"comma"}, start, source=source)
            level.wants = "item"
        elif token == ":":
            _expect(level, {"colon"}, start, source=source)
            level.wants = "value"
        else:
            _expect(level, {"first", "comma"}, start, source=source)
            if len(levels) == 1 or token != _CLOSING[level.bracket]:
                raise corrupt(source, f"JSON has an unexpected {token} at character {start}")
            levels.pop()
            _put(levels[-1], _closed(level, on_object), start, source=source)
    if len(levels) != 1 or len(outer.items) != 1:
        raise corrupt(source, "JSON ends too early")
    return outer.items[0]


def _closed(level: _Level, on_object: Callable[[dict[str, Any]], Any]) -> Any:
    return on_object(dict(level.items)) if level.bracket == "{" else level.items


def _expect(level: _Level, wanted: set[str], start: int, *, source: str) -> None:
    if level.wants not in wanted:
        raise corrupt(source, f"JSON is malformed at character {start}")


def _put(level: _Level, value: Any, start: int, *, source: str) -> None:
    _expect(level, {"first", "item", "value"}, start, source=source)
    if level.bracket == "[":
        level.items.append(value)
        level.wants = "comma"
    elif level.wants == "value":
        level.items.append((level.key, value))
        level.wants = "comma"
    elif isinstance(value, str):
        level.key = value
        level.wants = "colon"
    else:
        raise corrupt(source, f"an object key is not a text at character {start}")


def _tokens(text: str, source: str) -> Iterator[tuple[str, Any, int]]:
    position = 0
    end = len(text.rstrip(" \t\r\n"))
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise corrupt(source, f"JSON is malformed at character {position}")
        sign, string, other = match.groups()
        try:
            value = None if sign else json.loads(string or other)
        except ValueError:
            raise corrupt(source, f"JSON is malformed at character {position}") from None
        yield sign or "", value, position
        position = match.end()
