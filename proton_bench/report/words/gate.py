"""A gate in sentences and columns, for every way to show it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from proton_bench.gate.policy import OTHER_UNITS
from proton_bench.gate.statistics.decision import FALSE_ALARMS
from proton_bench.gate.verdict.result import (
    GateRow,
    Kind,
    Outcome,
    Reason,
    StructuralChange,
    SuiteVerdict,
    Verdict,
    worst_findable,
)
from proton_bench.report.words.columns import Column
from proton_bench.report.words.diff import certain_headline
from proton_bench.report.words.edge import sources_text
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text, percent_text, share_text

MEANINGS = {
    Reason.TOO_NOISY: "too noisy for so few runs",
    Reason.TOO_FEW_RUNS: "fewer runs than times need",
    Reason.TIMER_TICK: "shorter than the timer can resolve, give each launch more work",
    Reason.NO_VALUES: "not recorded or not positive, choose another metric",
    Reason.MACHINE: "the machine may have changed, record both sides in turn",
    Reason.ORDER: "the same side always ran first, let the sides take turns",
    Reason.CLOCK: "no change in cycles, so the clock changed: lock it or run again",
    Reason.SAME_CODE: "the same compiled code, so memory or its surroundings changed",
    Reason.CODE_CHANGED: "different compiled code",
    Reason.QUARANTINE: "quarantined by the policy",
    Reason.NO_BASE: "there is nothing to compare with",
    Reason.NOTHING_GATED: "a threshold matches no path",
    Reason.PATHS_DIFFER: "paths of one side alone",
    Reason.NOT_COMPARABLE: "the sides cannot be compared",
    Reason.NOTICE: "noticed",
}
_MORE_RUNS = frozenset({Reason.TOO_NOISY, Reason.TOO_FEW_RUNS})
_MAX_CAUSE = 160


def reasons_text(row: GateRow, *, paired: bool) -> str:
    """Return what else changed, the reasons of a row's verdict and what to do, "" for none."""
    said = [visible(each, _MAX_CAUSE) for each in row.causes]
    said += [
        noise_text(row) if each is Reason.TOO_NOISY else MEANINGS[each] for each in row.reasons
    ]
    if row.verdict is Verdict.SAME and row.p_worse <= FALSE_ALARMS:
        said.append(f"worse, but by less than the threshold of {share_text(row.limit)}")
    if row.verdict is Verdict.INCONCLUSIVE and not _MORE_RUNS.isdisjoint(row.reasons):
        if row.low > row.limit:  # but not so surely as so many checks ask for
            said.append("probably worse, but not as surely as a verdict asks")
        said.append(needed_text(row, paired=paired))
    return "; ".join(said)


def noise_text(row: GateRow) -> str:
    """Return how much a path varies, or that states of paths leave its change uncertain."""
    if math.isinf(row.findable):
        return "so few runs can all be slow by chance"
    return f"a run varies by {share_text(row.noise)}"


def needed_text(row: GateRow, *, paired: bool) -> str:
    """Return how many runs would decide a row."""
    if row.pairs_needed < 0:
        return "needs too many runs to be practical"
    if not row.pairs_needed:
        return "more runs do not help"
    return f"needs {runs_text(row.pairs_needed, paired=paired)}"


def runs_text(count: int, *, paired: bool) -> str:
    """Return the number of runs needed: ``14 pairs in all``, ``14 runs on each side``."""
    if paired:
        return f"{count_text(count, 'pair')} in all"
    return f"{count_text(count, 'run')} on each side"


