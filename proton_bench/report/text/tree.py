"""A call-path tree: one line per row, metrics in columns before the name; or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.accounting.device_use import device_verdicts
from proton_bench.analysis.accounting.host_time import recorded_of, run_time_of
from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.choices import FrameFormat
from proton_bench.analysis.metrics.derive import AvailableMetrics
from proton_bench.analysis.metrics.values import INTERVAL_NOTE, MetricValues
from proton_bench.analysis.view.select import MetricTree
from proton_bench.model.frame import KIND_NAMES
from proton_bench.model.metrics.metric import Aggregation, MetricSpec
from proton_bench.model.profile import Profile
from proton_bench.model.steps import Steps
from proton_bench.report.words.columns import BAR_WIDTH, bar_texts, columns_of, shortened, width_of
from proton_bench.report.words.edge import (
    BANDS,
    DIM,
    HEADING,
    bands_of,
    chain_mark,
    edge_of,
    fitting_name,
    fitting_path,
    format_name,
    prose,
)
from proton_bench.support.text import visible
from proton_bench.support.units import count_text


def legend(console: Console, tree: MetricTree, *, edge: int | None) -> Iterator[Segment]:
    """Yield an empty line and the meanings of the columns in one line.

    Args:
        console: Where it is shown.
        tree: The rows above it.
        edge: Width of the terminal, None for none.
    """
    meanings = list(_meanings(tree))
    if meanings or tree.cut or tree.unvalued:
        yield Segment("\n")
    if meanings:
        yield from prose(console, "; ".join(meanings), DIM, edge=edge)
    if tree.cut:
        deeper = count_text(tree.cut, "deeper row is", "deeper rows are")
        yield from prose(console, f"{deeper} not shown; -d shows more", DIM, edge=edge)
    if tree.unvalued:
        without = count_text(tree.unvalued, "row is", "rows are")
        text = f"{without} not shown, with other metrics only: -l lists what -m can show"
        yield from prose(console, text, DIM, edge=edge)


def largest_of(metric: MetricValues) -> float:
    """Return the largest absolute finite value, 0 if there is none."""
    values = np.abs(metric.values[metric.valid].astype(np.float64))
    return float(values[np.isfinite(values)].max(initial=0.0))


def _meanings(tree: MetricTree) -> Iterator[str]:
    if any(metric.aggregation is Aggregation.INCLUSIVE for metric in tree.metrics):
        yield "(inc): with all rows below"
    for metric in tree.metrics:
        # A share is clear from its heading.
        if metric.meaning and not metric.name.endswith("/%"):
            yield f"{visible(metric.name)}: {metric.meaning}"
    if any(metric.halves is not None for metric in tree.metrics):
        yield INTERVAL_NOTE


# Deeper rows show their depth as a number instead of an indent, so that lines stay readable and the
# text of n rows stays linear in n.
MAX_INDENT = 64

# `h.3.attn (Attention)`, and several of them: `h.* (Block) x12`.
_ENDS_OF_LAYERS = (")", *"0123456789")
_GUIDE_WIDTH = 3
_LEAST_NAME = 12

# Narrower terminals have no room for a bar beside a readable name.
_ROOM_FOR_BARS = 44


@dataclass(frozen=True, slots=True)
class _Guides:
    """What connects rows: below an ancestor, at a row, at the last child, and within a line."""

    through: str
    blank: str
    fork: str
    last: str
    chain: str

    @classmethod
    def of(cls, options: ConsoleOptions) -> _Guides:
        chain = chain_mark(options)
        if options.ascii_only:
            return cls("|  ", "   ", "|- ", "`- ", chain)
        return cls("│  ", "   ", "├─ ", "└─ ", chain)


@dataclass(frozen=True, slots=True, eq=False)
class TreeReport:
    """A rich renderable of a tree, with a legend.

    Attributes:
        tree: What to show.
        frames: Form of Python frames' names.
        left_out: What is said of rows that are not shown, "" if all are.
        bars: Also draw the first metric of each row, if the terminal is wide enough.
        flat: The rows below the root are a table, and the root is their total.
        root_note: Text after the root's name.
    """

    tree: MetricTree
    frames: FrameFormat = FrameFormat.FULL
    bars: bool = False
    flat: bool = False
    root_note: str = ""
    left_out: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines; only on a terminal columns, bars and names are cut."""
        guides = _Guides.of(options)
        edge = edge_of(console, options)
        every = columns_of(self.tree.metrics)
        columns = shortened(every, edge)
        cells, width = [column.aligned() for column in columns], width_of(columns)
        for column in cells:
            yield Segment(f"{column[0]}  ", HEADING)
        bars = bar_texts(self.tree, ascii_only=options.ascii_only) if self.bars else []
        if bars and (edge is None or edge - width >= _ROOM_FOR_BARS):
            cells, width = [*cells, ["", *bars]], width + BAR_WIDTH + 2
            yield Segment(" " * (BAR_WIDTH + 2))
        yield Segment("name\n", HEADING)
        note = f"  {self.root_note}" if self.root_note else ""
        for band, values, prefix, names in self._lines(
            [column[1:] for column in cells], guides, room=_room(self.tree, edge, width)
        ):
            if edge is None:
                shown = guides.chain.join(names)
            else:
                shown = fitting_path(names, edge - width - len(prefix), guides.chain)
            if note and (edge is None or width + len(shown) + len(note) <= edge):
                shown += note
            note = ""
            # As few segments as possible, because each costs more than the rest of its line.
            if values:
                yield Segment(values[0], BANDS[band][1])
                yield Segment("  ".join(("", *values[1:], prefix)), DIM)
            else:
                yield Segment(prefix, DIM)
            yield Segment(f"{shown}\n")
        yield from legend(console, self.tree, edge=edge)
        for line in filter(None, (self.left_out, _hidden_text(len(every) - len(columns)))):
            yield from prose(console, line, DIM, edge=edge)

    def _lines(
        self, cells: Sequence[Sequence[str]], guides: _Guides, *, room: int
    ) -> Iterator[tuple[int, tuple[str, ...], str, tuple[str, ...]]]:
        """Yield the band, values, prefix and names of each row."""
        count = len(self.tree)
        return zip(
            _row_bands(self.tree),
            zip(*cells, strict=True) if cells else [()] * count,
            [""] * count if self.flat else _prefixes(self.tree, guides, room),
            _labels(self.tree, self.frames, is_relative=bool(self.tree.chains)),
            strict=True,
        )


