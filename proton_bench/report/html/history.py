"""The part of the page about a history: series, a plot of each that has steps, and the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from proton_bench.gate.history.history import History, Trace
from proton_bench.gate.history.points import Point
from proton_bench.model.arrays import Floats
from proton_bench.report.html.roofline import Tick
from proton_bench.report.text.history import (
    end_text,
    places,
    point_text,
    shown_name,
    step_text,
    unit_of,
    when_text,
)
from proton_bench.support.units import Unit, count_text, percent_text

_SPARK_WIDTH, _SPARK_HEIGHT = 120, 22
# More would make a page that browsers show slowly.
_MOST_PLOTS, _MOST_ROWS = 200, 2000
_Y_TICKS, _X_TICKS = 5, 4
# Of the logarithm, above and below the values; noise must not fill the plot.
_LEAST_RANGE = 0.02


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a series: its text, whether it fails, and where it stands in the plot."""

    text: str
    fails: bool
    x: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """A series in the table, with the points of its small line."""

    name: str
    metric: str
    change: str
    first: str
    last: str
    line: str
    end: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """The drawing of one series.

    Attributes:
        name: Its path and metric.
        line: The points of its line.
        dots: x, y and text of each point.
        levels: x at both ends and y of the level between two steps.
        steps: Where the level changes.
        ranges: x and width of where a step may begin.
        x_ticks: Marks of times.
        y_ticks: Marks of values.
    """

    name: str
    line: str
    dots: tuple[tuple[float, float, str], ...]
    levels: tuple[tuple[float, float, float], ...]
    steps: tuple[Step, ...]
    ranges: tuple[tuple[float, float], ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    width: ClassVar[int] = 720
    height: ClassVar[int] = 240
    left: ClassVar[int] = 84
    right: ClassVar[int] = 704
    top: ClassVar[int] = 12
    bottom: ClassVar[int] = 212


@dataclass(frozen=True, slots=True)
class Place:
    """The series of one baseline or job on one machine.

    Attributes:
        name: What tells it from the other places.
        rows: Its series.
        plots: Those with steps.
        hidden: How many series are left out, "" for none.
        runs: When, name, number of profiles and address of the report of each run, newest first.
    """

    name: str
    rows: tuple[Row, ...]
    plots: tuple[Plot, ...]
    hidden: str
    runs: tuple[tuple[str, str, int, str], ...]


def history_places(history: History, reports: Mapping[str, str]) -> list[Place]:
    """Return the series of a history, by place.

    Args:
        history: The history.
        reports: Addresses of pages about single recordings, by their files.
    """
    left = _MOST_PLOTS
    found = []
    for name, here in places(history.traces):
        with_steps = [trace for trace in here if trace.steps][:left]
        left -= len(with_steps)
        hidden = len(here) - _MOST_ROWS
        found.append(
            Place(
                name=name,
                rows=tuple(_row(trace) for trace in here[:_MOST_ROWS]),
                plots=tuple(_plot(trace) for trace in with_steps),
                hidden=count_text(hidden, "series", "series") if hidden > 0 else "",
                runs=tuple(_runs(here, reports)),
            )
        )
    return found


def _runs(
    traces: Sequence[Trace], reports: Mapping[str, str]
) -> Iterator[tuple[str, str, int, str]]:
    """Yield the points of these series, the newest first."""
    points = {id(point): point for trace in traces for point in trace.series.points}
    ordered = sorted(points.values(), key=lambda point: point.time_ns or 0, reverse=True)
    for point in ordered[:_MOST_ROWS]:
        report = reports.get(point.recording, "")
        yield when_text(point), point_text(point), point.runs, report


def _row(trace: Trace) -> Row:
    unit = unit_of([trace])
    levels = trace.levels
    shares = _shares(trace.series.logarithms())
    xs = np.linspace(2.0, _SPARK_WIDTH - 2.0, len(shares))
    ys = (_SPARK_HEIGHT - 3.0) - shares * (_SPARK_HEIGHT - 6.0)
    return Row(
        name=shown_name(trace),
        metric=trace.series.metric,
        change=percent_text(trace.change) if trace.steps else "-",
        first=unit.text(levels[0]),
        last=unit.text(levels[-1]),
        line=_line(xs, ys),
        end=end_text(trace),
        steps=tuple(Step(step_text(trace, step), step in trace.failing) for step in trace.steps),
    )


def _plot(trace: Trace) -> Plot:
    series, unit = trace.series, unit_of([trace])
    logs = series.logarithms()
    xs = np.linspace(Plot.left + 8.0, Plot.right - 8.0, len(logs))
    half = (xs[1] - xs[0]) / 2.0 if len(xs) > 1 else 0.0
    ys = _y(_shares(logs))
    ends = [0, *(step.at for step in trace.steps), len(logs)]
    level_ys = _y(_shares(logs, np.log(np.array(trace.levels))))
    return Plot(
        name=f"{shown_name(trace)}, {series.metric}",
        line=_line(xs, ys),
        dots=tuple(
            (_at(x), _at(y), f"{unit.text(value)}, {point_text(point)}")
            for x, y, value, point in zip(
                xs, ys, series.values.tolist(), series.points, strict=True
            )
        ),
        levels=tuple(
            (_at(xs[start] - half), _at(xs[end - 1] + half), _at(y))
            for start, end, y in zip(ends, ends[1:], level_ys, strict=False)
        ),
        steps=tuple(
            Step(step_text(trace, step), step in trace.failing, _at(xs[step.at] - half))
            for step in trace.steps
        ),
        ranges=tuple(
            (_at(xs[step.earliest] - half), _at(xs[step.latest] - xs[step.earliest]))
            for step in trace.steps
        ),
        x_ticks=tuple(_x_ticks(trace, xs)),
        y_ticks=tuple(_y_ticks(logs, unit)),
    )


def _shares(logs: Floats, of: Floats | None = None) -> Floats:
    """Return positions between the lowest value and the highest one, with a margin."""
    low, high = float(logs.min()), float(logs.max())
    spare = max(_LEAST_RANGE - (high - low), 0.0) / 2.0 + 0.05 * (high - low)
    found: Floats = ((logs if of is None else of) - low + spare) / (high - low + 2.0 * spare)
    return found


def _y(shares: Floats) -> Floats:
    found: Floats = Plot.bottom - shares * (Plot.bottom - Plot.top)
    return found


def _x_ticks(trace: Trace, xs: Floats) -> Iterator[Tick]:
    points = trace.series.points
    spread = np.linspace(0, len(points) - 1, _X_TICKS).round().astype(int).tolist()
    chosen = list(dict.fromkeys(spread))
    for place, text in zip(
        chosen, _times([points[place] for place in chosen], chosen), strict=True
    ):
        at = min(max(_at(xs[place]), Plot.left + 40.0), Plot.right - 52.0)
        yield Tick(at, text)


def _times(points: Sequence[Point], chosen: Sequence[int]) -> list[str]:
    """Return the shortest texts that tell points apart: dates, with times, or their numbers."""
    times = [when_text(point).removesuffix(" UTC") for point in points]
    seconds = [(point.time_ns or 0) // 1_000_000_000 % 60 for point in points]
    exact = [f"{text}:{rest:02d}" for text, rest in zip(times, seconds, strict=True) if text]
    for texts in ([text.partition(" ")[0] for text in times], times, exact):
        if len({text for text in texts if text}) == len(points):
            return texts
    return [f"#{place + 1}" for place in chosen]


def _y_ticks(logs: Floats, unit: Unit) -> Iterator[Tick]:
    for share in np.linspace(0.0, 1.0, _Y_TICKS):
        low, high = (float(end) for end in (logs.min(), logs.max()))
        value = float(np.exp(low + share * (high - low)))
        at = float(_y(_shares(logs, np.array([np.log(value)])))[0])
        yield Tick(_at(at), unit.text(value))
        if high == low:
            return


def _line(xs: Sequence[float] | Floats, ys: Sequence[float] | Floats) -> str:
    return " ".join(f"{_at(x):g},{_at(y):g}" for x, y in zip(xs, ys, strict=True))


def _at(value: float) -> float:
    return round(float(value), 2)
