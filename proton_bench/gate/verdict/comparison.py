"""The gate: runs of two sides and a policy in, a verdict out. It is a pure function."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from proton_bench.analysis.compare.compare import Comparison, without_rows
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.readable import with_texts
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.run import Run
from proton_bench.analysis.selector import Selectors
from proton_bench.errors import UsageError
from proton_bench.gate.machine import (
    CanaryShift,
    check_replicates,
    examine_runs,
    left_out,
    without,
)
from proton_bench.gate.policy import PEAK, Policy, Threshold
from proton_bench.gate.statistics.arrangement import Arrangement, arrange
from proton_bench.gate.statistics.decision import FALSE_ALARMS
from proton_bench.gate.verdict import notes as note_texts
from proton_bench.gate.verdict.benchmarks import (
    ComparedRuns,
    compared_runs,
    launch_slack,
    measured_runs,
    one_sided,
)
from proton_bench.gate.verdict.checks import ThresholdsByPath, own_paths
from proton_bench.gate.verdict.decided_checks import Context, DecidedChecks, GateChecks, rows_of
from proton_bench.gate.verdict.measured import SUMMED, Measured
from proton_bench.gate.verdict.notes import STATISTICS, advice, notes_on, refused, unmatched
from proton_bench.gate.verdict.result import (
    UNDECIDED_SHARE,
    GateResult,
    GateRow,
    Kind,
    Note,
    Reason,
    StructuralChange,
    SuiteVerdict,
    sum_up,
)
from proton_bench.model.arrays import Floats, Mask
from proton_bench.support.units import count_text

# -- changes of the call tree: exact, and without statistics -------------------------------------
_KINDS = {
    RowState.NEW: Kind.NEW,
    RowState.REMOVED: Kind.REMOVED,
    RowState.MOVED: Kind.MOVED,
    RowState.RENAMED: Kind.MOVED,
}


def find_structural_changes(measured: Measured, policy: Policy) -> tuple[StructuralChange, ...]:
    """Return the structural changes of measured paths, in the order of the tree."""
    rows = np.flatnonzero(_candidates(measured)).tolist()
    measured.check_paths(rows)
    survey = _Survey(measured, policy)
    return tuple(change for row in rows if (change := _change_of(survey, row)) is not None)


class _Survey:
    """Known facts about all rows.

    Attributes:
        measured: The runs.
        policy: The thresholds and limits.
        shares: Share of each row in a run's time.
        slack: Tolerance of launch counts for each run and row.
        allowed: Thresholds about launches.
        quarantined: Which globs of the policy's quarantine match each row.
    """

    def __init__(self, measured: Measured, policy: Policy) -> None:
        tree = measured.comparison.tree
        self.measured, self.policy = measured, policy
        self.shares, self.slack = measured.shares(), launch_slack(measured)
        self.allowed = ThresholdsByPath((e for e in policy.thresholds if e.is_launch_count), tree)
        self.quarantined = Selectors(policy.quarantine).of_tree(tree)


def _candidates(measured: Measured) -> Mask:
    """Mark measured rows that did not match, or whose launches differ in any two runs."""
    base, new = (each.any(axis=0) for each in measured.sides(measured.present))
    counted = measured.calls.min(axis=0) != measured.calls.max(axis=0)
    changed = (base != new) | counted | (measured.comparison.tree.states != RowState.MATCHED)
    found: Mask = (base | new) & changed & ~measured.canary
    return found


def _change_of(survey: _Survey, row: int) -> StructuralChange | None:
    measured, slack = survey.measured, survey.slack[:, row]
    calls = measured.calls[:, row]
    base, new = (_range(each) for each in measured.sides(calls))
    lowest, highest = measured.sides(calls - slack), measured.sides(calls + slack)
    known = [
        (float(low.min()), float(high.max())) for low, high in zip(lowest, highest, strict=True)
    ]
    state = _state(measured, row)
    kind = _KINDS.get(state)
    if kind in {None, Kind.MOVED} and base[1] and new[1] and _is_apart(known[0], known[1]):
        # One line per path: launches matter more than the place.
        kind = Kind.LAUNCHES
    if kind is None:
        return None
    allowed = survey.allowed.of_row(row)
    exceeds = any(_exceeds(each, known[0], known[1]) for each in allowed.values())
    quarantined = bool(survey.quarantined[row])
    return StructuralChange(
        path=measured.comparison.tree.path(row),
        kind=kind,
        former_path=_former_path(measured, row, state),
        base_calls=base,
        new_calls=new,
        change=_change_by_launches(measured, row),
        share=float(survey.shares[row]),
        fails=not quarantined and exceeds,
        reasons=(Reason.QUARANTINE,) if quarantined else (),
    )


def _state(measured: Measured, row: int) -> RowState:
    """Return the row's state; a row without a value on one side is new or removed too."""
    base, new = (bool(each[:, row].any()) for each in measured.sides(measured.present))
    if base and new:
        return RowState(int(measured.comparison.tree.states[row]))
    return RowState.NEW if new else RowState.REMOVED


