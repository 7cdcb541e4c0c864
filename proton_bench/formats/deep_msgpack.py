"""A MessagePack parser without recursion, for trees that are too deep for the fast one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from proton_bench.formats.base import corrupt, decoded

__all__ = ["parse_msgpack"]


class _OpenValue:
    """One open array or map."""

    __slots__ = ("is_map", "items", "left")

    def __init__(self, left: int, *, is_map: bool) -> None:
        self.left = left
        self.is_map = is_map
        self.items: list[Any] = []


def parse_msgpack(content: bytes, on_map: Callable[[dict[str, Any]], Any], source: str) -> Any:
    """Return the value of a MessagePack document of any depth.

    Args:
        content: The document.
        on_map: Called with each complete map; its result replaces the map.
        source: Name of the file, for messages.

    Raises:
        ProfileFormatError: The content is not MessagePack, or a map has a key that is not a text.
    """
    outer = _OpenValue(1, is_map=False)
    levels = [outer]
    position = 0
    while levels:
        level = levels[-1]
        if level.left == 0:
            levels.pop()
            if levels:
                levels[-1].items.append(_closed(level, on_map, source))
            continue
        level.left -= 1
        opened = _container(content, position, source)
        if opened is not None:
            inner, position = opened
            levels.append(inner)
        else:
            end = position + _scalar_size(content, position, source)
            level.items.append(_scalar(content[position:end], source))
            position = end
    if position != len(content):
        raise corrupt(source, f"there are bytes after the end at {position}")
    return outer.items[0]


def _closed(level: _OpenValue, on_map: Callable[[dict[str, Any]], Any], source: str) -> Any:
    if not level.is_map:
        return level.items
    keys = level.items[::2]
    if not all(isinstance(key, str) for key in keys):
        raise corrupt(source, "a map has a key that is not a string")
    return on_map(dict(zip(keys, level.items[1::2], strict=True)))


def _scalar(content: bytes, source: str) -> Any:
    return decoded(lambda: msgspec.msgpack.decode(content), source)


def _number(content: bytes, start: int, width: int, *, source: str) -> int:
    if start + width > len(content):
        raise corrupt(source, "the file ends too early")
    return int.from_bytes(content[start : start + width], "big")


def _container(content: bytes, start: int, source: str) -> tuple[_OpenValue, int] | None:
    head = _number(content, start, 1, source=source)
    if 0x80 <= head <= 0x9F:
        size, after = head & 0x0F, start + 1
        is_map = head < 0x90
    elif 0xDC <= head <= 0xDF:
        width = 4 if head & 1 else 2
        size, after = _number(content, start + 1, width, source=source), start + 1 + width
        is_map = head >= 0xDE
    else:
        return None
    return _OpenValue(2 * size if is_map else size, is_map=is_map), after


# Bytes of a scalar by its head: fixed ones, and those whose length follows in 1, 2 or 4 bytes.
_FIXED = {
    0xC0: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9,
    0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9,
}  # fmt: skip
_COUNTED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}


def _scalar_size(content: bytes, start: int, source: str) -> int:
    head = content[start]
    if head < 0x80 or head >= 0xE0:
        return 1
    if 0xA0 <= head <= 0xBF:
        size = 1 + (head & 0x1F)
    elif head in _COUNTED:
        width = _COUNTED[head]
        size = 1 + width + _number(content, start + 1, width, source=source)
    elif head in _FIXED:
        size = _FIXED[head]
    else:
        raise corrupt(source, f"byte {start} does not start a value that a profile can have")
    if start + size > len(content):
        raise corrupt(source, "the file ends too early")
    return size
