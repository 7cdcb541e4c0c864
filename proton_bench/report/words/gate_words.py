"""A gate in sentences and columns, for every way to show it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.judge.result import GateRow
from proton_bench.gate.judge.structure import StructuralChange
from proton_bench.gate.judge.suite import undecided_share
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict, Verdict
from proton_bench.report.words.columns import Column
from proton_bench.report.words.gate_reasons import MEANINGS, part_text, runs_text, why
from proton_bench.report.words.quantity import percent_text
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text

__all__ = [
    "MEANINGS_OF_COLUMNS",
    "columns",
    "headline",
    "notes",
    "path_text",
    "power_line",
    "row_text",
    "shown_path",
    "side_lines",
    "structure_text",
]

_MAX_NAME = 120
_MAX_PATH = 400
_BELOW, _CUT = " > ", "... > "
_MAX_NOTE = 600
_MAX_UNIT = 20
_MAX_SOURCES = 3
# Notes that decide nothing by themselves.
_MINOR = frozenset(
    {
        Reason.AUTOTUNE_FLIP,
        Reason.GLOBAL_SHIFT,
        Reason.NOISE_OF_ANOTHER_MACHINE,
        Reason.ORDER_CONFOUNDED,
        Reason.OTHER_TOOLS,
        Reason.OTHER_UNIT,
        Reason.PAIRS_LEFT_OUT,
    }
)
_RATES = {"flops": "flop/s", "gbps": "GB/s"}
# Metrics whose change applies to all of a path's time.
_WHOLE_TIMES = frozenset({"mean", "median", "total"})
_OTHER = {"cycles": "cycles", "mem": ""}
MEANINGS_OF_COLUMNS = {
    "95 % interval": "contains the true change in 95 of 100 runs of this gate",
    "would see": "smallest threshold that these runs can hold: they find it nine times in ten",
    "share": "share of a run's time",
}


def headline(outcome: Outcome) -> str:
    """Return one line: the verdict, its worst path, and the number of such paths."""
    result = outcome.result
    texts = {
        SuiteVerdict.FAIL: _failure,
        SuiteVerdict.PASS: _success,
        SuiteVerdict.INCONCLUSIVE: _doubt,
    }
    said = texts.get(result.verdict, _obstacle)(outcome)
    return f"{result.verdict}: {said}"


def _failure(outcome: Outcome) -> str:
    parts = []
    regressions = outcome.result.regressions
    if regressions:
        parts.append(row_text(regressions[0], outcome))
        parts.append(f"{_of_checks(outcome, len(regressions))} regressed{_cost(regressions)}")
    forbidden = [each for each in outcome.structure if each.fails]
    if forbidden:
        what = count_text(len(forbidden), "structural change is", "structural changes are")
        parts.append(f"{what} not allowed, first {structure_text(forbidden[0], outcome)}")
    return "; ".join(parts)


def _cost(regressions: Sequence[GateRow]) -> str:
    """Return the share of a run that regressions add, each path once; "" if it is not time."""
    parts = {
        (row.path, row.occurrence): row.share * row.change
        for row in regressions
        if row.metric in _WHOLE_TIMES
    }
    return f", {percent_text(sum(parts.values()))} of a run" if parts else ""


def _success(outcome: Outcome) -> str:
    if not outcome.result.rows:
        return "structure is as allowed; no threshold is about timing"
    improved = [row for row in outcome.result.rows if row.verdict is Verdict.IMPROVED]
    said = f"none of {count_text(len(_paths(outcome.result.rows)), 'path')} got worse"
    if improved:
        said += f"; {row_text(improved[0], outcome)}, {len(improved)} improved"
    return said


def _doubt(outcome: Outcome) -> str:
    undecided = [row for row in outcome.result.rows if row.is_undecided]
    if not undecided:
        return _obstacle(outcome)
    doubted = [row for row in undecided if row.downgraded]
    if doubted:
        reason = why(doubted[0], paired=outcome.result.paired)
        return f"{row_text(doubted[0], outcome)}, but: {reason}"
    share = part_text(undecided_share(outcome.result.rows))
    said = f"{_of_checks(outcome, len(undecided))}, {share} of the gated time, may be worse"
    needed = [row.pairs_needed for row in undecided]
    if max(needed) > 0:
        said += f"; {runs_text(max(needed), paired=outcome.result.paired)} would decide"
    if min(needed) < 0:
        said += f"; for {needed.count(-1)} no practical number of runs would"
    return said


def _obstacle(outcome: Outcome) -> str:
    if outcome.problem:
        return visible(outcome.problem, _MAX_NOTE)
    found = outcome.result.notes
    decided = [note for note in found if note.reason not in _MINOR] or found
    return visible(decided[0].text, _MAX_NOTE) if decided else "nothing was compared"


def _of_checks(outcome: Outcome, count: int) -> str:
    return f"{count} of {count_text(len(outcome.result.rows), 'check')}"


def _paths(rows: Sequence[GateRow]) -> set[tuple[tuple[str, ...], int]]:
    return {(row.path, row.occurrence) for row in rows}


def row_text(row: GateRow, outcome: Outcome) -> str:
    """Return a row as a sentence: ``softmax under fwd: median 5.1 % slower (4.2 % to 6 %)``."""
    word = _direction(row)
    bounds = f" ({percent_text(row.low)} to {percent_text(row.high)})" if _known(row.low) else ""
    unit = _unit(_dimension(row, outcome), [row.base, row.new])
    base, new = (unit.text(each) if _known(each) else "-" for each in (row.base, row.new))
    change = f"{part_text(row.change)} {word}" if _known(row.change) else "unknown"
    sides = f", {base} -> {new}" if word else ""
    return f"{shown_path(row.path, outcome)}: {row.metric} {change}{bounds}{sides}"


def _direction(row: GateRow) -> str:
    if not _known(row.change):
        return ""
    if row.metric in {*_RATES, *_OTHER, "stddev", "iqr", "mad"}:
        return "more" if row.change > 0 else "less"
    return "slower" if row.change > 0 else "faster"


def shown_path(path: Sequence[str], outcome: Outcome) -> str:
    """Return a path on one line, with readable names."""
    return path_text([outcome.result.texts.get(name, name) for name in path])


def path_text(path: Sequence[str], limit: int = _MAX_PATH) -> str:
    """Return a path of recorded names on one line, only its end if it is too long."""
    if not path:
        return "ROOT"
    # From the end, as many names as fit: a path may have thousands.
    names = [visible(path[-1], _MAX_NAME)]
    size = len(names[0])
    for name in reversed(path[:-1][-limit:]):
        shown = visible(name, _MAX_NAME)
        size += len(_BELOW) + len(shown)
        names.append(shown)
        if size > limit:
            break
    whole = _BELOW.join(reversed(names))
    if len(whole) <= limit and len(names) == len(path):
        return whole or "ROOT"
    while len(names) > 1 and len(_CUT) + size > limit:
        size -= len(_BELOW) + len(names.pop())
    is_whole = len(names) == len(path)
    return ("" if is_whole else _CUT) + _BELOW.join(reversed(names))


def _known(value: float) -> bool:
    return math.isfinite(value)


def _dimension(row: GateRow, outcome: Outcome) -> str:
    """Return the unit that the row's values are recorded in."""
    of_metric = {**_RATES, **_OTHER}
    return of_metric.get(row.metric, outcome.result.unit)


