"""The times of ranks, scope by scope: a table, and a JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.ranks import ScopeTimes, Stragglers
from proton_bench.report.words.columns import Column, Table
from proton_bench.report.words.edge import DIM, WARNING, edge_of, prose
from proton_bench.report.words.header import gap_sentences
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text

_MOST_RANKS = 8
_MOST_SCOPES = 40
_NOTHING = "-"
_VERSION = (1, 0)


@dataclass(frozen=True, slots=True, eq=False)
class StragglerReport:
    """A rich renderable of the time of each scope on each rank.

    Attributes:
        stragglers: What to show.
    """

    stragglers: Stragglers

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield missing ranks, then a line per scope; if there are many, those that differ most."""
        edge = edge_of(console, options)
        for sentence in gap_sentences(self.stragglers.gaps):
            yield from prose(console, f"INCOMPLETE: {sentence}", WARNING, edge=edge)
        scopes = _shown(self.stragglers.scopes)
        every = _columns(self.stragglers, scopes)
        table = Table(every, edge)
        yield from table.heading("scope")
        for place, scope in enumerate(scopes):
            yield from table.values(place)
            name = "  " * (len(scope.path) - 1) + visible(scope.path[-1]) if scope.path else "all"
            yield Segment(f"{table.fitting(name)}\n")
        for line in self._footer(table.hidden):
            yield from prose(console, line, DIM, edge=edge)

    def _footer(self, hidden: int) -> Iterator[str]:
        yield ""
        what = visible(self.stragglers.metric)
        if _has_waiting(self.stragglers.scopes):
            what += " without NCCL's kernels, whose largest time is in the column waiting"
        yield f"times are {what}; spread is slowest minus fastest, relative to the median rank"
        left_out = len(self.stragglers.scopes) - min(len(self.stragglers.scopes), _MOST_SCOPES)
        if left_out:
            yield (
                f"{count_text(left_out, 'scope')} with smaller differences left out; --json has all"
            )
        if hidden:
            yield f"{count_text(hidden, 'column')} left out; a pipe or file gets all"


def straggler_document(stragglers: Stragglers, sources: Sequence[str]) -> dict[str, Any]:
    """Return what ``proton merge --stragglers --json`` prints.

    Times are in the order of ``ranks``, None if a rank does not have the scope.
    """
    return {
        "schema": "proton_bench.stragglers",
        "version": _VERSION,
        "sources": list(sources),
        "metric": stragglers.metric,
        "ranks": stragglers.ranks,
        "job": asdict(stragglers.gaps),
        "scopes": [
            {
                "path": scope.path,
                "work_ns": scope.work_ns,
                "waiting_ns": scope.waiting_ns,
                "slowest_rank": (
                    stragglers.ranks[scope.slowest] if scope.slowest is not None else None
                ),
                "excess_ns": scope.excess_ns,
                "spread_pct": scope.spread_pct,
            }
            for scope in stragglers.scopes
        ],
    }


def _shown(scopes: Sequence[ScopeTimes]) -> list[ScopeTimes]:
    """Return the scopes that differ most, in the order of the tree."""
    most = sorted(range(len(scopes)), key=lambda place: -scopes[place].excess_ns)
    return [scopes[place] for place in sorted({0, *most[:_MOST_SCOPES]})]


def _columns(stragglers: Stragglers, scopes: Sequence[ScopeTimes]) -> list[Column]:
    ranks = stragglers.ranks
    waits = [max((w for w in s.waiting_ns if w is not None), default=None) for s in scopes]
    unit = Unit.of_times([*(work for scope in scopes for work in scope.work_ns), *waits])

    def times(title: str, values: Iterable[float | None], worth: int) -> Column:
        return Column(title, tuple(unit.texts(values, missing=_NOTHING)), worth, unit.name)

    slowest = [_NOTHING if s.slowest is None else f"rank {ranks[s.slowest]}" for s in scopes]
    spread = [_NOTHING if s.spread_pct is None else f"{s.spread_pct:.1f}" for s in scopes]
    found = [Column("slowest", tuple(slowest)), Column("spread %", tuple(spread))]
    if len(ranks) <= _MOST_RANKS:
        for place, rank in enumerate(ranks):
            found.append(times(f"rank {rank}", [scope.work_ns[place] for scope in scopes], 1))
    else:
        for title, pick in (("least", np.min), ("median", np.median), ("most", np.max)):
            known = [[work for work in scope.work_ns if work is not None] for scope in scopes]
            found.append(times(title, [float(pick(each)) if each else None for each in known], 1))
    if _has_waiting(scopes):
        found.append(times("waiting", waits, 2))
    return found


def _has_waiting(scopes: Sequence[ScopeTimes]) -> bool:
    return any(waits for scope in scopes for waits in scope.waiting_ns)
