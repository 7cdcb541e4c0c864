"""Matched and unmatched counters of another tool, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.counters.join import CounterJoin, Doubt
from proton_bench.report.words.edge import DIM, WARNING, edge_of, prose
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

_MAX_KERNELS = 10


@dataclass(frozen=True, slots=True, eq=False)
class CounterReport:
    """A rich renderable: how many measured launches match rows, and which do not.

    Attributes:
        join: The launches and their rows.
        source: Name of the file of counters.
    """

    join: CounterJoin
    source: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield one line of counts, and one per kernel that matches no row or may be misplaced."""
        edge = edge_of(console, options)
        yield from prose(console, self._counts(), DIM, edge=edge)
        unmatched = self.join.unmatched()
        warnings = [
            *_most([f"UNMATCHED: {n} of {visible(name, 120)}" for name, n in unmatched.items()]),
            *_most([_doubt(doubt) for doubt in self.join.doubts if doubt.counts_differ]),
        ]
        for line in warnings:
            yield from prose(console, line, WARNING, edge=edge)
        ordered = sum(1 for doubt in self.join.doubts if not doubt.counts_differ)
        if ordered:
            which = count_text(ordered, "kernel was", "kernels were")
            line = f"{which} launched from several rows and paired only by order"
            yield from prose(console, line, DIM, edge=edge)
        yield Segment("\n")

    def _counts(self) -> str:
        total = len(self.join.file.launches)
        line = f"counters of {visible(self.source)}: {self.join.matched} of "
        line += f"{count_text(total, 'launch', 'launches')} matched"
        if self.join.unmeasured:
            missing = count_text(self.join.unmeasured, "launch", "launches")
            line += f"; {missing} of the profile not measured"
        return line


def _most(lines: Sequence[str]) -> Iterator[str]:
    """Yield the first lines, and the number of further kernels."""
    yield from lines[:_MAX_KERNELS]
    if len(lines) > _MAX_KERNELS:
        word = lines[0].partition(":")[0]
        yield f"{word}: {count_text(len(lines) - _MAX_KERNELS, 'more kernel')}"


def _doubt(doubt: Doubt) -> str:
    return (
        f"AMBIGUOUS: {visible(doubt.kernel, 120)}: {doubt.measured} launches measured, "
        f"{doubt.launched} in the profile from {doubt.places} rows: the counters of these rows "
        "may be swapped"
    )


def counter_document(join: CounterJoin, source: str) -> dict[str, Any]:
    """Return the same facts for a JSON document, with the names of all counters."""
    return {
        "source": source,
        "tool": join.file.tool,
        "matched": join.matched,
        "unmatched": join.unmatched(),
        "unmeasured": join.unmeasured,
        "shared_by_order": [asdict(doubt) for doubt in join.doubts],
        "available": join.file.names,
    }
