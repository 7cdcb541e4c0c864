"""The metrics of a profile as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.metrics.derive import AvailableMetrics
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.report.text.theme import HEADING
from proton_bench.support.text import visible

__all__ = ["ListReport"]

_LONGEST = 200  # characters of a name


@dataclass(frozen=True, slots=True)
class ListReport:
    """A rich renderable of the metrics for ``-m``."""

    available: AvailableMetrics

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the recorded metrics without units, then those that can be derived."""
        del console, options
        yield from _section("Available inclusive metrics:", self.available.inclusive)
        yield from _section("Available exclusive metrics:", self.available.exclusive)
        yield Segment("Derived metrics:\n", HEADING)
        for name in (*self.available.derivable, "<metric>/%"):
            yield Segment(f"- {visible(name, _LONGEST)}\n")


def _section(title: str, names: tuple[str, ...]) -> Iterator[Segment]:
    yield Segment(f"{title}\n", HEADING)
    for name in names:
        yield Segment(f"- {visible(MetricSpec(name).base.lower(), _LONGEST)}\n")
