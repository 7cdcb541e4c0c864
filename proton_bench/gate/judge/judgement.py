"""The gate: runs of two sides and a policy in, a verdict out. It is a pure function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from proton_bench.analysis.compare.compare import Comparison, without_rows
from proton_bench.analysis.compare.readable import with_texts
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.judge import notes as said
from proton_bench.gate.judge.benchmarks import Subject, measure_subject, one_sided, subject_of
from proton_bench.gate.judge.check import own_paths
from proton_bench.gate.judge.measured import Measured
from proton_bench.gate.judge.notes import notes_on, refused, unmatched
from proton_bench.gate.judge.questions import Context, Questions
from proton_bench.gate.judge.result import GateResult, GateRow, Note
from proton_bench.gate.judge.rows import Judged, answer
from proton_bench.gate.judge.structure import StructuralChange, find_structural_changes
from proton_bench.gate.judge.suite import sum_up
from proton_bench.gate.judge.uncompared import uncompared
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict
from proton_bench.gate.machine.canary_shift import CanaryShift
from proton_bench.gate.machine.copies import check_replicates
from proton_bench.gate.machine.disturbed import left_out, without
from proton_bench.gate.machine.fingerprint import examine_runs
from proton_bench.gate.machine.sensitivity import STATISTICS, advice
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.arrangement import Arrangement, arrange
from proton_bench.gate.statistics.controls import Controls
from proton_bench.gate.statistics.decision import FALSE_ALARMS
from proton_bench.support.units import count_text

__all__ = ["judge"]


def judge(
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
        new_runs: Runs to judge.
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
        return replace(shell, notes=(said.NO_BASE_RUNS,))
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
    subject = subject_of(arrangement, policy)
    return _concluded(subject, context, replace(shell, notes=notes))


def _undisturbed(arrangement: Arrangement) -> tuple[Arrangement, tuple[Note, ...]]:
    """Return the pairs that nothing disturbed, and a note on the others."""
    lost = left_out(arrangement)
    if not lost:
        return arrangement, ()
    listed = "; ".join(f"pair {at + 1}: {what}" for at, what in sorted(lost.items()))
    text = f"{count_text(len(lost), 'disturbed pair')} left out: {listed}"
    return without(arrangement, lost), (Note(Reason.NOTICE, text),)


def _concluded(subject: Subject, context: Context, shell: GateResult) -> GateResult:
    measured = measure_subject(subject)
    questions = Questions(measured, subject.arrangement, subject.policy, context)
    policy = subject.policy
    structure = find_structural_changes(measured, policy)
    judged, controls = questions.judged()
    canaries = questions.canaries()
    missing = unmatched(measured, policy, judged.checks)
    if not any(note.reason is Reason.NO_BASE for note in missing):
        missing += uncompared(measured, policy, judged.decided_around())
    notes = (*shell.notes, *missing, *refused(measured, policy))
    notes += tuple(_session_notes(questions, judged, controls, canaries=canaries))
    # Another unit matters only if the sides were recorded apart.
    paired = questions.arrangement.is_paired
    doubts = [note for note in notes if note.reason is Reason.MACHINE and note not in said.SHIFTS]
    blocked = canaries.moved or any(note.voids or not paired for note in doubts)
    blockers = (Reason.MACHINE,) if blocked else ()
    rows = answer(replace(judged, blockers=blockers), policy)
    readable = with_texts(_gated(measured), Readable(kernels=True))
    verdict = sum_up(rows, structure, notes)
    if verdict is SuiteVerdict.INCONCLUSIVE:
        notes += _hidden(questions, rows)
    return replace(
        shell,
        verdict=verdict,
        rows=rows,
        structure=structure,
        notes=notes,
        controls=controls,
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


def _hidden(questions: Questions, rows: Sequence[GateRow]) -> tuple[Note, ...]:
    """Return a note on what noise hides and what a next gate can hold, if it hides a threshold."""
    hidden = [row for row in rows if row.is_undecided and not row.downgraded and _is_hidden(row)]
    if not hidden:
        return ()
    asked = questions.policy.statistic or "median"
    names = dict.fromkeys((asked, *STATISTICS))
    text = advice(asked, [questions.sensitivity(name) for name in names])
    notes = [Note(Reason.TOO_NOISY, text)] if text else []
    if questions.has_unasked_instructions:
        notes.append(said.INSTRUCTIONS_COUNTED)
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
    questions: Questions, judged: Judged, controls: Controls, *, canaries: CanaryShift
) -> list[Note]:
    shifts = questions.shifts(judged.checks)
    shifted = [each.note for each in shifts if each.is_large(judged.evidence)]
    found = {
        said.ORDER_CONFOUNDED: questions.arrangement.is_confounded,
        said.CONTROLS_MOVED: controls.invalid,
        said.CANARY_MOVED: canaries.moved,
        said.GLOBAL_SHIFT: said.COMMON_SHIFT not in shifted and _is_global(judged),
        said.SHARED_NOISE: bool(judged.decisions.unshared.any()),
    }
    return [*shifted, *(note for note, holds in found.items() if holds)]


def _is_global(judged: Judged) -> bool:
    """Return whether four of five paths, and at least eight, changed alike."""
    tested = judged.evidence.tested & own_paths(judged.checks)
    effect = judged.evidence.effect[tested]
    margin = judged.limits.margin[tested]
    count = len(effect)
    most = max(int((effect > margin).sum()), int((-effect > margin).sum()))
    return count >= 8 and most >= 0.8 * count