def _former_path(measured: Measured, row: int, state: RowState) -> tuple[str, ...]:
    tree = measured.comparison.tree
    if state is RowState.RENAMED:
        return (*tree.path(row)[:-1], tree.former_name(row) or "")
    return tuple(tree.origins.get(row, ()))


def _range(calls: Floats) -> tuple[float, float]:
    return float(calls.min()), float(calls.max())


def _is_apart(base: tuple[float, float], new: tuple[float, float]) -> bool:
    """Return whether no run of one side has as many launches as any run of the other."""
    return new[0] > base[1] or new[1] < base[0]


def _exceeds(threshold: Threshold, base: tuple[float, float], new: tuple[float, float]) -> bool:
    more, fewer = new[0] - base[1], base[0] - new[1]
    distance = max(more, fewer, 0.0)
    if distance <= 0.0:
        return False
    before = base[1] if distance == more else base[0]
    ratio, absolute = threshold.ratio, threshold.absolute
    beyond = ratio is None or distance > ratio * before
    return beyond and (absolute is None or distance > absolute)


def _change_by_launches(measured: Measured, row: int) -> float:
    own = measured.comparison.own
    if own is None:
        return 0.0
    if own.split is None:
        return float(own.change[row])
    return float(own.split.launches[row] + own.split.rest[row])


# New paths matter only if there is little else; and so does what is gone from a decided total.
_MOSTLY = 0.5
_NAMED = 3
# No launch takes ten years; the difference of two timestamps of which one is missing does.
_LONGEST_NS = 10 * 365 * 86_400 * 1e9


# After an early end, an unselected test or a renamed slower kernel, the paths of both sides may be
# as fast as before. A gate that only compared these would wrongly pass, unless the total of a scope
# around them is decided: it has what they took before, and what took their place.
def uncompared(measured: Measured, policy: Policy, decided: Mapping[str, Mask]) -> tuple[Note, ...]:
    """Return notes on paths and launches that the policy checks but that are unknown.

    Args:
        measured: The runs.
        policy: The thresholds.
        decided: Rows around which a scope is decided, by ``total`` or by ``wall``.
    """
    return (
        *_times(measured, policy, decided["total"]),
        *_launches(measured, policy),
        *_sums(measured, policy),
        *_elapsed(measured, policy, decided["wall"]),
        *_damaged(measured),
    )


