"""A history: on the terminal, series with failing steps first, and as a JSON document."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

from proton_bench.gate.history.divisive import FEWEST_BESIDE, FEWEST_POINTS
from proton_bench.gate.history.history import History, Trace
from proton_bench.gate.history.points import Machine, Point
from proton_bench.gate.history.steps import Step
from proton_bench.gate.verdict.result import EXIT_CODES, SuiteVerdict
from proton_bench.report.words.columns import Column, Table, sparkline
from proton_bench.report.words.edge import DIM, HEADING, WARNING, edge_of, fitting_name, prose
from proton_bench.report.words.gate import path_text
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text, percent_text

_BAD, _GOOD = Style(color="red", bold=True), Style(color="green", bold=True)
_SUITE = {SuiteVerdict.PASS: _GOOD, SuiteVerdict.FAIL: _BAD}
_REVISION, _MAX_SOURCE, _MAX_MACHINE, _MAX_TOOLS = 12, 80, 80, 3
_MAX_REASON, _MAX_FACT = 200, 40


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """A rich renderable of a history.

    Attributes:
        history: What to show.
        everything: Whether series without a step are shown too.
        judged: Whether the verdict is shown.
    """

    history: History
    everything: bool = False
    judged: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines; only on a terminal columns and names are cut."""
        history = self.history
        head, style = summary_text(history), HEADING
        if self.judged:
            head, style = f"{history.verdict}: {head}", _SUITE.get(history.verdict, WARNING)
        edge = edge_of(console, options)
        yield from prose(console, head, style, edge=edge)
        for note in notes(history):
            yield from prose(console, f"note  {note}", WARNING, edge=edge)
        shown = [trace for trace in history.traces if trace.steps or self.everything]
        for place, here in places(shown):
            yield Segment("\n")
            yield from prose(console, place, HEADING, edge=edge)
            yield from _table(here, console, options)
        yield from self._end(hidden=len(history.traces) - len(shown))

    def _end(self, *, hidden: int) -> Iterator[Segment]:
        yield Segment("\n")
        if hidden:
            text = count_text(hidden, "series has", "series have")
            yield Segment(f"{text} no step; --all shows them\n", DIM)
        fewest = self.history.fewest_after
        if fewest is not None:
            yield Segment(
                f"in {self.history.points} points, a step shows from about the {_ordinal(fewest)} "
                "point after it\n",
                DIM,
            )


def summary_text(history: History) -> str:
    """Return one line: how many series there are, and what is wrong."""
    with_steps = [trace for trace in history.traces if trace.steps]
    what = f"{len(with_steps)} of {count_text(len(history.traces), 'series', 'series')}"
    if not history.traces:
        return "no path could be measured in any of these runs"
    if history.failing:
        worst = history.failing[0]
        first, many = worst.failing[0], len(worst.failing)
        size = _size_text(first) if many == 1 else f"{percent_text(worst.rise)} in {many} steps"
        return (
            f"{shown_name(worst)}: {worst.series.metric} {size} from "
            f"{point_text(worst.series.points[first.at])}; {len(history.failing)} of "
            f"{count_text(len(history.traces), 'series', 'series')} got worse"
        )
    if with_steps:
        return f"{what} changed; nothing got worse, or it was acknowledged or taken back"
    if history.fewest_after is None:
        return (
            f"{count_text(len(history.traces), 'series', 'series')} of at most "
            f"{count_text(history.points, 'point')} are too short to find a step"
        )
    return f"{what} changed"


def notes(history: History) -> Iterator[str]:
    """Yield notes on the whole."""
    if history.traces and history.fewest_after is None and any(t.steps for t in history.traces):
        yield "the series are so short that most steps cannot be found; more points are needed"
    if history.traces and history.fewest_after is None and not any(t.steps for t in history.traces):
        yield (
            f"a step can be found in {history.enough_points} points; with fewer paths, chosen with "
            "--path, it takes fewer"
        )
    short = sum(len(trace.series.points) < FEWEST_POINTS for trace in history.traces)
    if short and history.fewest_after is not None:
        yield (
            f"{short} of {count_text(len(history.traces), 'series', 'series')} have fewer than "
            f"{FEWEST_POINTS} points, too few to find a step"
        )
    for source, why in history.left_out.items():
        yield f"{visible(source, _MAX_SOURCE)} is left out: {visible(why, _MAX_REASON)}"


