"""Values of call paths over the runs, ranks or revisions of a store, on the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.report.text.history import sparkline
from proton_bench.report.text.theme import DIM, HEADING
from proton_bench.report.words.columns import LEAST_NAME, Column, fitting_columns
from proton_bench.report.words.edge import edge_of, fitting_name, prose
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text

__all__ = ["PathReport"]

_NS_PER_S = 1_000_000_000


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
        every = self._columns(shown)
        columns = every if edge is None else fitting_columns(every, edge)
        for column in columns:
            yield Segment(f"{column.heading.rjust(column.width)}  ", HEADING)
        yield Segment(f"{', '.join(self.by)}\n", HEADING)
        room = (edge or 0) - sum(column.width + 2 for column in columns)
        for place, line in enumerate(shown):
            for column in columns:
                yield Segment(f"{column.texts[place].rjust(column.width)}  ")
            name = ", ".join(_text(line[column]) for column in self.by)
            yield Segment(
                f"{name if edge is None else fitting_name(name, max(room, LEAST_NAME))}\n"
            )
        yield Segment("\n")
        for name, values in self._histories():
            bars = sparkline(np.array(values), ascii_only=options.ascii_only)
            yield Segment(f"{bars}  {name}\n")
        for text in self._footer(len(shown)):
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
            for name, worth in (("median", 4), ("p99", 5))
            if any(line[name] is not None for line in lines)
        ]
        return found

    def _histories(self) -> Iterator[tuple[str, list[float]]]:
        """Yield the positive means of each path with several, in the order of the lines."""
        found: dict[str, list[float]] = {}
        for line in self.lines:
            name = line["path"] if "path" in self.by else self.glob
            values = found.setdefault(_text(name), [])
            values += [_mean(line)] if _mean(line) > 0.0 else []
        yield from ((name, values) for name, values in found.items() if len(values) > 1)

    def _footer(self, shown: int) -> Iterator[str]:
        yield (
            f"mean is {visible(self.metric)} of a profile that has the path; median and p99 are "
            "those of its calls"
        )
        if shown < len(self.lines):
            yield f"{count_text(len(self.lines) - shown, 'line')} left out; --limit 0 shows all"


def _mean(line: Mapping[str, Any]) -> float:
    return float(line["total"] / line["present"])


def _numbers(title: str, values: Sequence[float | None], unit: str) -> Column:
    scale = Unit.of_times(values) if unit == "ns" else Unit.of_numbers(values, 1.0, unit)
    return Column(title, tuple(scale.texts(values, missing="-")), 0, scale.name)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.2f}"


def _day(time_ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(time_ns // _NS_PER_S))


def _text(value: Any) -> str:
    return "-" if value is None else visible(str(value))
