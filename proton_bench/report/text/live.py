"""The last seconds of a recording: text and a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.live import LastSeconds, Work
from proton_bench.report.words.columns import Column, Table
from proton_bench.report.words.edge import DIM, edge_of, prose
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, duration_text, share_text

SCHEMA = "proton_bench.live"
VERSION = (1, 0)
_MOST = 8
_OVER = "the recording is over; `proton view FILE` shows what was recorded"


@dataclass(frozen=True, slots=True)
class LiveReport:
    """A rich renderable of the last seconds.

    Attributes:
        source: File that is followed.
        last: What was recorded.
        age_ns: Since the last of it was written.
        is_over: Whether the recording has ended.
    """

    source: str
    last: LastSeconds
    age_ns: int
    is_over: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield a line on devices and steps, and tables of layers and kernels."""
        edge, last = edge_of(console, options), self.last
        if not last.has_length:
            text = _OVER if self.is_over else "waiting for the next file"
            yield from prose(console, f"{visible(self.source)}  {text}", None, edge=edge)
            return
        parts = [f"{name} busy {share_text(busy)}" for name, busy in last.busy.items()]
        if last.steps_per_second is not None:
            parts.append(f"{last.steps_per_second:.3g} steps per second")
        age = "the recording is over" if self.is_over else f"{duration_text(self.age_ns)} ago"
        parts.append(f"last {duration_text(last.length_ns)}, {age}")
        yield from prose(console, f"{visible(self.source)}  {'; '.join(parts)}", None, edge=edge)
        if not last.kernels and not last.layers:
            yield from prose(console, "no work was recorded in that time", DIM, edge=edge)
        for title, works in (("layers", last.layers), ("kernels and operators", last.kernels)):
            if works:
                yield Segment("\n")
                yield from _table(title, works, last.length_ns, edge=edge)


def _table(
    title: str, works: Sequence[Work], length_ns: int, *, edge: int | None
) -> Iterator[Segment]:
    shown = works[:_MOST]
    unit = Unit.of_times(each.time_ns for each in shown)
    table = Table(
        [
            Column("time", tuple(unit.texts(each.time_ns for each in shown)), 0, unit.name),
            Column("% of time", tuple(f"{each.time_ns / length_ns:.1%}"[:-1] for each in shown), 1),
            Column("count", tuple(f"{each.count:g}" for each in shown), 2),
        ],
        edge,
    )
    left_out = f", {len(works) - len(shown)} more" if len(works) > len(shown) else ""
    yield from table.heading(f"{title}{left_out}")
    for place, each in enumerate(shown):
        yield from table.values(place)
        yield Segment(f"{table.fitting(visible(each.name))}\n")


def live_document(report: LiveReport, pid: int) -> dict[str, Any]:
    """Return what ``proton view --watch --once --json`` prints."""
    last = report.last
    return {
        "schema": SCHEMA,
        "version": list(VERSION),
        "source": report.source,
        "pid": pid,
        "is_over": report.is_over,
        "age_ns": report.age_ns,
        "begin_ns": last.begin_ns,
        "end_ns": last.end_ns,
        "busy": dict(last.busy),
        "steps": last.steps,
        "steps_per_second": last.steps_per_second,
        "layers": [_work(each) for each in last.layers],
        "kernels": [_work(each) for each in last.kernels],
    }


def _work(work: Work) -> dict[str, Any]:
    return {"name": work.name, "time_ns": work.time_ns, "count": work.count}
