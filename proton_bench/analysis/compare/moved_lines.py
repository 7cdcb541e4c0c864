"""Matches source lines across an edit, by their PC samples.

Lines of one function are aligned in order: most lines keep their distance to their neighbours, and
each keeps about its share of the function's samples. Profiles do not have the text of the lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.kernels.source_lines import parse_line
from proton_bench.analysis.kernels.stalls import ALL
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

__all__ = ["GONE", "former_lines"]

# Suffix of a removed line, to distinguish it from the line that has its number now.
GONE = " (gone)"
# A pair counts 1, and up to 1 more for equal shares. A change of distance costs so much that a
# single line never causes one just for a better share.
_OTHER_DISTANCE = 1.5
_ANY_DISTANCE = 0.25
# Lines of functions with more pairs keep their numbers; the limit is 1000 lines on both sides.
_MOST_PAIRS = 1_000_000

_Function = tuple[str, str]
_Lines = dict[int, float]


def former_lines(base: Sequence[Profile], new: Sequence[Profile]) -> dict[str, str]:
    """Return the names of base lines in the new runs.

    Args:
        base: Runs to compare with.
        new: Runs that are compared.

    Returns:
        The name in the new runs for each line name in the base; removed lines get their name with
        the suffix `GONE`.
    """
    was, now = _functions(base), _functions(new)
    found: dict[str, str] = {}
    for function, lines in was.items():
        target = _counterpart(function, now)
        if target is None:
            continue
        pairs = _aligned(lines, now[target])
        for line in lines:
            name = _name(function, line)
            found[name] = _name(target, pairs[line]) if line in pairs else name + GONE
    return found


def _functions(profiles: Iterable[Profile]) -> dict[_Function, _Lines]:
    """Return each function's lines with their shares of its samples."""
    found: dict[_Function, dict[int, float]] = {}
    for profile in profiles:
        for row, samples in _line_rows(profile):
            place = parse_line(profile.name(row))
            if place is not None:
                lines = found.setdefault((place.file, place.function), {})
                lines[place.line] = lines.get(place.line, 0.0) + samples
    return {function: _shares(lines) for function, lines in found.items()}


def _line_rows(profile: Profile) -> Iterator[tuple[int, float]]:
    rows = np.flatnonzero(profile.kinds == FrameKind.LINE)
    column = profile.columns.get(ALL)
    if column is None or not column.kind.is_number:
        yield from ((row, 0.0) for row in rows.tolist())
        return
    known = column.valid[rows] & np.isfinite(column.values[rows])
    sizes = np.where(known, column.values[rows], 0).astype(np.float64)
    yield from zip(rows.tolist(), sizes.tolist(), strict=True)


def _shares(lines: Mapping[int, float]) -> _Lines:
    total = sum(lines.values()) or 1.0
    return {line: samples / total for line, samples in sorted(lines.items())}


def _name(function: _Function, line: int) -> str:
    return f"{function[0]}:{line}@{function[1]}"


def _counterpart(function: _Function, known: Mapping[_Function, _Lines]) -> _Function | None:
    """Return the same function, even if the file is in another folder now."""
    if function in known:
        return function
    file, name = os.path.basename(function[0]), function[1]
    near = [each for each in known if each[1] == name and os.path.basename(each[0]) == file]
    return near[0] if len(near) == 1 else None


# -- laying lines over each other ----------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Chain:
    """The best way to pair lines up to and with one pair."""

    score: float
    pair: tuple[int, int]
    before: _Chain | None


def _aligned(base: _Lines, new: _Lines) -> dict[int, int]:
    """Return the line in the new runs for each line of the base, in order."""
    if len(base) * len(new) > _MOST_PAIRS:
        return {line: line for line in base if line in new}
    best: _Chain | None = None
    by_distance: dict[int, _Chain] = {}
    reached: list[_Chain | None] = [None] * (len(new) + 1)  # best chain that ends before a new line
    for line, share in base.items():
        here: list[_Chain] = []
        for place, (other, other_share) in enumerate(new.items()):
            chain = _longer(by_distance.get(other - line), reached[place], (line, other))
            near = min(share, other_share) / max(share, other_share, 1e-12)
            here.append(_Chain(chain.score + 1.0 + near, (line, other), chain.before))
        top: _Chain | None = None
        for place, chain in enumerate(here):
            by_distance[chain.pair[1] - line] = chain
            top = chain if top is None or chain.score > top.score else top
            held = reached[place + 1]
            reached[place + 1] = top if held is None or top.score > held.score else held
        if top is not None and (best is None or top.score > best.score):
            best = top
    return dict(_pairs(best))


def _longer(same: _Chain | None, other: _Chain | None, pair: tuple[int, int]) -> _Chain:
    """Return the chain before a pair, with its score."""
    alone = 0.0 if pair[0] == pair[1] else -_ANY_DISTANCE
    found = _Chain(alone, pair, None)
    if other is not None and other.score - _OTHER_DISTANCE > found.score:
        found = _Chain(other.score - _OTHER_DISTANCE, pair, other)
    if same is not None and same.score >= found.score:
        found = _Chain(same.score, pair, same)
    return found


def _pairs(chain: _Chain | None) -> Iterator[tuple[int, int]]:
    while chain is not None:
        yield chain.pair
        chain = chain.before