@dataclass(frozen=True, slots=True, eq=False)
class SortedReport:
    """A rich renderable of all rows below the root, the largest first metric first."""

    tree: MetricTree
    frames: FrameFormat = FrameFormat.FULL

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield one line per row that has a value; names are cut only on a terminal."""
        if not self.tree.metrics:
            return
        edge = edge_of(console, options)
        first = self.tree.metrics[0]
        columns = shortened(columns_of(self.tree.metrics), edge)
        cells, width = [column.aligned()[1:] for column in columns], width_of(columns)
        heading = f"Sorted kernels by metric {visible(first.title)}"
        yield from prose(console, heading, HEADING, edge=edge)
        labels = [names[-1] for names in _labels(self.tree, self.frames)]
        for row in sorted_rows(first):
            values = "  ".join(column[row] for column in cells)
            name = labels[row] if edge is None else fitting_name(labels[row], edge - width)
            yield Segment(f"{values}  {name}\n")


def sorted_rows(metric: MetricValues) -> list[int]:
    """Return the rows below the root that have a value, largest first, equal ones in tree order."""
    rows = np.flatnonzero(metric.valid[1:]) + 1
    if not metric.is_number:
        return sorted(rows.tolist(), key=lambda row: str(metric.values[row]))
    ordered: list[int] = rows[np.argsort(-metric.values[rows], kind="stable")].tolist()
    return ordered


def print_report(console: Console, *reports: Any) -> None:
    """Print renderables one after the other, without wrapping or cutting lines."""
    for report in reports:
        console.print(report, crop=False, soft_wrap=True, end="")


# -- columns -------------------------------------------------------------------------------------
def _row_bands(tree: MetricTree) -> list[int]:
    if not tree.metrics or not tree.metrics[0].is_number:
        return [len(BANDS) - 1] * len(tree)
    first = tree.metrics[0]
    return bands_of(np.where(first.valid, first.values, 0), largest_of(first))


# -- names ---------------------------------------------------------------------------------------
def _labels(
    tree: MetricTree, frames: FrameFormat, *, is_relative: bool = False
) -> Iterable[tuple[str, ...]]:
    """Yield the names in the line of each row, the last with the device if there are several.

    Args:
        tree: The rows.
        frames: Form of Python frames' names.
        is_relative: Whether a layer is named relative to the layer above it: ``.attn`` below
            ``transformer.h.3``.
    """
    texts = [visible(format_name(text, frames)) for text in tree.strings]
    several = len(set(tree.devices) - {""}) > 1
    chains = tree.chains or ((),) * len(tree)
    layers: list[str] = []  # the innermost layer of each row
    rows = zip(tree.parents.tolist(), tree.frames.tolist(), tree.devices, chains, strict=True)
    for parent, frame, device, above in rows:
        names = [texts[each] for each in (*above, frame)]
        if is_relative:
            layer = layers[parent] if parent >= 0 else ""
            names, layer = _relative(names, layer)
            layers.append(layer)
        if several and device:
            names[-1] += f" [{visible(device)}]"
        yield tuple(names)


def _relative(names: Sequence[str], layer: str) -> tuple[list[str], str]:
    """Return names without the path of the layer above, and the path of the innermost layer."""
    found = []
    for name in names:
        path, bracket, _ = name.partition(" (")
        if layer and bracket and path.startswith(f"{layer}."):
            found.append(name[len(layer) :])
        else:
            found.append(name)
        if bracket and name.endswith(_ENDS_OF_LAYERS):
            layer = path
    return found, layer


def _room(tree: MetricTree, edge: int | None, width: int) -> int:
    """Return how many levels are indented, so that a terminal has room for names."""
    if edge is None:
        return MAX_INDENT
    deepest = int(tree.depths().max(initial=0))
    for_guides = edge - width - _LEAST_NAME - len(f"[{deepest}] ")
    return min(max(for_guides // _GUIDE_WIDTH, 1), MAX_INDENT)


def _prefixes(tree: MetricTree, guides: _Guides, room: int) -> Iterator[str]:
    """Yield the lines that connect each row with its parent, indented ``room`` levels at most."""
    parents = tree.parents.tolist()
    last_child = [0] * len(parents)
    for row in range(1, len(parents)):
        last_child[parents[row]] = row
    # Prefix of the children of the last row at each depth.
    inner = [""]
    depths = tree.depths().tolist()
    for row, depth in enumerate(depths):
        if depth == 0:
            yield ""
            continue
        is_last = last_child[parents[row]] == row
        if depth > room:
            yield f"{inner[room - 1]}{guides.last if is_last else guides.fork}[{depth}] "
            continue
        yield inner[depth - 1] + (guides.last if is_last else guides.fork)
        del inner[depth:]
        inner.append(inner[depth - 1] + (guides.blank if is_last else guides.through))


def _hidden_text(count: int) -> str:
    """Return how many columns have no room, "" if all have."""
    what = count_text(count, "column does", "columns do")
    return f"{what} not fit; a pipe or file gets all" if count else ""


# -- other forms -----------------------------------------------------------------------------------
_VERSION = (1, 0)


def view_document(
    profile: Profile, tree: MetricTree, *, source: str, frames: FrameFormat, order: list[int] | None
) -> dict[str, Any]:
    """Return what ``proton view --json`` prints.

    ``rows`` are in pre-order; ``parent`` is an index in ``rows``, None for the root; ``values`` are
    in the order of ``metrics``, None if a row has none. ``name`` is the recorded name, ``text``
    what a terminal shows.

    Args:
        profile: The profile of the tree.
        tree: The rows to print.
        source: Name of the file.
        frames: Form of Python frames' names.
        order: Indexes in ``rows``, the largest first metric first, if requested.
    """
    names = [format_name(text, frames) for text in tree.recorded or tree.strings]
    texts = [format_name(text, frames) for text in tree.strings]
    values = zip(*(metric.to_list() for metric in tree.metrics), strict=True)
    cells = list(values) if tree.metrics else [()] * len(tree)
    columns = zip(
        tree.parents.tolist(),
        tree.depths().tolist(),
        tree.frames.tolist(),
        tree.kinds.tolist(),
        tree.devices,
        cells,
        strict=True,
    )
    rows = [
        {
            "parent": parent if parent >= 0 else None,
            "depth": depth,
            "name": names[frame],
            "text": texts[frame],
            "kind": KIND_NAMES[kind],
            "device": device or None,
            "values": row_values,
        }
        for parent, depth, frame, kind, device, row_values in columns
    ]
    document = _document("proton_bench.view", profile, source)
    document["metrics"] = [
        {"name": metric.name, "aggregation": metric.aggregation.value} for metric in tree.metrics
    ]
    document["rows"] = rows
    document["deeper_rows"] = tree.cut
    if order is not None:
        document["sorted"] = order
    return document


def list_document(profile: Profile, available: AvailableMetrics, source: str) -> dict[str, Any]:
    """Return what ``proton view --list --json`` prints."""
    document = _document("proton_bench.metrics", profile, source)
    document["inclusive"] = available.inclusive
    document["exclusive"] = available.exclusive
    document["derived"] = available.derivable
    return document


def _device_use(profile: Profile) -> list[dict[str, Any]]:
    return [
        {
            "device": verdict.device,
            "busy_ns": verdict.use.busy_ns,
            "waiting_ns": verdict.use.waiting_ns,
            "idle_ns": verdict.use.idle_ns,
            "long_idle_ns": verdict.use.long_idle_ns,
            "uncertain_ns": verdict.use.uncertain_ns,
            "launches": verdict.use.launches,
            "launch_latency_median_ns": verdict.latency_ns,
            "launch_latency_sum_ns": verdict.use.latency_sum_ns,
            "reason": verdict.reason or None,
        }
        for verdict in device_verdicts(profile)
    ]


def _document(schema: str, profile: Profile, source: str) -> dict[str, Any]:
    cost, recorded = own_cost(profile), recorded_of(profile)
    steps = Steps.of(profile.provenance)
    return {
        "schema": schema,
        "version": _VERSION,
        "source": source,
        "partial": profile.partial,
        "steps": None if steps is None else asdict(steps),
        "dropped": dict(profile.dropped),
        "devices": [f"{device.kind}:{device.index}" for device in profile.devices],
        "device_use": _device_use(profile),
        "estimated_cost_ns": cost.cost_ns if cost is not None else None,
        "recorded": asdict(recorded) if recorded is not None else None,
        "run_time": asdict(run_time_of(profile)),
    }


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