def _times(measured: Measured, policy: Policy, decided: Mask) -> list[Note]:
    timed = [each for each in policy.thresholds if not each.is_launch_count]
    if not timed:
        return []
    base, new = (each.any(axis=0) & ~measured.canary for each in measured.sides(measured.present))
    before, after = measured.side_shares()
    notes = []
    gone = _asked(measured, policy, timed, rows=np.flatnonzero(base & ~new).tolist())
    named = [
        row
        for row, thresholds in gone.items()
        if any(each.selector and each.is_written for each in thresholds)
    ]
    added = _asked(measured, policy, timed, rows=np.flatnonzero(new & ~base).tolist())
    lost = float(before[list(gone)].sum()) if gone else 0.0
    if named or _is_lost(before, after, decided, gone=list(gone), added=list(added)):
        listed = _listed(measured, sorted(named or gone, key=lambda row: -before[row]))
        notes.append(
            Note(
                Reason.PATHS_DIFFER,
                f"{100.0 * lost:.0f} % of the base's time is in paths that no new run has, so "
                "these were not compared; check that the runs did not end early. If the paths "
                f"were removed on purpose, compare with a base without them. Missing: {listed}",
                voids=True,
            )
        )
    unknown = float(after[[row for row in added if not decided[row]]].sum())
    if unknown > _MOSTLY:
        listed = _listed(measured, sorted(added, key=lambda row: -after[row]))
        notes.append(
            Note(
                Reason.PATHS_DIFFER,
                f"{100.0 * unknown:.0f} % of the new time is in paths that no base run has, so "
                f"these were not compared; record a base that has them. New: {listed}",
                voids=True,
            )
        )
    return notes


def _is_lost(
    before: Floats, after: Floats, decided: Mask, *, gone: list[int], added: list[int]
) -> bool:
    """Return whether too much of the base is gone to trust what is left.

    Of a scope whose total is decided that is only where most is gone and nothing took its place:
    then the runs may have ended early.
    """
    alone = [row for row in gone if not decided[row]]
    if float(before[alone].sum()) > UNDECIDED_SHARE:
        return True
    return float(before[gone].sum()) - float(after[added].sum()) > _MOSTLY


def _launches(measured: Measured, policy: Policy) -> list[Note]:
    base, new = (each.any(axis=0) & ~measured.canary for each in measured.sides(measured.present))
    calls = measured.sides(measured.calls)
    counted = (calls[0].max(axis=0) > 0) & (calls[1].max(axis=0) > 0)
    both = np.flatnonzero(base & new).tolist()
    structural = [each for each in policy.thresholds if each.is_launch_count]
    selectors = Selectors(each.selector for each in structural)
    selected = selectors.of_tree(measured.comparison.tree)
    # Which of them match a path, and which match one with counted launches.
    about, about_counted = 0, 0
    for row in both:
        about |= selected[row]
        about_counted |= selected[row] if counted[row] else 0
    unknown = [structural[place] for place in selectors.chosen(about & ~about_counted)]
    texts = [
        f"launches were not recorded, so threshold {str(each)!r} decides nothing"
        for each in unknown
    ]
    asked = _asked(
        measured, policy, structural, rows=np.flatnonzero(_half_counted(measured)).tolist()
    )
    rows = [row for row, thresholds in asked.items() if not set(thresholds) <= set(unknown)]
    if rows:
        texts.append(
            "runs have these paths without their launches, so it is unknown whether these are as "
            f"before: {_listed(measured, rows)}"
        )
    return [Note(Reason.NO_VALUES, text, voids=True) for text in texts]


def _half_counted(measured: Measured) -> Mask:
    """Mark rows that a run has without launches although the other side knows its own.

    A side without the row knows that it launches nothing there. Rounds of benchmarks have none.
    """
    found = np.zeros(measured.totals.shape[1], dtype=np.bool_)
    uncounted = measured.present & (measured.calls <= 0.0)
    known = [
        (calls > 0.0).any(axis=0) | ~present.any(axis=0)
        for calls, present in zip(
            measured.sides(measured.calls), measured.sides(measured.present), strict=True
        )
    ]
    for lacking, other in zip(measured.sides(uncounted), reversed(known), strict=True):
        found |= lacking.any(axis=0) & other
    return found & ~measured.beside


