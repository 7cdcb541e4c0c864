"""The decision over all paths: certainly slower, certainly the same, or undecided.

With ``effect`` and ``se = scale * sqrt(variance * k)`` on the log scale, and ``nu`` degrees of
freedom::

    T = (effect - margin) / se       p = P(t[nu] > T)       H0: no slower than the margin

McCarthy, Smyth 2009 ("Testing significance relative to a fold-change threshold is a TREAT",
Bioinformatics 25:765). A path is worse if it is significant at the false discovery rate over all
paths and its effect reaches the threshold; better is the mirror image. It is the same if the 90 %
interval of the effect lies between ``-equivalence`` and ``+equivalence``, which is two one-sided
tests at 5 % (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15:657). Everything else is undecided.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from proton_bench.gate.statistics.contrast import Contrast
from proton_bench.gate.statistics.discovery import Dependence, adjusted
from proton_bench.gate.statistics.moderation import Moderated
from proton_bench.gate.statistics.power import Question, detectable, pairs_needed, quantile

__all__ = [
    "CONFIDENCE",
    "Decisions",
    "Evidence",
    "Limits",
    "changed_for_certain",
    "decide",
    "one_sided",
]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Limits of each path, on the log scale.

    Attributes:
        margin: Changes up to this do not matter.
        threshold: Changes from this on count.
        equivalence: Changes within this are the same.
        direction: +1 if more is worse, -1 if less is, 0 if any change is.
    """

    margin: Numbers
    threshold: Numbers
    equivalence: Numbers
    direction: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Effects of each path and their certainty.

    Attributes:
        contrast: Effects.
        noise: Their moderated variances.
        tested: Whether the path is part of the family; others are neither worse nor better.
        resolution: Least variance of each effect, however many runs there are.
        null_scale: Factor on all standard errors, at least 1.
        error: Standard errors of the effects.
        limited: Whether more runs do not make the effect more certain.
    """

    contrast: Contrast
    noise: Moderated
    tested: Mask
    resolution: Numbers
    null_scale: float = 1.0
    error: Numbers = field(init=False)
    limited: Mask = field(init=False)

    def __post_init__(self) -> None:
        variance = self.noise.variance * self.contrast.scale
        error = self.null_scale * np.sqrt(np.maximum(variance, self.resolution))
        object.__setattr__(self, "error", error)
        object.__setattr__(self, "limited", self.resolution > variance)


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """One line for each path; everything is on the log scale.

    Attributes:
        low: Lower end of the interval of the effect.
        high: Upper end.
        p_more: That the path is slower than the margin, as a p-value.
        p_less: That it is faster.
        p_worse: P-value of the family of regressions, adjusted.
        worse: Whether the path got worse by the threshold or more.
        better: Whether it got better by that.
        same: Whether the interval lies within the equivalence limits.
        within: Whether it lies within the threshold on both sides.
        allowed: Whether it is within the threshold in the direction that counts.
        detectable: Smallest detectable change, see `power`.
        pairs: Pairs that detect the threshold, NaN for too many.
    """

    low: Numbers
    high: Numbers
    p_more: Numbers
    p_less: Numbers
    p_worse: Numbers
    worse: Mask
    better: Mask
    same: Mask
    within: Mask
    allowed: Mask
    detectable: Numbers
    pairs: Numbers


def one_sided(effect: Numbers, margin: Numbers, *, error: Numbers, freedom: Numbers) -> Numbers:
    """Return ``P(t > (effect - margin) / error)``; NaN if unknown.

    With an error of 0 a difference is certain, and no difference undecided.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(effect == margin, 0.0, (effect - margin) / error)
    found = special.stdtr(np.where(freedom > 0, freedom, 1.0), -ratio)
    return np.where((freedom > 0) & np.isfinite(effect) & np.isfinite(error), found, np.nan)


def changed_for_certain(
    evidence: Evidence, effect: Numbers, limits: Limits, *, level: float
) -> Mask:
    """Return which tested paths changed significantly beyond the margin, in either direction.

    Args:
        evidence: Errors, the directions of the changes, and which paths are tested.
        effect: Remaining effects after another explanation of a part of them.
        limits: Margins.
        level: False discovery rate over the paths of each direction.
    """
    known = {"error": evidence.error, "freedom": evidence.noise.freedom}
    more, less = (
        adjusted(
            np.where(evidence.tested, one_sided(sign * effect, limits.margin, **known), np.nan)
        )
        for sign in (1.0, -1.0)
    )
    found: Mask = np.where(evidence.contrast.effect > 0.0, more, less) <= level
    return found


def decide(
    evidence: Evidence,
    limits: Limits,
    *,
    level: float,
    dependence: Dependence = Dependence.POSITIVE,
) -> Decisions:
    """Judge all paths together.

    Args:
        evidence: The measured effects.
        limits: The limits.
        level: False discovery rate of the regressions.
        dependence: How the paths may depend on one another.
    """
    contrast, freedom, error = evidence.contrast, evidence.noise.freedom, evidence.error
    effect, direction = contrast.effect, limits.direction
    known = {"error": error, "freedom": freedom}
    p_more = one_sided(effect, limits.margin, **known)
    p_less = one_sided(-effect, limits.margin, **known)
    either = np.minimum(2.0 * np.minimum(p_more, p_less), 1.0)
    p_worse = np.where(direction > 0, p_more, np.where(direction < 0, p_less, either))
    p_better = np.where(direction > 0, p_less, np.where(direction < 0, p_more, np.nan))
    p_worse, p_better = (
        adjusted(np.where(evidence.tested, each, np.nan), dependence)
        for each in (p_worse, p_better)
    )
    badness = np.where(direction == 0, np.abs(effect), effect * direction)
    reach = quantile(0.5 + CONFIDENCE / 2.0, freedom) * error
    low, high = effect - reach, effect + reach
    worst = np.where(direction > 0, high, np.where(direction < 0, -low, np.maximum(high, -low)))
    found = max(int((p_worse <= level).sum()), 1)
    family = max(int(np.isfinite(p_worse).sum()), 1)
    question = Question(
        limits.margin, limits.threshold, np.full(len(effect), min(level * found / family, 0.5))
    )
    # Of one pair measured that often: the scale of R pairs is 1 / R.
    per_pair = (error**2) * np.maximum(contrast.runs, 1)
    beyond = np.maximum(freedom - np.where(contrast.runs > 1, contrast.freedom, 0.0), 0.0)
    return Decisions(
        low=low,
        high=high,
        p_more=p_more,
        p_less=p_less,
        p_worse=p_worse,
        worse=(p_worse <= level) & (badness >= limits.threshold),
        better=(p_better <= level) & (-badness >= limits.threshold),
        same=(low > -limits.equivalence) & (high < limits.equivalence),
        within=(low > -limits.threshold) & (high < limits.threshold),
        allowed=worst < limits.threshold,
        detectable=detectable(question, error, freedom),
        pairs=np.where(evidence.limited, np.nan, pairs_needed(question, per_pair, beyond)),
    )
