"""The summary of a test run: its hottest call paths as plain text."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from proton_bench.pytest_plugin.testrun.nodes import SESSION
from proton_bench.support.text import visible
from proton_bench.support.units import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proton_bench.model.profile import Profile

__all__ = ["hottest_paths", "shortened"]

_TIME = "time (ns)"
_COUNT = "count"
_SUMMARY_ROWS = 10
_MAX_NAME = 200
_SEPARATOR = " > "


def hottest_paths(profile: Profile, limit: int = _SUMMARY_ROWS) -> list[str]:
    """Render the call paths with the most time of their own as plain text.

    Args:
        profile: Profile of a test run; ``time (ns)`` belongs to its own node.
        limit: Lines at most.

    Returns:
        A heading and one line per path: time, share of the total, calls, path; a sentence if there
        is none.
    """
    from proton_bench.analysis.naming.readable import Readable, folded, texts_of

    short = folded(profile.fold_variants(), Readable())
    times, counts = _own_values(short, _TIME), _own_values(short, _COUNT)
    total = sum(times)
    if not total:
        return ["no operator, kernel or copy was recorded"]
    hottest = heapq.nlargest(limit, range(len(times)), key=times.__getitem__)
    hottest = [row for row in hottest if times[row]]
    unit = Unit.of_times(times[row] for row in hottest)
    texts = unit.texts(times[row] for row in hottest)
    rows = [(short.frames, short.kinds)]
    shown = texts_of(short.strings, rows, Readable(), provenance=short.provenance)
    return [
        f"{f'time ({unit.name})':>11}  share   calls    path",
        *(
            f"{text:>11} {times[row] / total:>6.1%} {counts[row]:>7} x  "
            + _SEPARATOR.join(_shown_path(short, row, shown))
            for row, text in zip(hottest, texts, strict=True)
        ),
    ]


def _shown_path(profile: Profile, row: int, shown: Sequence[str]) -> list[str]:
    names: list[str] = []
    while row > 0:
        names.append(visible(shown[int(profile.frames[row])], _MAX_NAME))
        row = int(profile.parents[row])
    if len(names) > 1 and names[-1] == SESSION:
        names.pop()
    return names[::-1]


def _own_values(profile: Profile, metric: str) -> list[int]:
    column = profile.columns.get(metric)
    if column is None or not column.kind.is_number:
        return [0] * len(profile)
    values: list[int] = column.values.tolist()
    return values


def shortened(line: str, width: int) -> str:
    """Leave out frames after the first until a line fits; the end of a path is the hot one."""
    head, mark, path = line.partition(" x  ")
    first, *parts = path.split(_SEPARATOR)
    while len(parts) > 1 and len(line) > width:
        parts.pop(0)
        line = head + mark + _SEPARATOR.join((first, "...", *parts))
    return line
