"""What was found of another tool's counters, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.counters import CounterJoin
from proton_bench.report.names import visible
from proton_bench.report.theme import DIM, WARNING
from proton_bench.report.units import count_text

__all__ = ["CounterReport", "counter_document"]

_MAX_KERNELS = 10


@dataclass(frozen=True, slots=True, eq=False)
class CounterReport:
    """A rich renderable: how many measured launches belong to rows, and which do not.

    Attributes:
        join: The launches and their rows.
        source: Name of the file of counters.
    """

    join: CounterJoin
    source: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield one line of counts, and one per kernel that fits no row."""
        del console, options
        total = len(self.join.file.launches)
        line = f"counters of {visible(self.source)}: {self.join.matched} of "
        line += f"{count_text(total, 'launch', 'launches')} matched"
        if self.join.unmeasured:
            missing = count_text(self.join.unmeasured, "launch", "launches")
            line += f"; {missing} of the profile not measured"
        yield Segment(f"{line}\n", DIM)
        unmatched = self.join.unmatched()
        for kernel, count in list(unmatched.items())[:_MAX_KERNELS]:
            yield Segment(f"UNMATCHED: {count} of {visible(kernel, 120)}\n", WARNING)
        if len(unmatched) > _MAX_KERNELS:
            more = count_text(len(unmatched) - _MAX_KERNELS, "more kernel")
            yield Segment(f"UNMATCHED: {more}\n", WARNING)


def counter_document(join: CounterJoin, source: str) -> dict[str, Any]:
    """Return the same facts for a JSON document, with the names of all counters."""
    return {
        "source": source,
        "tool": join.file.tool,
        "matched": join.matched,
        "unmatched": join.unmatched(),
        "unmeasured": join.unmeasured,
        "available": join.file.names,
    }
