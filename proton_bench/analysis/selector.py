r"""Globs of call paths.

``*`` matches any part of a name and ``?`` one character, ``**`` as a whole segment any number of
names. Brackets match themselves, because tests and C++ kernels have them in their names. ``\``
escapes the next character, so ``\/`` is a slash within a name. A glob without a slash matches the
last name of a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from proton_bench.model.arrays import Indexes

_ANY_NAMES = "**"


class NamedTree(Protocol):
    """Rows with names; row 0 is the root, and every parent comes before its children."""

    @property
    def strings(self) -> Sequence[str]:
        """Distinct names."""

    @property
    def parents(self) -> Indexes:
        """Row of each row's parent, -1 for the root."""

    def frames(self) -> Indexes:
        """Return the index of each row's name in ``strings``."""


class Selectors:
    """Several globs, matched with paths at once.

    A set of globs is a number with one bit each. The matching state of a path is such a number too,
    with a bit after each segment, so a name takes few steps however long its path is.

    Args:
        globs: The globs; "" selects everything.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        self._begin = 0
        self._stars = 0  # after which any names may follow
        self._literals: dict[str, int] = {}
        self._patterns: dict[str, int] = {}
        self._compiled: dict[str, re.Pattern[str]] = {}
        self._ends: list[int] = []
        bit = 1
        for glob in globs:
            self._begin |= bit
            for segment in _all_segments(glob):
                if segment == _ANY_NAMES:
                    self._stars |= bit
                else:
                    group = self._patterns if _is_pattern(segment) else self._literals
                    name = segment if group is self._patterns else _plain(segment)
                    group[name] = group.get(name, 0) | bit
                bit <<= 1
            self._ends.append(bit)
            bit <<= 1
        self._accepting = sum(self._ends)
        self._begin = self._skipped(self._begin)
        self._fitting: dict[str, int] = {}

    def of_tree(self, tree: NamedTree) -> list[int]:
        """Return for each row which globs match its path; none match the root."""
        if not self._ends:
            return [0] * len(tree.parents)
        names, frames = tree.strings, tree.frames().tolist()
        states, found = [self._begin], [0]
        known: dict[int, int] = {}  # equal states are one object
        for parent, frame in zip(tree.parents[1:].tolist(), frames[1:], strict=True):
            state = self._after(states[parent], names[frame])
            states.append(known.setdefault(state, state))
            found.append(state & self._accepting)
        return found

    def chosen(self, selected: int) -> Iterator[int]:
        """Yield the indexes of these globs."""
        return (place for place, end in enumerate(self._ends) if selected & end)

    def _after(self, state: int, name: str) -> int:
        fitting = self._fitting.get(name)
        if fitting is None:
            fitting = self._fitting[name] = self._fitted(name)
        return self._skipped((state & fitting) << 1 | state & self._stars)

    def _fitted(self, name: str) -> int:
        """Return the bits of the segments that match a name."""
        found = self._literals.get(name, 0)
        for segment, bits in self._patterns.items():
            pattern = self._compiled.get(segment)
            if pattern is None:
                pattern = self._compiled[segment] = _pattern(segment)
            if pattern.fullmatch(name) is not None:
                found |= bits
        return found

    def _skipped(self, state: int) -> int:
        """Return the state after segments that may match no names."""
        return state | (state & self._stars) << 1


def _all_segments(glob: str) -> list[str]:
    """Return the segments for a whole path; repeated ``**`` are one."""
    segments = _segments(glob) if glob else (_ANY_NAMES,)
    if len(segments) == 1 and segments[0] != _ANY_NAMES:
        return [_ANY_NAMES, segments[0]]
    return [
        segment
        for place, segment in enumerate(segments)
        if place == 0 or segment != _ANY_NAMES or segments[place - 1] != _ANY_NAMES
    ]


def _is_pattern(segment: str) -> bool:
    return any(mark in segment for mark in "*?")


def _plain(segment: str) -> str:
    r"""Return the name that a segment without stars matches, unescaped."""
    return re.sub(r"\\(.?)", lambda match: match[1] or "\\", segment, flags=re.DOTALL)


def _segments(selector: str) -> tuple[str, ...]:
    """Split at unescaped slashes."""
    found = [""]
    characters = iter(selector)
    for character in characters:
        if character == "/":
            found.append("")
        else:
            found[-1] += character
            found[-1] += next(characters, "") if character == "\\" else ""
    return tuple(found[1:] if found[0] == "" and len(found) > 1 else found)


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
    # The first match of a part is as good as any later one, so no backtracking is needed.
    middle = "".join(f"(?>.*?{part})" for part in parts[1:-1] if part)
    return re.compile(f"{parts[0]}{middle}.*{parts[-1]}", re.DOTALL)
