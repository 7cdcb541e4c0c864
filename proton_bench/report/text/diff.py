"""A comparison: on the terminal, as a JSON document and as Markdown for pull requests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.compare.compare import CONFIDENCE, Changes, Comparison
from proton_bench.analysis.compare.explanation import Cause, explain
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.ranking import Ranking
from proton_bench.analysis.metrics.formula import Divisor, divisor_of
from proton_bench.analysis.metrics.occupancy import OCCUPANCY
from proton_bench.analysis.run import Run
from proton_bench.model.frame import FrameKind
from proton_bench.model.steps import Steps
from proton_bench.report.words.columns import Column, Table
from proton_bench.report.words.diff import (
    COUNTS,
    amounts,
    calls_line,
    columns,
    cost_lines,
    cost_warning,
    footer,
    headline,
    loss_lines,
    meanings,
    names,
    notes,
    side_lines,
)
from proton_bench.report.words.edge import (
    DIM,
    HEADING,
    WARNING,
    chain_mark,
    edge_of,
    fitting,
    fitting_path,
    prose,
    without_folder,
)
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

_WORSE = Style(color="red")
_MUCH_WORSE = Style(color="red", bold=True)
_BETTER = Style(color="green")
_MUCH_BETTER = Style(color="green", bold=True)
_NOTE = Style(color="cyan")
# A change of this share of the largest one is printed bold.
_MUCH = 0.5
_MAX_INDENT = 64


@dataclass(frozen=True, slots=True, eq=False)
class DiffReport:
    """A rich renderable of a comparison.

    Attributes:
        comparison: What to show.
        ranking: Which rows, in which order.
    """

    comparison: Comparison
    ranking: Ranking

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines; only on a terminal columns and names are cut."""
        edge = edge_of(console, options)
        yield from self._summary(console, edge)
        table = Table(columns(self.comparison, self.ranking), edge)
        yield from table.heading("name")
        yield from self._rows(table, edge, chain_mark(options))
        yield from self._legend(table.columns, hidden=table.hidden)

    def _summary(self, console: Console, edge: int | None) -> Iterator[Segment]:
        yield Segment(f"{headline(self.comparison)}\n", HEADING)
        for word, text in side_lines(self.comparison):
            yield Segment(f"{word.rjust(4)}  {text}\n", DIM)
        for word, text in cost_lines(self.comparison):
            yield Segment(f"{word.rjust(4)}  {text}\n", DIM)
        scaled = calls_line(self.comparison)
        if scaled is not None:
            yield from prose(console, scaled, None, edge=edge)
        warning = cost_warning(self.comparison)
        if warning is not None:
            yield Segment(f"{warning}\n", WARNING)
        for loss in loss_lines(self.comparison):
            yield from prose(console, loss, WARNING, edge=edge)
        yield Segment("\n")

    def _rows(self, table: Table, edge: int | None, mark: str) -> Iterator[Segment]:
        labels = names(self.comparison, self.ranking)
        lines = zip(self.ranking.rows, self.ranking.depths, labels, strict=True)
        for place, (row, depth, label) in enumerate(lines):
            changed = self._style(row)
            yield from table.values(place, of={"change": changed, "%": changed})
            indent = "  " * min(depth, _MAX_INDENT) + (f"[{depth}] " if depth > _MAX_INDENT else "")
            said = "  ".join(notes(self.comparison, row))
            state = 0 if self.comparison.tree.states[row] == RowState.MATCHED else _first_word(said)
            name = mark.join(label)
            if edge is not None and table.room is not None:
                room = table.room - len(indent)
                if cell_len(name) + 2 + cell_len(said) > room:
                    left = room - state if 2 * state <= room else room
                    name = fitting_path([without_folder(each) for each in label], left, mark)
                said = fitting(said, edge - table.width - len(indent) - cell_len(name) - 2)
            yield Segment(f"{indent}{name}")
            if said:
                yield Segment(f"  {said}", _NOTE)
            yield Segment("\n")

    def _style(self, row: int) -> Style:
        values = self.comparison.inclusive
        change = float(values.change[row])
        if change == 0 or not (values.base_valid[row] or values.new_valid[row]):
            return DIM
        largest = max(abs(float(values.change[each])) for each in self.ranking.rows[1:2] or (0,))
        is_much = abs(change) >= _MUCH * largest
        if (change > 0) != _more_is_better(self.comparison.measure.name):
            return _MUCH_WORSE if is_much else _WORSE
        return _MUCH_BETTER if is_much else _BETTER

    def _legend(self, shown: Sequence[Column], *, hidden: int) -> Iterator[Segment]:
        titles = {column.title for column in shown}
        yield Segment("\nLegend\n", HEADING)
        yield Segment(f"  {visible(self.comparison.measure.name)}, by {self.comparison.by}\n")
        for title, meaning in meanings(self.comparison):
            if title in titles:
                yield Segment(f"  {title}: {meaning}\n")
        for line in footer(self.comparison, self.ranking):
            yield Segment(f"  {line}\n", DIM)
        if hidden:
            what = count_text(hidden, "column does", "columns do")
            yield Segment(f"  {what} not fit; a pipe or file gets all\n", DIM)