def _sums(measured: Measured, policy: Policy) -> list[Note]:
    asked = [
        each
        for each in policy.thresholds
        if each.metric in SUMMED or (each.metric in {"wall", PEAK} and each.is_written)
    ]
    selectors = Selectors(each.selector for each in asked)
    selected = np.array(selectors.of_tree(measured.comparison.tree), dtype=object)
    matched = set(selectors.chosen(_any_of(selected)))
    notes = []
    for metric in dict.fromkeys(each.metric for each in asked):
        if metric in SUMMED:
            values = measured.sums(SUMMED[metric])
        else:
            values = measured.walls() if metric == "wall" else measured.peaks()
        known = np.isfinite(values) & ~measured.canary
        base, new = (each.any(axis=0) for each in measured.sides(known))
        valued = set(selectors.chosen(_any_of(selected[base & new])))
        for place, threshold in enumerate(asked):
            if threshold.metric != metric or place in valued or place not in matched:
                continue
            text = (
                f"no path has values of {metric} on both sides, so threshold "
                f"{str(threshold)!r} decides nothing"
            )
            notes.append(Note(Reason.NO_VALUES, text, voids=True))
    return notes


def _elapsed(measured: Measured, policy: Policy, decided: Mask) -> list[Note]:
    """Return notes on scopes whose elapsed time only one side has."""
    timed = [each for each in policy.thresholds if each.metric == "wall"]
    if not timed or measured.nested:
        return []
    values = np.where(measured.canary, np.nan, measured.walls())[:, 1:]
    base, new = (np.isfinite(each).any(axis=0) for each in measured.sides(values))
    if not base.any():  # the base was recorded without
        return []
    before, after = _own_elapsed(measured)
    gone, added = (
        list(_asked(measured, policy, timed, rows=(1 + np.flatnonzero(rows)).tolist()))
        for rows in (base & ~new, new & ~base)
    )
    shares = [own / (float(own.sum()) or 1.0) for own in (before, after)]
    is_lost = _is_lost(shares[0], shares[1], decided, gone=gone, added=added)
    return [
        *_untimed(
            measured,
            before,
            gone if is_lost else [],
            least=0.0,
            text="the base's elapsed time is in scopes without one in the new runs, so these were "
            "not compared by it; check what the new runs record. If the scopes were removed on "
            "purpose, compare with a base without them. Missing",
        ),
        *_untimed(
            measured,
            after,
            [row for row in added if not decided[row]],
            least=_MOSTLY,
            text="the new elapsed time is in scopes without one in the base, so these were not "
            "compared by it; record a base that has them. New",
        ),
    ]


def _untimed(
    measured: Measured, own: Floats, rows: Sequence[int], *, least: float, text: str
) -> list[Note]:
    total = float(own.sum())
    share = float(own[list(rows)].sum()) / total if total > 0.0 else 0.0
    if share <= least:
        return []
    listed = _listed(measured, sorted(rows, key=lambda row: -own[row]))
    return [Note(Reason.PATHS_DIFFER, f"{100.0 * share:.0f} % of {text}: {listed}", voids=True)]


def _own_elapsed(measured: Measured) -> list[Floats]:
    """Return the elapsed time of each scope without that of the scopes in it, for each side."""
    raw = measured.sums("wall")
    times = np.where(np.isfinite(raw) & ~measured.canary, raw, 0.0)
    parents = measured.comparison.tree.parents
    found = []
    for side in measured.sides(times):
        means = side.mean(axis=0)
        own = means.copy()
        for row in np.flatnonzero(means > 0.0).tolist():
            above = int(parents[row])
            while above > 0 and means[above] <= 0.0:
                above = int(parents[above])
            own[max(above, 0)] -= means[row]
        own[0] = 0.0
        found.append(np.maximum(own, 0.0))
    return found


def _any_of(selected: Iterable[int]) -> int:
    """Return which globs match any of the paths that they are given for."""
    return functools.reduce(operator.or_, selected, 0)


def _damaged(measured: Measured) -> list[Note]:
    times = np.where(measured.present & ~measured.canary, measured.totals, 0.0)
    rows = np.flatnonzero(((times < 0.0) | (times > _LONGEST_NS)).any(axis=0)).tolist()
    if measured.unit != "ns" or not rows:
        return []
    text = (
        "times below 0 or above ten years are damaged, and leave the shares of all other paths "
        f"unknown; record these runs again. Damaged: {_listed(measured, rows)}"
    )
    return [Note(Reason.NO_VALUES, text, voids=True)]