def _unit(dimension: str, values: Sequence[float]) -> Unit:
    if dimension == "ns":
        return Unit.of_times(values)
    return Unit.of_numbers(values, name=visible(dimension, _MAX_UNIT))


# -- the table -----------------------------------------------------------------------------------
def columns(rows: Sequence[GateRow], outcome: Outcome) -> list[Column]:
    """Return the columns before the path."""
    intervals = tuple(
        f"{percent_text(row.low)} .. {percent_text(row.high)}" if _known(row.low) else "-"
        for row in rows
    )
    return [
        Column("verdict", tuple(str(row.verdict) for row in rows)),
        Column("change", tuple(percent_text(row.change) for row in rows)),
        Column("95 % interval", intervals, 2),
        Column("would see", tuple(part_text(row.detectable) for row in rows), 1),
        Column("share", tuple(part_text(row.share) for row in rows), 4),
        *_sides(rows, outcome),
        Column("threshold", tuple(visible(row.threshold, 60) for row in rows), 3),
    ]


def _sides(rows: Sequence[GateRow], outcome: Outcome) -> Iterator[Column]:
    """Yield the values of both sides: one pair of columns for times and one for each other unit."""
    dimensions = [_dimension(row, outcome) for row in rows]
    for dimension in dict.fromkeys(dimensions):
        own = [row for row, each in zip(rows, dimensions, strict=True) if each == dimension]
        unit = _unit(dimension, [each for row in own for each in (row.base, row.new)])
        for title in ("base", "new"):
            values = [
                getattr(row, title) if each == dimension else None
                for row, each in zip(rows, dimensions, strict=True)
            ]
            yield Column(title, tuple(unit.texts(values)), 5, unit.name)


