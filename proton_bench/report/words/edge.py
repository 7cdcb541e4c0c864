"""The width of a terminal: prose is folded between words, names are cut with an ellipsis.

Output to pipes and files is not folded or cut, whatever ``COLUMNS`` says.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from proton_bench.report.words.names import FrameFormat, format_name

__all__ = ["edge_of", "fitting", "fitting_name", "prose", "without_folder"]

_INDENT = "  "
_SHORT_FRAME = re.compile(r"(?:[^/ ]+/)+(?=[^/ ]+:\d+ )")
_LEAST = 8


def edge_of(console: Console, options: ConsoleOptions) -> int | None:
    """Return the width of the terminal, None if the output is not one."""
    # Not is_terminal: FORCE_COLOR adds colours to a pipe, but must not cut text.
    return options.max_width if console.file.isatty() else None


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
    first = " " * min(len(text) - len(text.lstrip()), edge // 4)
    later = first + _INDENT
    room = max(edge - len(later), _LEAST)
    folded = [line.plain.rstrip() for line in Text(text.strip()).wrap(console, room)]
    lines = [first + folded[0], *(later + line for line in folded[1:])]
    return [Segment(f"{line}\n", style) for line in lines]


def fitting(name: str, room: int) -> str:
    """Return the name, cut with an ellipsis if it is too wide."""
    if len(name) <= room // 2 or cell_len(name) <= room:
        return name
    return set_cell_size(name, max(room - 1, 0)).rstrip() + "…"


def fitting_name(name: str, room: int) -> str:
    """Return the name of a row, without its folder if it is too wide, then cut.

    In ``dir/file:line@function`` the line says more than the folder.
    """
    return name if cell_len(name) <= room else fitting(without_folder(name), room)


def without_folder(name: str) -> str:
    """Return the name of a frame without the folder of its file, other names unchanged."""
    if "@" in name:
        return format_name(name, FrameFormat.FILE_FUNCTION_LINE)
    match = _SHORT_FRAME.match(name)
    return name if match is None else name[match.end() :]