def _asked(
    measured: Measured, policy: Policy, thresholds: Sequence[Threshold], *, rows: Sequence[int]
) -> dict[int, list[Threshold]]:
    """Return the rows that are checked, with their thresholds."""
    tree = measured.comparison.tree
    by_path = ThresholdsByPath(thresholds, tree)
    quarantined = Selectors(policy.quarantine).of_tree(tree)
    found = {row: list(by_path.of_row(row).values()) for row in rows if not quarantined[row]}
    return {row: asked for row, asked in found.items() if asked}


def _listed(measured: Measured, rows: Sequence[int]) -> str:
    paths = [" > ".join(measured.comparison.tree.path(row)) for row in rows[:_NAMED]]
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return ", ".join(paths) + more


def gate_result(
    base_runs: Sequence[Run],
    new_runs: Sequence[Run],
    policy: Policy,
    *,
    context: Context | None = None,
) -> GateResult:
    """Compare new runs with base runs; each run is one fresh process.

    The same runs and policy give exactly the same result. One run on each side decides only
    structure; timing needs ``policy.runs`` processes on each side.

    Args:
        base_runs: Runs to compare with; none gives NO-BASELINE.
        new_runs: Runs to compare.
        policy: The thresholds and limits.
        context: Further knowledge.

    Raises:
        MetricError: A run lacks the metric, or it is not a number.
        UsageError: There is no new run, a run is empty or named twice, units differ, or a threshold
            is an amount of time but no time was recorded.
    """
    if not new_runs:
        raise UsageError("a gate needs at least one new run")
    context = context or Context()
    shell = GateResult(
        SuiteVerdict.NO_BASELINE,
        base_runs=tuple(run.source for run in base_runs),
        new_runs=tuple(run.source for run in new_runs),
        level=FALSE_ALARMS,
        inconclusive_passes=policy.inconclusive_passes,
    )
    if not base_runs:
        return replace(shell, notes=(note_texts.NO_BASE_RUNS,))
    check_replicates((*base_runs, *new_runs))
    arrangement, lost = _undisturbed(context.arrangement or arrange(base_runs, new_runs))
    findings = examine_runs(arrangement.base, arrangement.new)
    notes = (*notes_on(findings, policy), *lost)
    if any(note.reason is Reason.NOT_COMPARABLE for note in notes):
        verdict = SuiteVerdict.INCOMPARABLE
        return replace(shell, verdict=verdict, notes=notes, findings=findings)
    shell = replace(shell, findings=findings)
    one_sidedness = one_sided(base_runs, new_runs)
    if one_sidedness:
        return replace(shell, notes=(Note(Reason.NO_BASE, one_sidedness), *notes))
    compared = compared_runs(arrangement, policy)
    return _concluded(compared, context, replace(shell, notes=notes))


def _undisturbed(arrangement: Arrangement) -> tuple[Arrangement, tuple[Note, ...]]:
    """Return the pairs that nothing disturbed, and a note on the others."""
    lost = left_out(arrangement)
    if not lost:
        return arrangement, ()
    listed = "; ".join(f"pair {at + 1}: {what}" for at, what in sorted(lost.items()))
    text = f"{count_text(len(lost), 'disturbed pair')} left out: {listed}"
    return without(arrangement, lost), (Note(Reason.NOTICE, text),)


