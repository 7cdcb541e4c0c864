"""The decision over all paths: certainly slower, certainly not slower, or undecided.

In: `Evidence`, the effect of each path with its standard error ``se`` and degrees of freedom
``nu``, and `Limits`, the threshold of each path. Out: `Decisions`. With everything on the log scale
and the margin ``m = threshold / 2``::

    T = (effect - m) / se        p = P(t[nu] > T)        H0: slower by no more than the margin

McCarthy, Smyth 2009 ("Testing significance relative to a fold-change threshold is a TREAT",
Bioinformatics 25:765). A path is worse if all of these hold:

- Its p-value, adjusted for all paths by `family`, is at most half of `FALSE_ALARMS`.
- The new side was slower in every pair, or in every process if the sides are apart.
- States of paths separate the sides less often than the other half of `FALSE_ALARMS` (`states`).
- The 95 % interval of the effect reaches the threshold.

A path is judged twice if paths share much of their noise: plainly, and without what they share
(`shared_factor`). Each has half of the false alarms, and the plain effect has to be beyond the
margin, too. Only the plain effect can be allowed: what all paths share may be a change.

So half of the threshold makes less than one gate in a thousand fail, and with enough runs the
threshold itself is found nine times in ten. A path is allowed if the interval lies below the
threshold. Everything else is undecided. Better is the mirror image of worse.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from proton_bench.gate.statistics.contrast import Contrast
from proton_bench.gate.statistics.family import adjusted
from proton_bench.gate.statistics.moderation import Moderated
from proton_bench.gate.statistics.power import (
    MOST_PAIRS,
    POWER,
    detectable,
    pairs_needed,
    quantile,
)
from proton_bench.gate.statistics.states import States, states_of

__all__ = [
    "CONFIDENCE",
    "FALSE_ALARMS",
    "Decisions",
    "Evidence",
    "Limits",
    "changed_for_certain",
    "decide",
    "held_by_either",
    "one_sided",
]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

CONFIDENCE = 0.95
# Share of gates without a change beyond the margins that may fail.
FALSE_ALARMS = 0.001


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Limits of each path.

    Attributes:
        threshold: Changes from this on count, on the log scale.
        direction: +1 if more is worse, -1 if less is, 0 if any change is.
    """

    threshold: Numbers
    direction: Numbers

    @property
    def margin(self) -> Numbers:
        """Changes up to this do not matter, on the log scale."""
        found: Numbers = self.threshold / 2.0
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Effects of each path and their certainty.

    Attributes:
        contrast: Effects.
        noise: Their moderated variances.
        tested: Whether the path is part of the family; others are neither worse nor better.
        resolution: Least variance of each effect, however many runs there are.
        unshared: The same without the noise that paths share; None if they share little.
        error: Standard errors of the effects.
        limited: Whether more runs do not make the effect more certain.
    """

    contrast: Contrast
    noise: Moderated
    tested: Mask
    resolution: Numbers
    unshared: Evidence | None = None
    error: Numbers = field(init=False)
    limited: Mask = field(init=False)

    def __post_init__(self) -> None:
        variance = self.noise.variance * self.contrast.scale
        error = np.sqrt(np.maximum(variance, self.resolution))
        object.__setattr__(self, "error", error)
        object.__setattr__(self, "limited", self.resolution > variance)

    @property
    def level(self) -> float:
        """Share of gates that noise may make fail by one look at this evidence."""
        return FALSE_ALARMS / (2.0 if self.unshared is None else 4.0)


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """One line for each path; everything is on the log scale.

    Attributes:
        effect: The change that is judged.
        low: Lower end of its 95 % interval.
        high: Upper end.
        p_worse: P-value of a change for the worse beyond the margin, adjusted for all paths.
        worse: Whether the path got worse.
        better: Whether it got better.
        same: Whether the interval lies within the threshold on both sides.
        allowed: Whether it lies within the threshold in the direction that counts.
        unshared: Whether the effect is without the noise that paths share, which hides the change.
        detectable: Smallest threshold that these runs can hold, see `power`.
        pairs: Pairs that find the threshold, or the change so far if it is larger; NaN for too
            many, or if the path is allowed.
    """

    effect: Numbers
    low: Numbers
    high: Numbers
    p_worse: Numbers
    worse: Mask
    better: Mask
    same: Mask
    allowed: Mask
    unshared: Mask
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


def changed_for_certain(evidence: Evidence, effect: Numbers, limits: Limits) -> Mask:
    """Return which tested paths changed significantly beyond the margin, in either direction.

    Args:
        evidence: Errors, the directions of the changes, and which paths are tested.
        effect: Remaining effects after another explanation of a part of them.
        limits: The limits.
    """
    signs = np.where(evidence.contrast.effect > 0.0, 1.0, -1.0)
    both = [_significance(evidence, sign * effect, limits) for sign in (1.0, -1.0)]
    found: Mask = np.where(signs > 0, *both) <= FALSE_ALARMS / 2.0
    return found


def decide(evidence: Evidence, limits: Limits, *, part: float = 1.0) -> Decisions:
    """Judge all paths together.

    Args:
        evidence: The measured effects.
        limits: The limits.
        part: Share of the false alarms that noise may cause in this look, if there are several.
    """
    level = part * evidence.level
    plain = _decided(evidence, limits, level=level)
    if evidence.unshared is None:
        return plain
    own = _decided(evidence.unshared, limits, level=level)
    # A change has to show in the plain effects too.
    seen = np.sign(own.effect) * plain.effect > limits.margin
    chosen = (own.worse | own.better) & seen & ~(plain.worse | plain.better)
    worse, better = plain.worse | (chosen & own.worse), plain.better | (chosen & own.better)
    p_worse = 2.0 * np.fmin(plain.p_worse, np.where(seen, own.p_worse, np.nan))
    return replace(
        plain,
        effect=np.where(chosen, own.effect, plain.effect),
        low=np.where(chosen, own.low, plain.low),
        high=np.where(chosen, own.high, plain.high),
        p_worse=np.minimum(p_worse, 1.0),
        worse=worse,
        better=better,
        same=plain.same & ~(worse | better),
        allowed=plain.allowed & ~worse,
        unshared=chosen,
        detectable=held_by_either(evidence, plain.detectable, own.detectable),
        pairs=np.fmin(plain.pairs, own.pairs),
    )


def held_by_either(evidence: Evidence, plain: Numbers, own: Numbers) -> Numbers:
    """Return the thresholds that both tests together hold, on the log scale.

    The test without shared noise may find a smaller change; but only a plain interval below the
    threshold lets an unchanged path pass, and only a plain effect beyond the margin lets a slower
    one fail. The first of these is the harder one.

    Args:
        evidence: The plain evidence.
        plain: Thresholds that the plain test finds.
        own: Thresholds that the other test finds; NaN for paths without it.
    """
    freedom = evidence.noise.freedom
    reach = quantile(0.5 + CONFIDENCE / 2.0, freedom) + quantile(POWER, freedom)
    return np.fmin(plain, np.maximum(own, reach * evidence.error))


def _decided(evidence: Evidence, limits: Limits, *, level: float) -> Decisions:
    """Judge all paths by one contrast, with so many false alarms by noise."""
    contrast, error, freedom = evidence.contrast, evidence.error, evidence.noise.freedom
    effect, direction = contrast.effect, limits.direction
    p_more, p_less = (_significance(evidence, sign * effect, limits) for sign in (1.0, -1.0))
    either = np.minimum(2.0 * np.fmin(p_more, p_less), 1.0)
    p_worse = np.where(direction > 0, p_more, np.where(direction < 0, p_less, either))
    p_better = np.where(direction > 0, p_less, np.where(direction < 0, p_more, np.nan))
    reach = quantile(0.5 + CONFIDENCE / 2.0, freedom) * error
    low, high = effect - reach, effect + reach
    inside = (high < limits.threshold, low > -limits.threshold)
    same = inside[0] & inside[1]
    allowed = np.where(direction > 0, inside[0], np.where(direction < 0, inside[1], same))
    of_one = level / max(int(evidence.tested.sum()), 1)
    states = states_of(
        contrast, evidence.noise, limits.margin, tested=evidence.tested, level=of_one
    )
    runs = contrast.runs.astype(np.float64)
    stable = states.separations(runs) <= FALSE_ALARMS / 2.0
    # Which way round the sides separate if the path is worse.
    ways = np.where(direction == 0, np.sign(effect), direction)
    return Decisions(
        effect=effect,
        low=low,
        high=high,
        p_worse=p_worse,
        worse=(p_worse <= level) & (contrast.separation == ways) & stable & ~allowed,
        better=(p_better <= level)
        & (contrast.separation == -ways)
        & stable
        & ~np.where(direction > 0, inside[1], inside[0]),
        same=same,
        allowed=allowed,
        unshared=np.zeros(len(effect), dtype=np.bool_),
        detectable=detectable(of_one, error, freedom),
        pairs=_pairs(evidence, limits, states, asked=~(allowed & evidence.tested), level=of_one),
    )


def _significance(evidence: Evidence, effect: Numbers, limits: Limits) -> Numbers:
    """Return adjusted p-values of effects beyond the margin."""
    known = {"error": evidence.error, "freedom": evidence.noise.freedom}
    return adjusted(np.where(evidence.tested, one_sided(effect, limits.margin, **known), np.nan))


def _pairs(
    evidence: Evidence, limits: Limits, states: States, *, asked: Mask, level: float
) -> Numbers:
    """Return the pairs that decide: that find a change, or show that it is within the threshold.

    Finding one takes as many as the states of the program need, too. The effect so far counts
    against a path only beyond its own error: more pairs may show that it was noise.
    """
    found = np.full(len(asked), np.nan)
    rows = np.flatnonzero(asked & ~evidence.limited)
    if not len(rows):
        return found
    effect, direction = evidence.contrast.effect[rows], limits.direction[rows]
    runs, margin = evidence.contrast.runs[rows].astype(np.float64), limits.margin[rows]
    # Of one pair measured that often: the scale of R pairs is 1 / R.
    per_pair = evidence.error[rows] ** 2 * np.maximum(runs, 1.0)
    badness = np.where(direction == 0, np.abs(effect), effect * direction)
    distance = np.fmax(margin, badness - margin)
    freedom = evidence.noise.freedom[rows]
    needed = pairs_needed(level, distance, per_pair, freedom=freedom, runs=runs)
    choices = np.arange(2.0, MOST_PAIRS + 1.0, 2.0)
    enough = choices[states.separations(choices) <= FALSE_ALARMS / 2.0]
    finds = np.maximum(needed, enough[0] if len(enough) else np.nan)
    room = limits.threshold[rows] - np.maximum(badness - evidence.error[rows], 0.0)
    half = (1.0 - CONFIDENCE) / 2.0
    allows = pairs_needed(half, np.fmax(room, 0.0), per_pair, freedom=freedom, runs=runs)
    found[rows] = np.fmin(finds, allows)
    return found