def _first_word(text: str) -> int:
    """Return the width of the first word with blanks before it and an ellipsis after it."""
    word, _, more = text.partition(" ")
    return 2 + cell_len(word) + bool(more)


def _more_is_better(name: str) -> bool:
    return name.strip().lower() in ("util", OCCUPANCY) or divisor_of(name) is Divisor.SECONDS


# -- other forms -----------------------------------------------------------------------------------
# Characters that could become markup, a cell's end, a link or a mention.
_MARKUP = re.compile(r"([\\`*_{}\[\]#|~$]|:(?=//))")
# GitHub links these by itself: mentions, except after a letter, where @ is part of a word such as
# file:line@function, and addresses without a scheme. &NoBreak; is a word joiner that our escaping
# does not treat as a hiding character.
_LINKED = re.compile(r"(?<!\w)@|\bwww(?=\.)", re.IGNORECASE)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escaped(text: str) -> str:
    """Return one line of text without markup, links or mentions."""
    text = visible(text, len(text)).translate(_ENTITIES)
    text = _LINKED.sub("\\g<0>&NoBreak;", text)
    return _MARKUP.sub(r"\\\1", text)


_MOST_LEVELS = 16


def diff_markdown(comparison: Comparison, ranking: Ranking) -> str:
    """Return the headline, the runs and a table of the rows.

    Args:
        comparison: What to show.
        ranking: Which rows, in which order.
    """
    shown = columns(comparison, ranking)
    lines = [f"**{escaped(headline(comparison))}**", ""]
    lines += [f"- {word}: {escaped(text)}" for word, text in side_lines(comparison)]
    lines += [f"- {word}: {escaped(text)}" for word, text in cost_lines(comparison)]
    scaled = calls_line(comparison)
    lines += [f"- {escaped(scaled)}"] if scaled is not None else []
    warning = cost_warning(comparison)
    if warning is not None:
        lines.append(f"- {escaped(warning)}")
    lines += [f"- {escaped(loss)}" for loss in loss_lines(comparison)]
    titles = [escaped(column.heading) for column in shown]
    lines += ["", f"| {' | '.join([*titles, 'name', 'notes'])} |"]
    lines.append(f"|{' --: |' * len(titles)} :-- | :-- |")
    labels = names(comparison, ranking)
    for place, (row, depth, label) in enumerate(
        zip(ranking.rows, ranking.depths, labels, strict=True)
    ):
        indent = "&nbsp;&nbsp;" * min(depth, _MOST_LEVELS)
        cells = [column.texts[place] for column in shown]
        cells += [indent + escaped(" › ".join(label)), escaped(", ".join(notes(comparison, row)))]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    lines += [f"- {escaped(title)}: {escaped(text)}" for title, text in meanings(comparison)]
    lines += [f"- {escaped(line)}" for line in footer(comparison, ranking)]
    return "\n".join(lines) + "\n"


_VERSION = (1, 0)