def _concluded(compared: ComparedRuns, context: Context, shell: GateResult) -> GateResult:
    measured = measured_runs(compared)
    gate_checks = GateChecks(measured, compared.arrangement, compared.policy, context)
    policy = compared.policy
    structure = find_structural_changes(measured, policy)
    decided = gate_checks.decided()
    canaries = gate_checks.canaries()
    missing = unmatched(measured, policy, decided.checks)
    if not any(note.reason is Reason.NO_BASE for note in missing):
        missing += uncompared(measured, policy, decided.decided_around())
    notes = (*shell.notes, *missing, *refused(measured, policy))
    notes += tuple(_session_notes(gate_checks, decided, canaries))
    # Another unit matters only if the sides were recorded apart.
    paired = gate_checks.arrangement.is_paired
    doubts = [
        note for note in notes if note.reason is Reason.MACHINE and note not in note_texts.SHIFTS
    ]
    blocked = canaries.moved or any(note.voids or not paired for note in doubts)
    blockers = (Reason.MACHINE,) if blocked else ()
    rows = rows_of(replace(decided, blockers=blockers), policy)
    readable = with_texts(_gated(measured), Readable(kernels=True))
    verdict = sum_up(rows, structure, notes)
    if verdict is SuiteVerdict.INCONCLUSIVE:
        notes += _hidden(gate_checks, rows)
    return replace(
        shell,
        verdict=verdict,
        rows=rows,
        structure=structure,
        notes=notes,
        canaries=canaries,
        metric=measured.source,
        statistic=policy.statistic,
        unit=measured.unit,
        paired=paired,
        texts=_texts(readable, rows, structure),
        comparison=readable,
    )


def _gated(measured: Measured) -> Comparison:
    """Return the comparison of what counts in the totals of the gate."""
    # As in `measure`, extreme times overflow in the intervals.
    with np.errstate(over="ignore", invalid="ignore"):
        return without_rows(measured.comparison, measured.canary | measured.quarantined)


def _hidden(gate_checks: GateChecks, rows: Sequence[GateRow]) -> tuple[Note, ...]:
    """Return a note on what noise hides and what a next gate can hold, if it hides a threshold."""
    hidden = [row for row in rows if row.is_undecided and not row.downgraded and _is_hidden(row)]
    if not hidden:
        return ()
    asked = gate_checks.policy.statistic or "median"
    names = dict.fromkeys((asked, *STATISTICS))
    text = advice(asked, [gate_checks.sensitivity(name) for name in names])
    notes = [Note(Reason.TOO_NOISY, text)] if text else []
    if gate_checks.has_unasked_instructions:
        notes.append(note_texts.INSTRUCTIONS_COUNTED)
    return tuple(notes)


def _is_hidden(row: GateRow) -> bool:
    return row.limit < row.findable < math.inf


def _texts(
    readable: Comparison, rows: Sequence[GateRow], structure: Sequence[StructuralChange]
) -> dict[str, str]:
    """Return what is shown for the names of the result that are not shown as they are."""
    paths = [row.path for row in rows]
    paths += [path for each in structure for path in (each.path, each.former_path or ())]
    texts = readable.tree.texts()
    names = dict.fromkeys(name for path in paths for name in path)
    return {name: texts[name] for name in names if name in texts}


def _session_notes(
    gate_checks: GateChecks, decided: DecidedChecks, canaries: CanaryShift
) -> list[Note]:
    shifts = gate_checks.shifts(decided.checks)
    shifted = [each.note for each in shifts if each.is_large(decided.evidence)]
    found = {
        note_texts.ORDER_CONFOUNDED: gate_checks.arrangement.is_confounded,
        note_texts.CONTROLS_MOVED: decided.controls_moved,
        note_texts.CANARY_MOVED: canaries.moved,
        note_texts.GLOBAL_SHIFT: note_texts.COMMON_SHIFT not in shifted and _is_global(decided),
        note_texts.SHARED_NOISE: bool(decided.decisions.unshared.any()),
    }
    return [*shifted, *(note for note, holds in found.items() if holds)]


def _is_global(decided: DecidedChecks) -> bool:
    """Return whether four of five paths, and at least eight, changed alike."""
    tested = decided.evidence.tested & own_paths(decided.checks)
    effect = decided.evidence.effect[tested]
    margin = decided.limits.margin[tested]
    count = len(effect)
    most = max(int((effect > margin).sum()), int((-effect > margin).sum()))
    return count >= 8 and most >= 0.8 * count
