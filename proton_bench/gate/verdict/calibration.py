"""How often a gate fails runs of one program on this machine: its A/A rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.decision import decide, weigh
from proton_bench.gate.verdict.benchmarks import compared_runs, measured_runs
from proton_bench.gate.verdict.decisions import Context, GateChecks

__all__ = ["Rate", "resample_false_alarms"]


@dataclass(frozen=True, slots=True)
class Rate:
    """Events in a number of trials."""

    events: int
    trials: int

    @property
    def value(self) -> float:
        """The share of trials with the event, 0 of none."""
        return self.events / self.trials if self.trials else 0.0

    def bounds(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the exact interval of Clopper, Pearson 1934 (Biometrika 26:404)."""
        if not self.trials:
            return 0.0, 1.0
        tail = (1.0 - confidence) / 2.0
        misses = self.trials - self.events
        low = float(special.betaincinv(self.events, misses + 1, tail)) if self.events else 0.0
        high = float(special.betainccinv(self.events + 1, misses, tail)) if misses else 1.0
        return low, high


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
    compared = compared_runs(runs, policy)
    gate_checks = GateChecks(
        measured_runs(compared), compared.arrangement, compared.policy, Context()
    )
    decided, _ = gate_checks.decided()
    base, new = decided.observations.logarithms()
    background = gate_checks.background(decided.checks, decided.observations)
    generator, alarms = np.random.default_rng(seed), 0
    for _ in range(splits):
        swapped = generator.random(len(base)) < 0.5
        evidence = weigh(
            np.where(swapped[:, None], new, base),
            np.where(swapped[:, None], base, new),
            np.where(swapped, -1.0, 1.0) * np.array(compared.arrangement.order),
            background=background,
            margin=decided.limits.margin,
            fewest_runs=compared.policy.runs,
        )
        alarms += bool(decide(evidence, decided.limits).worse.any())
    return Rate(alarms, splits)
