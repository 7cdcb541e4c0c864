r"""Globs of call paths.

``*`` stands for any part of a name and ``?`` for one character of it, ``**`` as a whole segment for
any number of names. Brackets mean themselves, because tests and C++ kernels have them in their
names. ``\`` takes the meaning from the next character, so that ``\/`` is a slash within a name. A
glob without a slash is about the last name alone, wherever it stands.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

__all__ = ["selects"]

_ANY_NAMES = "**"


def selects(selector: str, path: Sequence[str]) -> bool:
    """Return whether a selector is about this path.

    Args:
        selector: A glob; "" selects everything.
        path: Names from below the root down to the row.
    """
    if not selector:
        return True
    segments = _segments(selector)
    if len(segments) == 1 and segments[0] != _ANY_NAMES:
        return bool(path) and _pattern(segments[0]).fullmatch(path[-1]) is not None
    return _matches(segments, path)


def _matches(segments: Sequence[str], path: Sequence[str]) -> bool:
    # Which numbers of leading names the segments so far can stand for.
    reached = [True, *[False] * len(path)]
    for segment in segments:
        if segment == _ANY_NAMES:
            first = reached.index(True) if True in reached else len(reached)
            reached = [place >= first for place in range(len(reached))]
            continue
        pattern = _pattern(segment)
        reached = [
            False,
            *(
                before and pattern.fullmatch(name) is not None
                for before, name in zip(reached, path, strict=False)
            ),
        ]
    return reached[-1]


@functools.lru_cache(maxsize=256)
def _segments(selector: str) -> tuple[str, ...]:
    """Split at slashes whose meaning no backslash takes."""
    found = [""]
    characters = iter(selector)
    for character in characters:
        if character == "/":
            found.append("")
        else:
            found[-1] += character
            found[-1] += next(characters, "") if character == "\\" else ""
    return tuple(found[1:] if found[0] == "" and len(found) > 1 else found)


@functools.lru_cache(maxsize=1024)
def _pattern(segment: str) -> re.Pattern[str]:
    parts = [""]  # between stars
    characters = iter(segment)
    for character in characters:
        if character == "\\":
            parts[-1] += re.escape(next(characters, "\\"))
        elif character == "*":
            parts.append("")
        else:
            parts[-1] += "." if character == "?" else re.escape(character)
    if len(parts) == 1:
        return re.compile(parts[0], re.DOTALL)
    # The first place where a part stands is as good as any later one, so none is tried again.
    middle = "".join(f"(?>.*?{part})" for part in parts[1:-1] if part)
    return re.compile(f"{parts[0]}{middle}.*{parts[-1]}", re.DOTALL)