def places(traces: Sequence[Trace]) -> list[tuple[str, list[Trace]]]:
    """Return the series of each baseline and machine with a text that tells it from the others."""
    found: dict[tuple[str, Machine], list[Trace]] = {}
    for trace in traces:
        found.setdefault((trace.series.key.group, trace.series.key.machine), []).append(trace)
    texts = [_place_text(*place) for place in found]
    named = []
    for (group, machine), text in zip(found, texts, strict=True):
        alike = [other for (_, other), each in zip(found, texts, strict=True) if each == text]
        apart = [
            f"{visible(fact, _MAX_FACT)} {visible(value, _MAX_FACT)}"
            for fact, value in machine
            if any((fact, value) not in other for other in alike)
        ]
        named.append((", ".join([text, *apart]), found[group, machine]))
    return named


def _place_text(group: str, machine: Machine) -> str:
    facts = dict(machine)
    device = facts.get("GPU name") or next(
        (value for fact, value in machine if fact.endswith(" device")), ""
    )
    uuid = facts.get("GPU uuid", "")
    named = f"{device} ({uuid})" if device and uuid else device
    host = f"host {facts['host']}" if "host" in facts else ""
    parts = [group, named, host]
    return ", ".join(visible(part, _MAX_MACHINE) for part in parts if part) or "unknown machine"


def shown_name(trace: Trace) -> str:
    """Return the path of a series on one line, with readable names."""
    texts = trace.series.points[-1].texts
    name = path_text([texts.get(name, name) for name in trace.series.key.path])
    occurrence = trace.series.key.occurrence
    return f"{name} ({_ordinal(occurrence + 1)})" if occurrence else name


def unit_of(traces: Sequence[Trace], metric: str = "") -> Unit:
    """Return the common unit of levels; that of times fits the largest."""
    levels = [level for trace in traces for level in trace.levels]
    unit = traces[0].series.key.unit if traces else ""
    return Unit.of_times(levels) if unit == "ns" else Unit.of_numbers(levels, 1.0, unit or metric)


def end_text(trace: Trace) -> str:
    """Say that the last runs of a machine lack a path, "" where they do not."""
    later = trace.series.later
    return f"not in the last {later} runs" if later >= FEWEST_BESIDE else ""


def step_text(trace: Trace, step: Step) -> str:
    """Return a step in one line: its size, where it begins, and what is known besides."""
    points = trace.series.points
    point = points[step.at]
    parts = [f"{_size_text(step)} from {point_text(point)}, {when_text(point)}".rstrip(", ")]
    span = _range_text(trace, step)
    parts += [span] if span else []
    changed = tool_changes(points[step.at - 1], point)
    parts += [f"with {', '.join(changed)}"] if changed else []
    if step in trace.failing:
        parts.append("not acknowledged")
    elif trace.is_acknowledged(step) and trace.acknowledged is not None:
        parts.append(f"acknowledged by {visible(trace.acknowledged.by, _MAX_SOURCE)}")
    return "; ".join(parts)


def point_text(point: Point) -> str:
    """Return the name of a point with its revision."""
    name = fitting_name(visible(point.source), _MAX_SOURCE)
    return f"{name}, revision {_revision(point)}" if point.revision else name