# -- around it -----------------------------------------------------------------------------------
def structure_text(change: StructuralChange, outcome: Outcome) -> str:
    """Return a structural change on one line: ``CALLS+ fwd > softmax, 4 -> 6 launches, +8 us``."""
    parts = [f"{change.verdict} {shown_path(change.path, outcome)}"]
    if change.former_path:
        parts.append(f"was {shown_path(change.former_path, outcome)}")
    before, after = _launches(change.base_calls), _launches(change.new_calls)
    if before != after:
        parts.append(f"{before} -> {after} launches")
    if change.change:
        unit = _unit(outcome.result.unit, [change.change])
        parts.append(unit.text(change.change, signed=True))
    parts.append(f"{part_text(change.share)} of a run")
    parts += [MEANINGS.get(each, each.value) for each in change.reasons]
    return ", ".join(parts)


def _launches(calls: tuple[float, float]) -> str:
    low, high = (f"{each:.0f}" if each == int(each) else f"{each:.1f}" for each in calls)
    return low if low == high else f"{low} to {high}"


def notes(outcome: Outcome) -> list[str]:
    """Return the notes on the gate, each with its reason in front."""
    found = outcome.result.notes
    if outcome.problem:  # which says better what is missing
        found = tuple(note for note in found if note.reason is not Reason.NO_BASE_RUNS)
    return [f"{note.reason}: {visible(note.text, _MAX_NOTE)}" for note in found]


def side_lines(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield the label and the runs of each side."""
    result = outcome.result
    for word, sources in (("base", result.base_runs), ("new", result.new_runs)):
        if sources:
            listed = ", ".join(visible(each, 200) for each in sources[:_MAX_SOURCES])
            more = f" and {len(sources) - _MAX_SOURCES} more" if len(sources) > _MAX_SOURCES else ""
            yield word, f"{count_text(len(sources), 'run')}: {listed}{more}"
    if result.base_runs and result.new_runs:
        yield "", "recorded in turn" if result.paired else "recorded apart"
    if result.noise is not None:
        where = f": {visible(result.noise.source, 200)}" if result.noise.source else ""
        runs = count_text(result.noise.runs, "run")
        yield "with", f"stored noise of this machine, measured with {runs}{where}"


def power_line(outcome: Outcome) -> str:
    """Return the detectable changes of this gate, "" if they are unknown."""
    seen = sorted(row.detectable for row in outcome.result.rows if _known(row.detectable))
    if not seen:
        return ""
    low, high = part_text(seen[0]), part_text(seen[-1])
    spread = low if low == high else f"{low} to {high}"
    level = part_text(outcome.result.level)
    return f"smallest change found nine times in ten: {spread}; false alarms at most {level}"
