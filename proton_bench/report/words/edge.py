"""Styles and width of a terminal: prose is folded between words, names are cut in the middle.

Output to pipes and files is not folded or cut, whatever ``COLUMNS`` says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from proton_bench.analysis.choices import FrameFormat
from proton_bench.analysis.naming.frame_names import FRAME, OLD_FRAME
from proton_bench.model.arrays import Array
from proton_bench.support.text import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions


_INDENT = "  "
_SHORT_FRAME = re.compile(r"(?:[^/ ]+/)+(?=[^/ ]+:\d+ )")
_LEAST = 8
_ROOM_FOR_TWO = 30
_LEFT_OUT = "…"
_MAX_SOURCES = 3
_MAX_SOURCE = 200

DIM = Style(dim=True)
HEADING = Style(bold=True)
WARNING = Style(color="yellow", bold=True)


# Colours of values, by the least share of the largest one that has each.
BANDS = (
    (0.9, Style(color="red", bold=True)),
    (0.7, Style(color="bright_red")),
    (0.5, Style(color="yellow")),
    (0.3, Style(color="green")),
    (0.1, Style(color="cyan")),
    (0.0, Style(color="blue")),
)


def bands_of(values: Array, largest: float) -> list[int]:
    """Return for each value the position of its band in `BANDS`; signs are ignored."""
    if not largest > 0:
        return [len(BANDS) - 1] * len(values)
    sizes = np.abs(values.astype(np.float64))
    with np.errstate(invalid="ignore"):  # an overflow makes the largest one infinite
        shares = np.where(sizes == largest, 1.0, sizes / largest)
    lows = np.array([low for low, _ in reversed(BANDS)])
    place = np.searchsorted(lows, np.nan_to_num(shares), side="right")
    found: list[int] = np.clip(len(BANDS) - place, 0, len(BANDS) - 1).tolist()
    return found


def edge_of(console: Console, options: ConsoleOptions) -> int | None:
    """Return the width of the terminal, None if the output is not one."""
    # Not is_terminal: FORCE_COLOR adds colours to a pipe, but must not cut text.
    return options.max_width if console.file.isatty() else None


def chain_mark(options: ConsoleOptions) -> str:
    """Return what stands between the names of rows in one line."""
    return " > " if options.ascii_only else " › "


def prose(console: Console, text: str, style: Style | None, *, edge: int | None) -> list[Segment]:
    """Return one line, or several that fit the width; later ones are indented.

    Args:
        console: Where it is shown.
        text: One line that is safe to print.
        style: Its style.
        edge: Result of `edge_of`.
    """
    if edge is None or cell_len(text) <= edge:
        return [Segment(f"{text}\n", style)]
    from rich.text import Text  # slow to load

    first = " " * min(len(text) - len(text.lstrip()), edge // 4)
    later = first + _INDENT
    room = max(edge - len(later), _LEAST)
    folded = [line.plain.rstrip() for line in Text(text.strip()).wrap(console, room)]
    lines = [first + folded[0], *(later + line for line in folded[1:])]
    return [Segment(f"{line}\n", style) for line in lines]


def fitting(text: str, room: int) -> str:
    """Return the text, cut with an ellipsis if it is too wide."""
    if len(text) <= room // 2 or cell_len(text) <= room:
        return text
    return "" if room < 2 else set_cell_size(text, room - 1).rstrip() + "…"


def fitting_name(name: str, room: int) -> str:
    """Return the name of a row, with an ellipsis in the middle if it is too wide.

    The end stays, because names that begin alike differ there. Of ``dir/file:line@function`` the
    folder goes first.
    """
    if cell_len(name) > room:
        name = without_folder(name)
    if len(name) <= room // 2 or cell_len(name) <= room:
        return name
    if room < _LEAST:
        return fitting(name, room)
    start = (room - 1) // 3
    first = set_cell_size(name, start).rstrip()
    rest = room - 1 - cell_len(first)
    last = name[max(len(name) - rest, 0) :]
    while cell_len(last) > rest:
        last = last[1:]
    return f"{first}…{last}"


def fitting_path(names: Sequence[str], room: int, separator: str = " › ") -> str:
    """Return the names of a path in one line, without those in its middle if it is too wide."""
    text = separator.join(names)
    if cell_len(text) <= room:
        return text
    # Where it begins says more than what lies before the end.
    for heads, tails in ((heads, tails) for heads in (2, 1) for tails in (3, 2, 1)):
        if heads + tails < len(names):
            text = separator.join((*names[:heads], _LEFT_OUT, *names[-tails:]))
            if cell_len(text) <= room:
                return text
    start = ""
    if len(names) > 1 and room >= _ROOM_FOR_TWO:
        first = fitting_name(names[0], room // 3)
        start = separator.join((first, *([_LEFT_OUT] if len(names) > 2 else []), ""))
    elif len(names) > 1 and cell_len(f"{_LEFT_OUT}{separator}{names[-1]}") <= room:
        start = f"{_LEFT_OUT}{separator}"
    return start + fitting_name(names[-1], room - cell_len(start))


def without_folder(name: str) -> str:
    """Return the name of a frame without the folder of its file, other names unchanged."""
    if "@" in name:
        return format_name(name, FrameFormat.FILE_FUNCTION_LINE)
    match = _SHORT_FRAME.match(name)
    return name if match is None else name[match.end() :]


_Form = Callable[[str, str, str], str]
_FORMS: dict[FrameFormat, _Form] = {
    FrameFormat.FILE_FUNCTION_LINE: lambda file, line, function: f"{file}:{line}@{function}",
    FrameFormat.FUNCTION_LINE: lambda _, line, function: f"{line}@{function}",
    FrameFormat.FILE_FUNCTION: lambda file, _, function: f"{file}@{function}",
}
_OLD_FORMS: dict[FrameFormat, _Form] = {
    FrameFormat.FILE_FUNCTION_LINE: lambda file, line, function: f"{file}:{function}@{line}",
    FrameFormat.FUNCTION_LINE: lambda _, line, function: f"{function}@{line}",
    FrameFormat.FILE_FUNCTION: lambda file, _, function: f"{file}:{function}",
}


def format_name(name: str, style: FrameFormat) -> str:
    """Return a frame's name in the wanted form; only ``file:line@function`` has other forms."""
    if style in (FrameFormat.SHORT, FrameFormat.FULL) or "@" not in name:
        return name
    for pattern, forms in ((FRAME, _FORMS), (OLD_FRAME, _OLD_FORMS)):
        match = pattern.fullmatch(name)
        if match is not None:
            file = match["file"].rpartition("/")[2]
            return forms[style](file, match["line"], match["function"])
    return name


def sources_text(sources: Sequence[str]) -> str:
    """Return the names of the runs of a side, of many the first; a common folder comes once.

    For instance ``pair-001-base.proton, pair-002-base.proton in .proton/ab/20261127-101500``.
    """
    folders = {os.path.dirname(each) for each in sources}
    folder = folders.pop() if len(sources) > 1 and len(folders) == 1 else ""
    names = [os.path.basename(each) if folder else each for each in sources]
    parts = [visible(each, _MAX_SOURCE) for each in names[:_MAX_SOURCES]]
    text = ", ".join(parts)
    text += f" and {len(names) - len(parts)} more" if len(names) > len(parts) else ""
    return f"{text} in {visible(folder, _MAX_SOURCE)}" if folder else text
