"""Results of queries, as tables, CSV and JSON, and values of call paths of a store."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.query.relations import LabelledRun
from proton_bench.analysis.query.sql import QueryResult
from proton_bench.formats.export.table_files import csv_line
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.report.words.columns import Column, Table, sparkline
from proton_bench.report.words.edge import DIM, HEADING, edge_of, fitting_name, prose
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text, number_texts

_VERSION = (1, 0)
_GAP = "  "
_NS_PER_S = 1_000_000_000
_INT64 = range(-(2**63), 2**63)
# A column of text on a terminal is never cut below this.
_MIN_WIDTH = 12
_QUANTILES = ("median", "p99")


@dataclass(frozen=True, slots=True, eq=False)
class ResultReport:
    """A rich renderable of a result, one line per row; texts are cut only on a terminal."""

    result: QueryResult

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the heading, the lines and their number."""
        result = self.result
        columns = [
            _column(name, [row[place] for row in result.rows])
            for place, name in enumerate(result.columns)
        ]
        if console.is_terminal:
            columns = _narrowed(columns, options.max_width)
        lines = zip(*(column.aligned() for column in columns), strict=True)
        for place, cells in enumerate(lines):
            yield Segment(f"{_GAP.join(cells).rstrip()}\n", None if place else HEADING)
        count = count_text(len(result.rows), "line")
        more = "; --json and --csv have all" if result.has_more else ""
        yield Segment(f"({count}{more})\n", DIM)


def _column(name: str, values: Sequence[Any]) -> Column:
    present = [value for value in values if value is not None]
    if present and all(map(_is_number, present)):
        plain = [float(value) if isinstance(value, Decimal) else value for value in values]
        return Column(visible(name), number_texts(plain))
    return Column(visible(name), list(map(_cell_text, values)), is_text=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell_text(value: Any) -> str:
    if value is None:
        return "-"
    return visible(value if isinstance(value, str) else _text(value))


def _narrowed(columns: list[Column], width: int) -> list[Column]:
    """Return the columns with the widest texts cut until a line fits the terminal, or nearly."""
    widths = [column.width for column in columns]
    texts = [place for place, column in enumerate(columns) if column.is_text]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0 and texts:
        widest = max(texts, key=lambda place: widths[place])
        if widths[widest] <= _MIN_WIDTH:
            break
        others = [widths[place] for place in texts if widths[place] < widths[widest]]
        kept = max(widths[widest] - excess, _MIN_WIDTH, *others)
        excess -= widths[widest] - kept
        widths[widest] = kept
    return [_cut(column, room) for column, room in zip(columns, widths, strict=True)]


def _cut(column: Column, room: int) -> Column:
    if column.width <= room:
        return column
    texts = [fitting_name(text, room) for text in column.texts]
    return replace(column, title=fitting_name(column.title, room), texts=texts)


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
                "source": run.file,
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


# -- call paths of a store -----------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class PathReport:
    """A rich renderable of the answer to a question: a line per group, and a line of bars.

    Attributes:
        lines: The lines of the answer, by time, with the columns of `store.questions.path_series`.
        glob: The glob of the question.
        by: The columns that name a group.
        metric: Full name of the metric.
        limit: Most lines, None for all.
    """

    lines: Sequence[Mapping[str, Any]]
    glob: str
    by: Sequence[str]
    metric: str
    limit: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines, then the values of each path over all lines as bars."""
        edge = edge_of(console, options)
        shown = self.lines[: self.limit]
        table = Table(self._columns(shown), edge)
        yield from table.heading(", ".join(self.by))
        for place, line in enumerate(shown):
            yield from table.values(place, None)
            name = ", ".join(_group_text(line[column]) for column in self.by)
            yield Segment(f"{table.fitting(name)}\n")
        yield Segment("\n")
        for name, values in self._histories():
            bars = sparkline(np.array(values), ascii_only=options.ascii_only)
            yield Segment(f"{bars}  {name}\n")
        quantiles = [column.title for column in table.columns if column.title in _QUANTILES]
        for text in self._footer(len(shown), quantiles):
            yield from prose(console, text, DIM, edge=edge)

    def _columns(self, lines: Sequence[Mapping[str, Any]]) -> list[Column]:
        unit = MetricSpec(self.metric).unit
        means = [_mean(line) for line in lines]
        found = [
            Column("start", tuple(_day(line["time_unix_nano"]) for line in lines), 2),
            Column("profiles", tuple(str(line["present"]) for line in lines), 3),
            _numbers("mean", means, unit),
            Column("share %", tuple(_percent(line["share"]) for line in lines), 1),
        ]
        found += [
            replace(_numbers(name, [line[name] for line in lines], unit), worth=worth)
            for worth, name in enumerate(_QUANTILES, 4)
            if any(line[name] is not None for line in lines)
        ]
        return found

    def _histories(self) -> Iterator[tuple[str, list[float]]]:
        """Yield the positive means of each path with several, in the order of the lines."""
        found: dict[str, list[float]] = {}
        for line in self.lines:
            name = line["path"] if "path" in self.by else self.glob
            values = found.setdefault(_group_text(name), [])
            values += [_mean(line)] if _mean(line) > 0.0 else []
        yield from ((name, values) for name, values in found.items() if len(values) > 1)

    def _footer(self, shown: int, quantiles: Sequence[str]) -> Iterator[str]:
        mean = f"mean is {visible(self.metric)} of a profile that has the path"
        yield f"{mean}; quantiles are those of its calls" if quantiles else mean
        if shown < len(self.lines):
            left_out = count_text(len(self.lines) - shown, "line")
            yield f"{left_out} left out; --json has all"


def _mean(line: Mapping[str, Any]) -> float:
    return float(line["total"] / line["present"])


def _numbers(title: str, values: Sequence[float | None], unit: str) -> Column:
    scale = Unit.of_times(values) if unit == "ns" else Unit.of_numbers(values, 1.0, unit)
    return Column(title, tuple(scale.texts(values, missing="-")), 0, scale.name)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.2f}"


def _day(time_ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(time_ns // _NS_PER_S))


def _group_text(value: Any) -> str:
    return "-" if value is None else visible(str(value))
