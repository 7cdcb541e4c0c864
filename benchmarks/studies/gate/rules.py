"""The decision of the gate, on simulated launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.gate.machine import Drawn
from proton_bench.gate.experiment import HOPE, looks
from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.common_shift import explained_by_shift
from proton_bench.gate.statistics.decision import (
    Background,
    Decisions,
    Evidence,
    Limits,
    decide,
    weigh,
)
from proton_bench.gate.verdict.result import UNDECIDED_SHARE
from proton_bench.model.arrays import Floats, Mask

Rule = Callable[[Drawn], Mask]


@dataclass(frozen=True, slots=True, eq=False)
class DecidedChecks:
    """What this gate makes of an experiment, without canaries and absolute floors.

    The checks of the paths come first, then those of totals.
    """

    decisions: Decisions
    evidence: Evidence
    limits: Limits
    paths: int

    @property
    def worse(self) -> Mask:
        """The checks that fail."""
        found = self.decisions.worse
        if self.evidence.first_new:
            every = np.arange(len(found)) < self.paths
            return found & ~explained_by_shift(self.evidence, self.limits, every)
        return found & np.isfinite(self.evidence.order_effect)


def judged(drawn: Drawn, *, part: float = 1.0) -> DecidedChecks:
    """Judge an experiment with the default policy.

    Args:
        drawn: The runs.
        part: Share of the false alarms that noise may cause.
    """
    policy, paths = Policy(), drawn.base.shape[1]
    sides = [_numbers(side) for side in (drawn.base, drawn.new)]
    checks = sides[0].shape[1]
    metrics = ["median"] * paths + ["total"] * (checks - paths)
    limits = Limits(np.full(checks, np.log1p(policy.threshold)), np.ones(checks))
    evidence = weigh(
        *sides,
        tuple(drawn.order),
        background=Background(np.zeros(checks), np.zeros(checks), metrics),
        margin=limits.margin,
        fewest_runs=min(policy.runs, len(drawn.base)),
    )
    return DecidedChecks(decide(evidence, limits, part=part), evidence, limits, paths)


def ours(drawn: Drawn) -> Mask:
    """This gate, by all pairs at once; the last one is any total."""
    if not _may_fail(drawn):
        return np.zeros(drawn.base.shape[1] + 1, dtype=np.bool_)
    found = judged(drawn)
    worse = found.worse
    return np.append(worse[: found.paths], worse[found.paths :].any())


def _may_fail(drawn: Drawn) -> bool:
    """Return whether a check was slower in every pair, which is quick to see and rare.

    Pairs count as measured, or without what paths share. The mean has to be beyond the margin; the
    order effect explains at most half of it.
    """
    if not len(drawn.order):
        return True
    paths = drawn.base.shape[1]
    differences = _numbers(drawn.new) - _numbers(drawn.base)
    beside = differences - np.median(differences[:, :paths], axis=1, keepdims=True)
    slower = (differences > 0.0).all(axis=0) | (beside > 0.0).all(axis=0)
    least = np.log1p(Policy().threshold) / 4.0
    return bool((slower & (differences.mean(axis=0) > least)).any())


def in_looks(drawn: Drawn) -> tuple[DecidedChecks, int]:
    """Add pairs until every check is decided, as `proton ab` does.

    Returns:
        The last look, and its number of pairs.
    """
    most = len(drawn.order)
    for look in looks(most):
        found = judged(drawn.first(look.pairs), part=look.part)
        if not are_open(found.decisions, found.limits, most).any():
            break
    return found, look.pairs


def are_open(decisions: Decisions, limits: Limits, most: int) -> Mask:
    """Return for which checks `proton ab` adds pairs, if all have the same share of the time.

    Args:
        decisions: Of the pairs so far.
        limits: The thresholds.
        most: Pairs at most.
    """
    undecided = ~(decisions.allowed | decisions.worse)
    within = undecided & (decisions.pairs <= HOPE * most)
    enough = 0
    if undecided.mean() > UNDECIDED_SHARE and not decisions.worse.any():
        passes_without = (undecided & ~within).mean() <= UNDECIDED_SHARE
        enough = HOPE * most if passes_without else most
    seem_changed = np.abs(decisions.effect) > limits.margin
    found: Mask = within & (seem_changed | (decisions.pairs <= enough))
    return found


def _numbers(launches: Floats) -> Floats:
    """Return ``ln`` of the medians of a side, and of totals of four scopes and of the run."""
    if launches.shape[-1] == 1:
        return np.log(launches[..., 0])
    times = np.sort(launches, axis=-1)
    count = times.shape[-1]
    middle = times[..., (count - 1) // 2]
    # The median of grouped data, as `location.grouped_quantile` where all ticks near it occur.
    below, equal = (times < middle[..., None]).sum(-1), (times == middle[..., None]).sum(-1)
    medians = middle - 0.5 + (count / 2.0 - below) / equal
    totals = times.sum(axis=-1, dtype=np.float64)
    scopes = [part.sum(axis=1) for part in np.array_split(totals, 4, axis=1)]
    return np.log(np.column_stack([medians, *scopes, totals.sum(axis=1)]))
