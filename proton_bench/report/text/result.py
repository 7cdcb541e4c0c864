"""The result of a query, as a table, as CSV and as a JSON document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.query.relations import LabelledRun
from proton_bench.analysis.query.sql import QueryResult
from proton_bench.formats.export.csv_text import csv_line
from proton_bench.report.text.theme import DIM, HEADING
from proton_bench.support.text import visible
from proton_bench.support.units import count_text, number_texts

__all__ = ["ResultReport", "result_csv", "result_document"]

_VERSION = (1, 0)
_GAP = "  "
_INT64 = range(-(2**63), 2**63)
# A column of text on a terminal is never cut below this.
_MIN_WIDTH = 12


@dataclass(frozen=True, slots=True, eq=False)
class ResultReport:
    """A rich renderable of a result, one line per row; texts are cut only on a terminal."""

    result: QueryResult

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the heading, the lines and their number."""
        result = self.result
        columns = [
            _Column.of(name, [row[place] for row in result.rows])
            for place, name in enumerate(result.columns)
        ]
        if console.is_terminal:
            columns = _fitted(columns, options.max_width)
        yield Segment(_line([column.title for column in columns], columns) + "\n", HEADING)
        for cells in zip(*(column.cells for column in columns), strict=True):
            yield Segment(_line(cells, columns) + "\n")
        lines = count_text(len(result.rows), "line")
        more = "; use --limit to see more" if result.has_more else ""
        yield Segment(f"({lines}{more})\n", DIM)


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cells: list[str]
    is_number: bool
    width: int

    @classmethod
    def of(cls, name: str, values: Sequence[Any]) -> _Column:
        title = visible(name)
        known = [value for value in values if value is not None]
        is_number = bool(known) and all(
            isinstance(value, int | float | Decimal) and not isinstance(value, bool)
            for value in known
        )
        cells = number_texts(values) if is_number else [_cell_text(value) for value in values]
        return cls(title, cells, is_number, max(map(cell_len, (title, *cells))))


def _cell_text(value: Any) -> str:
    if value is None:
        return "-"
    return visible(value if isinstance(value, str) else _text(value))


def _line(cells: Sequence[str], columns: Sequence[_Column]) -> str:
    shown = [_padded(cell, column) for cell, column in zip(cells, columns, strict=True)]
    return _GAP.join(shown).rstrip()


def _padded(cell: str, column: _Column) -> str:
    missing = column.width - cell_len(cell)
    if missing < 0:
        return set_cell_size(cell, column.width - 1) + "…"
    return " " * missing + cell if column.is_number else cell + " " * missing


def _fitted(columns: list[_Column], width: int) -> list[_Column]:
    """Return the columns with the widest texts cut until a line fits the terminal, or nearly."""
    excess = sum(column.width + len(_GAP) for column in columns) - len(_GAP) - width
    while excess > 0:
        texts = [place for place, column in enumerate(columns) if not column.is_number]
        widest = max(texts, key=lambda place: columns[place].width, default=None)
        if widest is None or columns[widest].width <= _MIN_WIDTH:
            break
        column = columns[widest]
        others = [columns[place].width for place in texts if place != widest]
        floor = max(_MIN_WIDTH, max((w for w in others if w < column.width), default=0))
        kept = max(column.width - excess, floor)
        excess -= column.width - kept
        columns[widest] = _Column(column.title, column.cells, column.is_number, kept)
    return columns


def result_csv(result: QueryResult) -> bytes:
    """Return the result as UTF-8 CSV with a heading; a missing value is an empty field."""
    lines = [csv_line(result.columns)]
    lines += [
        csv_line("" if value is None else _text(value) for value in row) for row in result.rows
    ]
    return "".join(lines).encode()


def result_document(result: QueryResult, runs: Sequence[LabelledRun], query: str) -> dict[str, Any]:
    """Return what ``proton query --json`` prints.

    ``rows`` hold values in the order of ``columns``; missing values, NaN and infinity are None.
    """
    return {
        "schema": "proton_bench.query",
        "version": _VERSION,
        "query": query,
        "runs": [
            {
                "run": run.label,
                "source": run.file.encode("utf-8", "backslashreplace").decode(),
                "partial": run.profile.partial,
                "dropped": dict(run.profile.dropped),
                "estimated_cost_ns": cost.cost_ns if cost is not None else None,
            }
            for run, cost in ((run, own_cost(run.profile)) for run in runs)
        ],
        "columns": [
            {"name": name, "type": kind}
            for name, kind in zip(result.columns, result.types, strict=True)
        ],
        "rows": [[_plain(value) for value in row] for row in result.rows],
        "more_rows": result.has_more,
    }


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Decimal) or (isinstance(value, int) and value not in _INT64):
        return msgspec.Raw(f"{value:f}".encode() if isinstance(value, Decimal) else b"%d" % value)
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return _text(value)


def _text(value: Any) -> str:
    """Return a value as one text: nested ones as JSON, times as ISO 8601."""
    if isinstance(value, list | tuple | dict):
        return msgspec.json.encode(_plain(value)).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
