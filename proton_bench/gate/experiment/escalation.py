"""Two stages: few pairs of everything, then fresh pairs of what looked odd.

Stage 1 flags paths whose p-value, either way, is below `Plan.flag_below`. Stage 2 runs fresh pairs
and judges the flagged paths on these alone. Whatever stage 1 picked, it knows nothing of the pairs
of stage 2, so the false discovery rate over the flagged paths is the policy's given what was
flagged, and without a change::

    P(FAIL) <= level * P(anything is flagged)

Trying again until a gate is green has no such bound: a change that is found with chance w passes
one of k tries with chance 1 - w^k. What stage 1 does not flag is called the same for want of a
sign, not because it was shown to be (`Reason.SCREENED`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.run import Run
from proton_bench.gate.judge.benchmarks import measure_subject, subject_of
from proton_bench.gate.judge.questions import Context, Questions
from proton_bench.gate.judge.structure import StructuralChange, find_structural_changes
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.arrangement import arrange
from proton_bench.gate.statistics.power import RECOMMENDED_PAIRS

__all__ = ["Plan", "Screening", "screen"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to run.

    Attributes:
        screening_pairs: Pairs of stage 1.
        flag_below: P-value below which a path goes to stage 2.
        confirming_pairs: Pairs of stage 2.
    """

    screening_pairs: int = 3
    flag_below: float = 0.2
    confirming_pairs: int = RECOMMENDED_PAIRS


@dataclass(frozen=True, slots=True)
class Screening:
    """What stage 1 saw.

    Attributes:
        flagged: Paths for stage 2; `Context.confirm` of its judgement.
        screened: Number of questions that were looked at.
        structure: Structural changes, which need no second look.
    """

    flagged: tuple[tuple[str, ...], ...]
    screened: int
    structure: tuple[StructuralChange, ...]


def screen(
    base_runs: Sequence[Run],
    new_runs: Sequence[Run],
    policy: Policy,
    *,
    plan: Plan | None = None,
    context: Context | None = None,
) -> Screening:
    """Look for paths that deserve more runs; those that cannot be judged at all do too.

    Raises:
        MetricError: A run lacks the metric, or it is no number.
        UsageError: A side has no run, a run is empty, or units differ.
    """
    plan, context = plan or Plan(), context or Context()
    subject = subject_of(context.arrangement or arrange(base_runs, new_runs), policy)
    measured, policy = measure_subject(subject), subject.policy
    looser = replace(policy, runs=min(policy.runs, plan.screening_pairs))
    judged, _ = Questions(measured, subject.arrangement, looser, context).judged()
    least = np.fmin(judged.decisions.p_more, judged.decisions.p_less)
    odd = ~(least >= plan.flag_below) | ~judged.evidence.tested
    tree = measured.comparison.tree
    paths = dict.fromkeys(
        tree.path(check.row) for check, flag in zip(judged.checks, odd, strict=True) if flag
    )
    structure = find_structural_changes(measured, policy)
    return Screening(tuple(paths), len(judged.checks), structure)