_MAX_NAME = 120
_MAX_PATH = 400
_BELOW, _CUT = " > ", "... > "
_MAX_NOTE = 600
_MAX_UNIT = 20
_RUN = "whole run"
_DECIDING = frozenset({Reason.NOT_COMPARABLE, Reason.NO_BASE})
# New, more and slower paths that are named beside one above them that got slower.
_MAX_BELOW = 2
MEANINGS_OF_COLUMNS = {
    "95 % interval": "contains the true change in 95 of 100 runs of this gate",
    "share": "of the time of a base run, or of a new run if that is more",
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
    return f"{result.verdict}: {said}{_new_work(outcome)}"


def _new_work(outcome: Outcome) -> str:
    """Return the largest new path, or more calls of one, that alone is above the threshold."""
    run = next((row for row in outcome.result.rows if not row.path), None)
    grown = [
        each
        for each in outcome.structure
        if run is not None and each.change > run.limit * run.base and not each.fails
    ]
    if not grown:
        return ""
    return f"; {structure_text(max(grown, key=lambda each: each.change), outcome)}"


def _failure(outcome: Outcome) -> str:
    parts = []
    regressions = outcome.result.regressions
    if regressions:
        parts.append(row_text(regressions[0], outcome))
        parts.append(f"{_of_checks(outcome, len(regressions))} regressed")
    forbidden = [each for each in outcome.structure if each.fails]
    if forbidden:
        what = count_text(len(forbidden), "structural change is", "structural changes are")
        parts.append(f"{what} not allowed, first {structure_text(forbidden[0], outcome)}")
    return "; ".join(parts)


def _success(outcome: Outcome) -> str:
    rows = outcome.result.rows
    if not rows:
        return "launches are as allowed; times were not judged, which takes more runs"
    improved = [row for row in rows if row.verdict is Verdict.IMPROVED]
    judged = _paths([row for row in rows if Reason.QUARANTINE not in row.reasons])
    said = f"none of {count_text(len(judged), 'path')} got slower than allowed"
    if improved:
        said += f"; {row_text(improved[0], outcome)}, {len(improved)} improved"
    parts = (said, _would_have_found(outcome), _hidden(outcome), _unseen(outcome))
    return "; ".join(filter(None, parts))


def _hidden(outcome: Outcome) -> str:
    """Return the undecided paths of a passed gate and what would decide them, "" without any."""
    rows = [row for row in outcome.result.rows if row.is_undecided]
    if not rows:
        return ""
    worst = max(rows, key=lambda row: row.pairs_needed if row.pairs_needed > 0 else math.inf)
    where = f"{shown_row(worst, outcome)} ({share_text(worst.share)} of the time)"
    others = len(_paths(rows)) - 1
    more = f" and {count_text(others, 'other path')}" if others else ""
    return f"undecided: {where}{more}, {needed_text(worst, paired=outcome.result.paired)}"


def _unseen(outcome: Outcome) -> str:
    """Return what a passed gate did not look at, "" for nothing."""
    statistic = outcome.result.statistic
    return f"slow launches were not looked at, only {statistic}" if statistic else ""


def _would_have_found(outcome: Outcome) -> str:
    """Return the smallest slow-downs that would have made the gate fail, "" if unknown."""
    rows = outcome.result.rows
    said = [
        f"run {percent_text(row.findable)}"
        for row in rows
        if not row.path and row.metric == "total" and math.isfinite(row.findable)
    ]
    worst = worst_findable(rows)
    if worst is not None:
        said.append(f"worst path {percent_text(worst.findable)} {shown_row(worst, outcome)}")
    return f"would have found: {', '.join(said)}" if said else ""


def _doubt(outcome: Outcome) -> str:
    result = outcome.result
    undecided = [row for row in result.rows if row.is_undecided]
    if not undecided or any(note.voids for note in result.notes):
        return _obstacle(outcome)
    doubted = [row for row in undecided if row.downgraded]
    if doubted:
        return f"{row_text(doubted[0], outcome)}, but: {why(doubted[0], outcome)}"
    if all(Reason.TOO_FEW_RUNS in row.reasons for row in undecided):
        fewest = min(len(result.base_runs), len(result.new_runs))
        needed = runs_text(max(row.pairs_needed for row in undecided), paired=result.paired)
        return f"{count_text(fewest, 'run')} on a side is too few for times: record {needed}"
    noisiest = max(undecided, key=lambda row: row.noise if math.isfinite(row.noise) else -1.0)
    said = [f"{_of_checks(outcome, len(undecided))} may be slower than allowed"]
    if Reason.TOO_NOISY in noisiest.reasons:
        said.append(f"{shown_row(noisiest, outcome)}: {noise_text(noisiest)}")
    needs = [row.pairs_needed for row in undecided]
    if max(needs) > 0:
        said.append(f"{runs_text(max(needs), paired=result.paired)} would decide")
    if min(needs) < 0:
        said.append(f"for {needs.count(-1)} no practical number of runs would")
    return "; ".join(said)


def _obstacle(outcome: Outcome) -> str:
    if outcome.problem:
        return visible(outcome.problem, _MAX_NOTE)
    found = outcome.result.notes
    decided = [note for note in found if note.voids or note.reason in _DECIDING] or found
    return visible(decided[0].text, _MAX_NOTE) if decided else "nothing was compared"


def _of_checks(outcome: Outcome, count: int) -> str:
    return f"{count} of {count_text(len(outcome.result.rows), 'check')}"


def _paths(rows: Sequence[GateRow]) -> set[tuple[tuple[str, ...], int]]:
    return {(row.path, row.occurrence) for row in rows}


def row_text(row: GateRow, outcome: Outcome) -> str:
    """Return a row as a sentence: ``softmax under fwd: median 5.1 % slower (4.2 % to 6 %)``."""
    word = _direction(row)
    bounds = (
        f" ({percent_text(row.low)} to {percent_text(row.high)})" if math.isfinite(row.low) else ""
    )
    unit = _unit(_dimension(row, outcome), [row.base, row.new])
    base, new = (unit.text(each) if math.isfinite(each) else "-" for each in (row.base, row.new))
    change = (
        f"{percent_text(abs(row.change)).lstrip('+')} {word}"
        if math.isfinite(row.change)
        else "unknown"
    )
    sides = f", {base} -> {new}" if word else ""
    return f"{shown_row(row, outcome)}: {row.metric} {change}{bounds}{sides}"


def why(row: GateRow, outcome: Outcome) -> str:
    """Return what made a row slower, the reasons of its verdict and what to do, "" for none."""
    said = reasons_text(row, paired=outcome.result.paired)
    return "; ".join(filter(None, (_below(row, outcome), said)))


def _below(row: GateRow, outcome: Outcome) -> str:
    """Return what grew at or below a path that got slower, "" if nothing is known."""
    if row.verdict is not Verdict.REGRESSED:
        return ""
    depth = len(row.path)
    said = []
    for each in outcome.grown_below(row)[:_MAX_BELOW]:
        unit = _unit(outcome.result.unit, [each.change])
        what = "new" if each.kind is Kind.NEW else "more calls of"
        what = f"{what} {shown_path(each.path[depth:], outcome)}"
        if each.path == row.path:
            what = "more calls"
        said.append(f"{what} ({unit.text(each.change, signed=True)})")
    slower = outcome.slower_below(row)[:_MAX_BELOW]
    said += [f"slower {shown_path(path[depth:], outcome)}" for path in slower]
    return ", ".join(said)


def _direction(row: GateRow) -> str:
    if not math.isfinite(row.change):
        return ""
    if row.metric in OTHER_UNITS:
        return "more" if row.change > 0 else "less"
    return "slower" if row.change > 0 else "faster"


def shown_path(path: Sequence[str], outcome: Outcome) -> str:
    """Return a path on one line, with readable names."""
    return path_text([outcome.result.texts.get(name, name) for name in path])


def shown_row(row: GateRow, outcome: Outcome) -> str:
    """Return the path of a row on one line, with its device if others have the same path."""
    device = f" on {visible(row.device, _MAX_NAME)}" if row.device else ""
    return shown_path(row.path, outcome) + device


def path_text(path: Sequence[str], limit: int = _MAX_PATH) -> str:
    """Return a path of recorded names on one line, only its end if it is too long."""
    if not path:
        return _RUN
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
        return whole or _RUN
    while len(names) > 1 and len(_CUT) + size > limit:
        size -= len(_BELOW) + len(names.pop())
    is_whole = len(names) == len(path)
    return ("" if is_whole else _CUT) + _BELOW.join(reversed(names))


def _dimension(row: GateRow, outcome: Outcome) -> str:
    """Return the unit that the row's values are recorded in."""
    return OTHER_UNITS.get(row.metric, outcome.result.unit)


def _unit(dimension: str, values: Sequence[float]) -> Unit:
    if dimension == "ns":
        return Unit.of_times(values)
    if dimension == "B":
        return Unit.of_sizes(values)
    return Unit.of_numbers(values, name=visible(dimension, _MAX_UNIT))


# -- the table -----------------------------------------------------------------------------------
def columns(rows: Sequence[GateRow], outcome: Outcome) -> list[Column]:
    """Return the columns before the path."""
    intervals = tuple(
        f"{percent_text(row.low)} .. {percent_text(row.high)}" if math.isfinite(row.low) else "-"
        for row in rows
    )
    return [
        Column("verdict", tuple(str(row.verdict) for row in rows), is_text=True),
        Column("change", tuple(percent_text(row.change) for row in rows)),
        Column("95 % interval", intervals, 2),
        Column("share", tuple(share_text(row.share) for row in rows), 4),
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
    """Return a structural change on one line: ``LAUNCHES fwd > k, 4 -> 6 calls, +8 us``."""
    parts = [f"{change.kind} {shown_path(change.path, outcome)}"]
    if change.former_path:
        parts.append(f"was {shown_path(change.former_path, outcome)}")
    before, after = _launches(change.base_calls), _launches(change.new_calls)
    if before != after:
        parts.append(f"{before} -> {after} calls")
    if change.change:
        unit = _unit(outcome.result.unit, [change.change])
        parts.append(unit.text(change.change, signed=True))
    side = "new" if change.kind is Kind.NEW else "base"
    parts.append(f"{share_text(change.share)} of a {side} run")
    parts += [MEANINGS[each] for each in change.reasons]
    return ", ".join(parts)


def _launches(calls: tuple[float, float]) -> str:
    low, high = (f"{each:.0f}" if each == int(each) else f"{each:.1f}" for each in calls)
    return low if low == high else f"{low} to {high}"


def notes(outcome: Outcome) -> list[str]:
    """Return the notes on the gate, each with its reason in front."""
    found = outcome.result.notes
    if outcome.problem:  # which says better what is missing
        found = tuple(note for note in found if note.reason is not Reason.NO_BASE)
    return [f"{note.reason}: {visible(note.text, _MAX_NOTE)}" for note in found]


def side_lines(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield the label and the runs of each side."""
    result = outcome.result
    for word, sources in (("base", result.base_runs), ("new", result.new_runs)):
        if sources:
            yield word, f"{count_text(len(sources), 'run')}: {sources_text(sources)}"
    if result.base_runs and result.new_runs:
        yield "", "recorded in turn" if result.paired else "recorded apart"


def explained(outcome: Outcome) -> Outcome:
    """Return the outcome of a gate with a sentence that explains the change of the whole run."""
    comparison = outcome.result.comparison
    if comparison is None or outcome.result.verdict is SuiteVerdict.NO_BASELINE:
        return outcome
    return replace(outcome, explanation=certain_headline(comparison))
