"""Rules that decide for each path whether it got slower, all on the same launches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.studies.gate.machine import Drawn
from proton_bench.gate.experiment.escalation import Plan
from proton_bench.gate.machine.canary_shift import shift_of
from proton_bench.gate.machine.noise import Spread
from proton_bench.gate.policy.policy import MARGIN_PART, Policy
from proton_bench.gate.statistics.common_shift import explained_by_shift
from proton_bench.gate.statistics.contrast import Contrast
from proton_bench.gate.statistics.evidence import Background, contrast_of, weigh
from proton_bench.gate.statistics.timing import Decisions, Evidence, Limits, decide

__all__ = ["RULES", "Rule", "ours", "ours_with_canary", "screened_then_confirmed"]

Mask = npt.NDArray[np.bool_]
Rule = Callable[[Drawn], Mask]


def _pooled(drawn: Drawn) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
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


def ours(drawn: Drawn) -> Mask:
    """This gate with its default policy, without canaries and absolute floors."""
    found, evidence, limits = _judged(drawn)
    if len(drawn.order):
        return found.worse & np.isfinite(evidence.contrast.order_effect)
    return found.worse & ~_explained(evidence, limits)


def _explained(evidence: Evidence, limits: Limits) -> Mask:
    policy = Policy()
    usual = math.log1p(policy.session_shift)
    return explained_by_shift(evidence, limits, level=policy.level, usual=usual)


def ours_with_canary(drawn: Drawn) -> Mask:
    """The same with a canary: there is no verdict if it moved by more than 1 %."""
    shift = contrast_of(drawn.shared[0][:, None], drawn.shared[1][:, None], drawn.order).effect
    return _judged(drawn)[0].worse & (not shift_of(shift).moved)


def screened_then_confirmed(drawn: Drawn) -> Mask:
    """Two stages: the first pairs flag paths, the others are fresh and judge these alone."""
    plan = Plan()
    stages = slice(None, plan.screening_pairs), slice(plan.screening_pairs, None)
    first, fresh = (
        replace(drawn, base=drawn.base[part], new=drawn.new[part], order=drawn.order[part])
        for part in stages
    )
    screened, _, _ = _judged(first)
    flagged = np.minimum(screened.p_more, screened.p_less) < plan.flag_below
    return _judged(fresh, flagged)[0].worse


def _judged(drawn: Drawn, tested: Mask | None = None) -> tuple[Decisions, Evidence, Limits]:
    policy = Policy()
    paths = drawn.base.shape[1]
    nothing = np.zeros(paths)
    # Without ties the median of the mid-distribution is the median.
    base, new = (np.log(np.median(side, axis=2)) for side in (drawn.base, drawn.new))
    contrast: Contrast = contrast_of(base, new, drawn.order)
    background = Background(nothing, nothing, ["median"] * paths, [Spread(math.nan, 0.0)] * paths)
    evidence = weigh(contrast, background, fewest_runs=min(policy.runs, len(base)))
    if tested is not None:
        evidence = replace(evidence, tested=evidence.tested & tested)
    part = policy.threshold
    limits = Limits(
        np.full(paths, np.log1p(policy.margin_of(part))),
        np.full(paths, np.log1p(part)),
        np.full(paths, np.log1p(MARGIN_PART * part)),
        np.ones(paths),
    )
    return decide(evidence, limits, level=policy.level), evidence, limits


RULES: dict[str, Rule] = {
    "pytest-benchmark `mean:5%`, launches of all runs": mean_over_5,
    "pytest-benchmark `median:5%`, launches of all runs": median_over_5,
    "pytest-benchmark `median:5%`, one run each": median_over_5_of_one_run,
    "Mann-Whitney at 5 %, launches of all runs": mann_whitney,
    "plain subtraction, one run each, over 3 %": subtraction,
    "ours": ours,
}
