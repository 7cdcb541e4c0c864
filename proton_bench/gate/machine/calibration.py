"""How often a gate fails runs of one program on this machine: its A/A rate."""

from __future__ import annotations

import numpy as np

from proton_bench.gate.judge.benchmarks import measure_subject, subject_of
from proton_bench.gate.judge.questions import Context, Questions
from proton_bench.gate.machine.rate import Rate
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.decision import decide, weigh

__all__ = ["resample_false_alarms"]


def resample_false_alarms(
    runs: Arrangement, policy: Policy, *, splits: int = 200, seed: int = 0
) -> Rate:
    """Return how often the gate fails pairs of one program whose sides are drawn at random.

    The splits share their runs, so bounds for independent trials are too narrow. Absolute floors
    are not applied, which can only make alarms more frequent.

    Args:
        runs: Pairs; both sides ran the same code.
        policy: Policy of the gate.
        splits: How many gates to decide.
        seed: Of the splits.
    """
    subject = subject_of(runs, policy)
    questions = Questions(measure_subject(subject), subject.arrangement, subject.policy, Context())
    judged, _ = questions.judged()
    base, new = judged.observations.logarithms()
    background = questions.background(judged.checks, judged.observations)
    generator, alarms = np.random.default_rng(seed), 0
    for _ in range(splits):
        swapped = generator.random(len(base)) < 0.5
        evidence = weigh(
            np.where(swapped[:, None], new, base),
            np.where(swapped[:, None], base, new),
            np.where(swapped, -1.0, 1.0) * np.array(subject.arrangement.order),
            background=background,
            margin=judged.limits.margin,
            fewest_runs=subject.policy.runs,
        )
        alarms += bool(decide(evidence, judged.limits).worse.any())
    return Rate(alarms, splits)
