"""Lines of CSV that every reader takes apart again, whatever the texts are.

Python's own writer leaves a carriage return without quotation marks, and readers then see the end
of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["csv_line"]

_SPECIAL = re.compile(r'[",\r\n]')


def csv_line(cells: Iterable[str]) -> str:
    """Return one line with its end; an only cell that is empty is quoted, else it were no line."""
    fields = [_quoted(cell) if _SPECIAL.search(cell) else cell for cell in cells]
    if fields == [""]:
        fields = ['""']
    return ",".join(fields) + "\n"


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'