def when_text(point: Point) -> str:
    """Return when a point was recorded, "" if unknown."""
    if point.time_ns is None:
        return ""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(point.time_ns // 1_000_000_000))
    except (OverflowError, ValueError, OSError):
        return ""


def tool_changes(before: Point, after: Point) -> list[str]:
    """Return which versions changed between two points, the first few."""
    both = [fact for fact in after.tools if fact in before.tools]
    changed = [
        f"{visible(fact, _MAX_FACT)} {visible(before.tools[fact], _MAX_FACT)} -> "
        f"{visible(after.tools[fact], _MAX_FACT)}"
        for fact in both
        if before.tools[fact] != after.tools[fact]
    ]
    more = len(changed) - _MAX_TOOLS
    return [*changed[:_MAX_TOOLS], f"{more} more"] if more > 0 else changed


def _table(traces: Sequence[Trace], console: Console, options: ConsoleOptions) -> Iterator[Segment]:
    edge = edge_of(console, options)
    table = Table(_columns(traces, ascii_only=options.ascii_only), edge)
    yield from table.heading("path")
    for place, trace in enumerate(traces):
        yield from table.values(place, None, {"change": _BAD if trace.failing else None})
        yield Segment(f"{table.fitting(shown_name(trace))}\n")
        if end := end_text(trace):
            yield from prose(console, f"    {end}", WARNING, edge=edge)
        for step in trace.steps:
            style = _BAD if step in trace.failing else DIM
            yield from prose(console, f"    {step_text(trace, step)}", style, edge=edge)


def _columns(traces: Sequence[Trace], *, ascii_only: bool) -> list[Column]:
    changes = tuple(percent_text(trace.change) if trace.steps else "-" for trace in traces)
    metrics = {trace.series.metric for trace in traces}
    units = {
        metric: unit_of([t for t in traces if t.series.metric == metric], metric)
        for metric in metrics
    }
    ends = [
        units[trace.series.metric].texts([trace.levels[0], trace.levels[-1]]) for trace in traces
    ]
    name = (
        next(iter(units.values())).name if len({unit.name for unit in units.values()}) == 1 else ""
    )
    found = [
        Column("change", changes),
        Column("first", tuple(first for first, _ in ends), 2, name),
        Column("last", tuple(last for _, last in ends), 2, name),
        Column(
            "history",
            tuple(sparkline(trace.series.values, ascii_only=ascii_only) for trace in traces),
            1,
            is_text=True,
        ),
    ]
    if len(metrics) > 1:
        texts = {  # with the unit where it is not in the headings
            metric: metric if unit.name in {"", name, metric} else f"{metric} ({unit.name})"
            for metric, unit in units.items()
        }
        found.append(
            Column("metric", tuple(texts[trace.series.metric] for trace in traces), is_text=True)
        )
    return found


def _size_text(step: Step) -> str:
    ends = f"{percent_text(math.expm1(step.low))} to {percent_text(math.expm1(step.high))}"
    return f"{percent_text(math.expm1(step.change))} ({ends})"


def _revision(point: Point) -> str:
    return visible(point.revision[:_REVISION]) + ("+" if point.is_dirty else "")


def _range_text(trace: Trace, step: Step) -> str:
    """Return between which revisions it began, "" if they are unknown or one."""
    points = trace.series.points
    last_before, last = points[step.earliest - 1], points[step.latest]
    if not (last_before.revision and last.revision) or last_before.revision == last.revision:
        return ""
    first, end = (visible(each.revision[:_REVISION]) for each in (last_before, last))
    return f"began in {first}..{end}"


def _ordinal(number: int) -> str:
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 < number % 100 < 14 else ends.get(number % 10, 'th')}"


# -- other forms -----------------------------------------------------------------------------------
_SCHEMA = "proton_bench.history"
_VERSION = (1, 0)


def history_document(history: History) -> dict[str, Any]:
    """Return what ``proton history --json`` and ``proton gate --history --json`` print."""
    return {
        "schema": _SCHEMA,
        "version": _VERSION,
        "verdict": str(history.verdict),
        "exit_code": EXIT_CODES[history.verdict],
        "false_discovery_rate": history.level,
        "fewest_points_after_a_step": history.fewest_after,
        "series": [_series(trace) for trace in history.traces],
        "left_out": dict(history.left_out),
    }


def _series(trace: Trace) -> dict[str, Any]:
    series, known = trace.series, trace.acknowledged
    key = series.key
    return {
        "id": key.digest,
        "baseline": key.group or None,
        "path": list(key.path),
        "occurrence": key.occurrence,
        "metric": series.metric,
        "unit": key.unit or None,
        "machine": dict(key.machine),
        "quarantined": series.is_quarantined,
        "levels": list(trace.levels),
        "change": trace.change,
        "later_points_without_it": series.later,
        "points": [
            {**_point(point), "value": value}
            for point, value in zip(series.points, series.values.tolist(), strict=True)
        ],
        "steps": [_step(trace, step) for step in trace.steps],
        "acknowledged": None
        if known is None
        else {
            "until_ns": known.until_ns,
            "by": known.by,
            "at_ns": known.at_ns,
            "revision": known.revision or None,
        },
    }


def _step(trace: Trace, step: Step) -> dict[str, Any]:
    points = trace.series.points
    return {
        "change": math.expm1(step.change),
        "low": math.expm1(step.low),
        "high": math.expm1(step.high),
        "adjusted_p_value": step.p_value,
        "first_after": _point(points[step.at]),
        "last_before": _point(points[step.at - 1]),
        "begins_after": _point(points[step.earliest - 1]),
        "begins_until": _point(points[step.latest]),
        "acknowledged": trace.is_acknowledged(step),
        "fails": step in trace.failing,
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "source": point.source,
        "time_ns": point.time_ns,
        "revision": point.revision or None,
        "dirty": point.is_dirty,
        "runs": point.runs,
    }
