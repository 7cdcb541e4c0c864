"""Lines of CSV that every reader takes apart again, and that do nothing to who prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from proton_bench.support.text import visible

__all__ = ["csv_cell", "csv_line"]

# The last is a command of GitHub's log at a line's start; quotation marks change nothing else.
_SPECIAL = re.compile(r'[",]|^\s*::')
# What spreadsheets compute, wide forms too, and what they should: numbers.
_FORMULA = re.compile("[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|inf|nan)", re.IGNORECASE)


def csv_line(cells: Iterable[str]) -> str:
    """Return one line with its end.

    Control characters are escaped, and ``'`` stands before what a spreadsheet would compute; an
    only cell that is empty is quoted, else it were no line.
    """
    return (",".join(map(csv_cell, cells)) or '""') + "\n"


def csv_cell(cell: str) -> str:
    """Return one cell of such a line; a number is one as it is."""
    shown = _inert(visible(cell, len(cell)))
    return _quoted(shown) if _SPECIAL.search(shown) else shown


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def _inert(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell
