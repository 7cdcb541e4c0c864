"""Rules that decide for each path whether it got slower, all on the same launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.studies.gate.machine import Drawn
from proton_bench.gate.experiment.looks import HOPE, looks
from proton_bench.gate.judge.suite import UNDECIDED_SHARE
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.common_shift import explained_by_shift
from proton_bench.gate.statistics.decision import (
    Background,
    Decisions,
    Evidence,
    Limits,
    decide,
    weigh,
)

__all__ = [
    "OTHER_TOOLS",
    "Judged",
    "Rule",
    "are_open",
    "in_looks",
    "judged",
    "ours",
]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rule = Callable[[Drawn], Mask]


# -- this gate -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Judged:
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


def judged(drawn: Drawn, *, part: float = 1.0) -> Judged:
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
    return Judged(decide(evidence, limits, part=part), evidence, limits, paths)


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


def in_looks(drawn: Drawn) -> tuple[Judged, int]:
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


def _numbers(launches: Numbers) -> Numbers:
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


# -- other tools ---------------------------------------------------------------------------------
def _pooled(drawn: Drawn) -> tuple[Numbers, Numbers]:
    sides = [np.moveaxis(side, 1, 0).reshape(side.shape[1], -1) for side in (drawn.base, drawn.new)]
    return sides[0], sides[1]


def mean_over_5(drawn: Drawn) -> Mask:
    """``mean:5%`` of pytest-benchmark, on the launches of all runs."""
    base, new = _pooled(drawn)
    found: Mask = new.mean(axis=1) / base.mean(axis=1) > 1.05
    return found


def median_over_5(drawn: Drawn) -> Mask:
    """``median:5%`` of pytest-benchmark, on the launches of all runs."""
    base, new = _pooled(drawn)
    found: Mask = np.median(new, axis=1) / np.median(base, axis=1) > 1.05
    return found


def median_over_5_of_one_run(drawn: Drawn) -> Mask:
    """The same of the first run of each side, as it is mostly used."""
    found: Mask = np.median(drawn.new[0], axis=1) / np.median(drawn.base[0], axis=1) > 1.05
    return found


def mann_whitney(drawn: Drawn) -> Mask:
    """A rank sum test at 5 % on the launches of all runs, without a margin."""
    base, new = _pooled(drawn)
    p_values = stats.mannwhitneyu(new, base, axis=1, method="asymptotic").pvalue
    found: Mask = (p_values < 0.05) & (np.median(new, axis=1) > np.median(base, axis=1))
    return found


def subtraction(drawn: Drawn) -> Mask:
    """What ``proton-viewer -diff`` shows of one run each, with 3 % more time counted as slower."""
    found: Mask = drawn.new[0].sum(axis=1) / drawn.base[0].sum(axis=1) > 1.03
    return found


OTHER_TOOLS: dict[str, Rule] = {
    "pytest-benchmark `mean:5%`, launches of all runs": mean_over_5,
    "pytest-benchmark `median:5%`, launches of all runs": median_over_5,
    "pytest-benchmark `median:5%`, one run each": median_over_5_of_one_run,
    "Mann-Whitney at 5 %, launches of all runs": mann_whitney,
    "plain subtraction, one run each, over 3 %": subtraction,
}