def diff_document(comparison: Comparison, ranking: Ranking) -> dict[str, Any]:
    """Return what ``proton diff --json`` prints.

    ``rows`` follow their parent, the largest change of siblings first; ``parent`` is an index in
    ``rows``, None for the total. ``inclusive`` values include all rows below, ``own`` ones add up
    to the total. Values are in ``unit``, None if a side has none. If ``at_base_calls`` is true,
    ``benchmarks_scaled`` lists the benchmarks whose values are scaled to ``calls`` calls, and the
    calls of each run of ``base`` and ``new``.

    Args:
        comparison: What to print.
        ranking: Which rows, in which order.
    """
    explanation = explain(comparison)
    scale = comparison.measure.scale
    return {
        "schema": "proton_bench.diff",
        "version": _VERSION,
        "headline": headline(comparison),
        "metric": comparison.measure.name,
        "source": comparison.measure.source or None,
        "unit": _unit(comparison),
        "adds_up": comparison.measure.is_additive,
        "by": comparison.by.value,
        "confidence": CONFIDENCE if comparison.interval is not None else None,
        "base": _side(comparison.base, comparison.base_runs[:, 0].tolist(), scale),
        "new": _side(comparison.new, comparison.new_runs[:, 0].tolist(), scale),
        "cost_warning": cost_warning(comparison),
        "at_base_calls": bool(comparison.scaled),
        "benchmarks_scaled": [asdict(each) for each in comparison.scaled],
        "causes": [_cause(comparison, each) for each in explanation.causes] if explanation else [],
        "rows": list(_rows(comparison, ranking)),
        "rows_below_threshold": ranking.small,
        "change_below_threshold": _plain(ranking.small_change, scale),
        "deeper_rows": ranking.deep,
        "change_deeper": _plain(ranking.deep_change, scale),
        "include": ranking.names.include,
        "exclude": ranking.names.exclude,
        "rows_filtered": ranking.named,
        "change_filtered": _plain(ranking.named_change, scale),
    }


def _unit(comparison: Comparison) -> str | None:
    measure = comparison.measure
    return measure.unit or None if measure.scale == 1.0 else measure.name.rpartition("/")[2]


def _side(runs: tuple[Run, ...], totals: list[float], scale: float) -> list[dict[str, Any]]:
    return [
        {
            "source": run.source,
            "total": _plain(total, scale),
            "partial": run.profile.partial,
            "steps": _steps(run),
            "dropped": dict(run.profile.dropped),
            "estimated_cost_ns": _cost(run),
            "devices": [f"{device.kind}:{device.index}" for device in run.profile.devices],
        }
        for run, total in zip(runs, totals, strict=True)
    ]


def _steps(run: Run) -> dict[str, Any] | None:
    steps = Steps.of(run.profile.provenance)
    return None if steps is None else asdict(steps)


def _cost(run: Run) -> float | None:
    cost = own_cost(run.profile)
    return None if cost is None else cost.cost_ns


def _plain(value: float | None, scale: float = 1.0) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return value if scale == 1.0 else value / scale


def _rows(comparison: Comparison, ranking: Ranking) -> Iterator[dict[str, Any]]:
    lines = zip(ranking.above, ranking.rows, strict=True)
    rows = [shown for above, row in lines for shown in (*above, row)]
    positions = {row: place for place, row in enumerate(rows)}
    tree, scale = comparison.tree, comparison.measure.scale
    inclusive = _values(comparison, comparison.inclusive, rows)
    own = [] if comparison.own is None else _values(comparison, comparison.own, rows)
    for place, row in enumerate(rows):
        document: dict[str, Any] = {
            "parent": positions.get(int(tree.parents[row])),
            "name": tree.name(row),
            "kind": FrameKind(tree.kinds[row]).name.lower(),
            "device": tree.device_names[int(tree.devices[row])] or None,
            "fate": RowState(tree.states[row]).name.lower(),
            "former_name": tree.former_name(row),
            "moved_from": list(tree.origins[row]) if row in tree.origins else None,
            "code_changed": tree.code_changed(row),
            "notes": list(notes(comparison, row)),
            "inclusive": inclusive[place],
        }
        if own:
            document["own"] = own[place]
        if comparison.interval is not None:
            ends = (comparison.interval.low, comparison.interval.high)
            document["interval"] = [_plain(float(end[row]), scale) for end in ends]
        yield document


def _values(
    comparison: Comparison, values: Changes, rows: Sequence[int]
) -> list[dict[str, float | None]]:
    scale = comparison.measure.scale
    columns = {
        name: cells if name in COUNTS else [_plain(cell, scale) for cell in cells]
        for name, cells in amounts(comparison, values, rows).items()
    }
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _cause(comparison: Comparison, cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind.value,
        "name": comparison.tree.name(cause.row),
        "path": list(comparison.tree.path(cause.row)),
        "places": cause.places,
        "change": _plain(cause.change, comparison.measure.scale),
        "share": cause.share,
        "per_launch": cause.per_launch,
        "launches": cause.new_count - cause.base_count,
        "fate": cause.state.name.lower(),
    }
