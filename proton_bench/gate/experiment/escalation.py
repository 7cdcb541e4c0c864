"""Two stages: few pairs for all paths, then new pairs for paths that may have changed.

Stage 1 flags paths whose p-value, in either direction, is below `Plan.flag_below`. Stage 2 runs new
pairs and judges the flagged paths on these alone. The flags do not depend on the pairs of stage 2,
so the false discovery rate over the flagged paths is the policy's, and without a change::

    P(FAIL) <= level * P(anything is flagged)

Repeating a gate until it passes has no such bound: a change that is found with chance w passes one
of k tries with chance 1 - w^k. Paths that stage 1 does not flag count as the same because it saw no
sign of a change, not because that was shown (`Reason.SCREENED`).
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
    """Numbers of pairs.

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
    """The result of stage 1.

    Attributes:
        flagged: Paths for stage 2; `Context.confirm` of its judgement.
        screened: Number of checks.
        structure: Structural changes, which need no second stage.
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
    """Find paths that need more runs, including those that cannot be judged yet.

    Raises:
        MetricError: A run lacks the metric, or it is not a number.
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
