"""Lines of CSV that every reader takes apart again, and that do nothing to who prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from proton_bench.text import visible

__all__ = ["csv_line"]

# The last is a command of GitHub's log at a line's start; quotation marks change nothing else.
_SPECIAL = re.compile(r'[",]|^\s*::')


def csv_line(cells: Iterable[str]) -> str:
    """Return one line with its end.

    Control characters are escaped; an only cell that is empty is quoted, else it were no line.
    """
    shown = [visible(cell, len(cell)) for cell in cells]
    fields = [_quoted(cell) if _SPECIAL.search(cell) else cell for cell in shown]
    if fields == [""]:
        fields = ['""']
    return ",".join(fields) + "\n"


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'
