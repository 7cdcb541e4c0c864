"""Lines of CSV that every reader can parse and that are safe to print."""

from __future__ import annotations

import re
from collections.abc import Iterable

from proton_bench.support.text import visible

__all__ = ["csv_cell", "csv_line"]

# The last is a command of GitHub's log at the start of a line.
_SPECIAL = re.compile(r'[",]|^\s*::')
# Text that spreadsheets evaluate, also in wide forms, and numbers, which they should.
_FORMULA = re.compile("[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|inf|nan)", re.IGNORECASE)


def csv_line(cells: Iterable[str]) -> str:
    """Return one line with its end.

    Control characters are escaped, and ``'`` is put before a text that a spreadsheet would
    evaluate; a single empty cell is quoted, else the line would be empty.
    """
    return (",".join(map(csv_cell, cells)) or '""') + "\n"


def csv_cell(cell: str) -> str:
    """Return one cell of such a line; numbers are unchanged."""
    shown = _inert(visible(cell, len(cell)))
    return _quoted(shown) if _SPECIAL.search(shown) else shown


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def _inert(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell
