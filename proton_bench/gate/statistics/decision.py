"""The one rule of the gate: which checks got slower for certain, and which certainly did not.

With ``D_r`` the new minus the base value of pair r of R on the log scale, ``o_r = +1`` if the base
ran first and -1 if the new side did, and the margin ``m``, which is half of the threshold::

    tau   = median over the paths of (mean of D | o = +1  -  mean of D | o = -1) / 2, at most m / 2
    D'_r  = D_r - tau o_r             effect = mean of D'        s = standard deviation of D'
    error = max(s, s_typical) sqrt(1 / R)         s_typical: first quartile of s over the paths
    T     = (effect - m) / error                  limit = t[R - 1, 1 - 0.0005 / N]

A check got slower if all of these hold:

- ``T > limit``. N counts the checks whose noise alone could pass the margin: ``s`` above twice the
  typical one, and ``3 s / sqrt(R) > m``; at least 5. With six pairs the limit is about 10.
- The new side was slower in every pair, as measured.
- States of paths would separate all pairs by chance less often than 0.0005 (`_States`).
- The 95 % interval, ``effect +- t[R - 1, 0.975] error``, reaches the threshold.

It is the same, or faster, if the interval lies below the threshold, and undecided otherwise. That
it got faster is tested by the mirror image, without what keeps a regression from being certain.
``tau`` is the cost of running second, one number for all paths of a metric because the machine
causes it. It explains at most half of a margin: without a limit, a path that is slow
only where it ran second would have an effect and no noise.

A few pairs say little about the noise of a single path. So none is taken to be quieter than the
typical path of its metric, and the limit is wide enough for a path that is noisier: the chance that
five independent pairs of normal noise without a change pass the limit is 0.0005 / N for each.

Paths are tested a second time without what they share, by ``D_r`` minus its median over the paths.
That finds changes on machines that are busy for a while. What most paths share may be a change too,
so there is no second test if the mean of the medians is significant (t test at 5 %), and the plain
effect has to be beyond the margin as well.

If the base was recorded at another time, the sides are two groups of common variance: 1 / R is
``1 / n + 1 / m``, and there are ``n + m - 2`` degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from proton_bench.model.arrays import Floats, Integers, Mask

CONFIDENCE = 0.95
# Share of gates without a change beyond the margins that may fail: half by noise, half by states.
FALSE_ALARMS = 0.001
POWER = 0.9
PAIRS_LIMIT = 200
# The fewest that can make a path fail, see `_States`.
FEWEST_PAIRS_TO_FAIL = 6
# The median of fewer says too little about what paths share.
FEWEST_PATHS = 8
# A path is typically as noisy as the first quartile, and noisier from so many times that on.
_TYPICAL, _NOISIER = 0.25, 2.0
# Noise reaches as far as so many standard errors; checks that share the false alarms at least.
_FAR, _FEWEST_NOISY = 3.0, 5
# Sums change with a single path in them, so that they share no noise that is not theirs.
_SUMS = frozenset({"total", "wall"})
# Statistics that a few slow launches change look like states of the path.
_STEADY = frozenset({"median", "min", *_SUMS})
# One path of two equally likely states looks slower in a pair with this chance: (1/2)^2.
_MOST_STATES = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Limits of each check.

    Attributes:
        threshold: Changes from this on count, on the log scale.
        direction: +1 if more is worse, -1 if less is.
    """

    threshold: Floats
    direction: Floats

    @property
    def margin(self) -> Floats:
        """Changes up to this do not matter, on the log scale."""
        found: Floats = self.threshold / 2.0
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """What the values of the runs do not say.

    Attributes:
        floor: Least variance of each check, from the timer's tick.
        resolution: Least variance of each effect, for any number of runs.
        metrics: Metric of each check; noise is comparable only within a metric.
    """

    floor: Floats
    resolution: Floats
    metrics: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Effects of each check and their certainty, on the log scale.

    Attributes:
        effect: New minus base; NaN without a value on each side.
        spread: Own standard deviation of one pair, or of one process if the sides are apart.
        typical: That of a typical path of the metric, the least that is taken for any.
        freedom: Degrees of freedom; 0 if the spread is unknown.
        scale: ``Var effect = max(spread, typical)^2 * scale``.
        runs: Pairs, or processes of the smaller side.
        residuals: One line for each pair, or process; NaN for missing.
        first_new: Number of lines of the base, 0 for pairs.
        separation: +1 if the new side was slower in every pair, or in every process if the sides
            are apart; -1 if it was always faster; else 0.
        order_effect: Cost of running second, however much of it counts; NaN if unknown.
        resolution: Least variance of each effect, for any number of runs.
        tested: Whether the check has enough runs; others are neither worse nor better.
        steady: Whether states of the path are looked for in this check.
        unshared: The same without what paths share; None if the sides are apart or paths are few.
        error: Standard error of each effect.
        limited: Whether more runs do not make the effect more certain.
    """

    effect: Floats
    spread: Floats
    typical: Floats
    freedom: Floats
    scale: Floats
    runs: Integers
    residuals: Floats
    first_new: int
    separation: Integers
    order_effect: Floats
    resolution: Floats
    tested: Mask
    steady: Mask
    unshared: Evidence | None = None
    error: Floats = field(init=False)
    limited: Mask = field(init=False)

    def __post_init__(self) -> None:
        variance = np.fmax(self.spread, self.typical) ** 2 * self.scale
        object.__setattr__(self, "error", np.sqrt(np.maximum(variance, self.resolution)))
        object.__setattr__(self, "limited", self.resolution > variance)

    def level(self, margin: Floats) -> float:
        """Return the p-value from which a check changed: its part of the false alarms by noise."""
        with np.errstate(invalid="ignore"):
            noisy = self.tested & (self.spread > _NOISIER * self.typical)
            noisy &= _FAR * self.spread * np.sqrt(self.scale) > margin
        return FALSE_ALARMS / 2.0 / max(int(noisy.sum()), _FEWEST_NOISY)


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """One line for each check; everything is on the log scale.

    Attributes:
        effect: The change.
        low: Lower end of its 95 % interval.
        high: Upper end.
        p_worse: P-value of a change for the worse beyond the margin, for all checks together.
        worse: Whether the check got worse.
        better: Whether it got better.
        allowed: Whether the interval lies below the threshold in the direction that counts.
        unshared: Whether the effect is without the noise that paths share, which hides the change.
        findable: Smallest change for the worse that is found with `POWER`; infinite if states of
            paths could look like any change.
        pairs: Pairs that find the threshold, or the change so far if it is larger; NaN for too
            many, or if the check is allowed.
    """

    effect: Floats
    low: Floats
    high: Floats
    p_worse: Floats
    worse: Mask
    better: Mask
    allowed: Mask
    unshared: Mask
    findable: Floats
    pairs: Floats


# -- from values to evidence ---------------------------------------------------------------------
def weigh(
    base: Floats,
    new: Floats,
    order: Sequence[float],
    *,
    background: Background,
    margin: Floats,
    fewest_runs: int,
) -> Evidence:
    """Return the effects of all checks.

    Args:
        base: ``ln`` of the values, one line for each run, one column for each check; NaN for
            missing.
        new: The same of the new side.
        order: +1 for each pair in which the base ran first, -1 for others; empty if the sides are
            apart.
        background: What the values do not say.
        margin: Changes of each check up to this do not matter.
        fewest_runs: Processes that a side needs.
    """
    if not len(order):
        return _apart(base, new, background, fewest_runs=fewest_runs)
    signs = np.asarray(order, dtype=np.float64)
    plain = _paired(new - base, signs, background, margin=margin, fewest_runs=fewest_runs)
    shared, whole = _shared(new - base, plain, background.metrics)
    if not whole.any():
        return plain
    differences = np.where(whole, new - base - shared, np.nan)
    own = _paired(differences, signs, background, margin=margin, fewest_runs=fewest_runs)
    return replace(plain, unshared=own)


def _paired(
    differences: Floats,
    signs: Floats,
    background: Background,
    *,
    margin: Floats,
    fewest_runs: int,
) -> Evidence:
    known = np.isfinite(differences)
    total = known.sum(axis=0).astype(np.float64)
    sides = [known & (signs == sign)[:, None] for sign in (1.0, -1.0)]
    tau, paths = _order_effects(differences, sides, background.metrics)
    taken = np.nan_to_num(np.clip(tau, -margin / 2.0, margin / 2.0))
    corrected = np.where(known, differences - taken * signs[:, None], np.nan)
    effect = _mean(corrected, known)
    # The order effect takes a part of a degree of freedom, and widens effects of uneven orders.
    of_tau = np.where(np.isfinite(tau), 1.0 / np.maximum(paths, 1.0), 0.0)
    uneven = (np.where(known, signs[:, None], 0.0).sum(axis=0) / np.maximum(total, 1.0)) ** 2
    ends = sum(1.0 / np.maximum(side.sum(axis=0), 1.0) for side in sides)
    return _evidence(
        effect,
        corrected - effect,
        background,
        freedom=np.maximum(total - 1.0 - of_tau, 0.0),
        scale=1.0 / np.maximum(total, 1.0) + of_tau * uneven * ends / 4.0,
        runs=total,
        first_new=0,
        separation=_signs_of(np.where(known, differences, np.nan)),
        order_effect=tau,
        fewest_runs=fewest_runs,
    )


def _apart(base: Floats, new: Floats, background: Background, *, fewest_runs: int) -> Evidence:
    sides = (base, new)
    known = [np.isfinite(side) for side in sides]
    counts = np.stack([each.sum(axis=0) for each in known]).astype(np.float64)
    means = [_mean(side, each) for side, each in zip(sides, known, strict=True)]
    residuals = [side - mean for side, mean in zip(sides, means, strict=True)]
    lows, highs = (
        [found(np.where(each, side, fill), axis=0) for side, each in zip(sides, known, strict=True)]
        for found, fill in ((np.min, np.inf), (np.max, -np.inf))
    )
    apart_by = (highs[0] < lows[1]).astype(np.int64) - (highs[1] < lows[0])
    fewest = counts.min(axis=0)
    return _evidence(
        means[1] - means[0],
        np.where(np.concatenate(known), np.concatenate(residuals), np.nan),
        background,
        freedom=np.maximum(counts.sum(axis=0) - 2.0, 0.0),
        scale=(1.0 / np.maximum(counts, 1.0)).sum(axis=0),
        runs=fewest,
        first_new=len(base),
        separation=np.where(fewest > 0, apart_by, 0),
        order_effect=np.full(len(fewest), np.nan),
        fewest_runs=fewest_runs,
    )


def _evidence(
    effect: Floats,
    residuals: Floats,
    background: Background,
    *,
    freedom: Floats,
    runs: Floats,
    fewest_runs: int,
    **rest: Any,
) -> Evidence:
    squares = np.nansum(residuals**2, axis=0) / np.where(freedom > 0.0, freedom, 1.0)
    spread = np.sqrt(np.where(freedom > 0.0, np.maximum(squares, background.floor), np.nan))
    known = np.isfinite(effect) & np.isfinite(spread)
    tested = known & (runs >= fewest_runs)
    typical = np.full(len(effect), np.nan)
    for rows in _rows_by_metric(background.metrics).values():
        if (own := spread[rows][tested[rows]]).size:
            typical[rows] = np.quantile(own, _TYPICAL, method="lower")
    return Evidence(
        effect=effect,
        spread=spread,
        typical=typical,
        freedom=np.where(known, freedom, 0.0),
        runs=runs.astype(np.int64),
        residuals=residuals,
        resolution=background.resolution,
        tested=tested,
        steady=np.isin(background.metrics, list(_STEADY)),
        **rest,
    )


def _order_effects(
    differences: Floats, sides: Sequence[Mask], metrics: Sequence[str]
) -> tuple[Floats, Floats]:
    """Return the order effect of each check's metric, NaN if unknown, and the paths it is from."""
    first, second = (_mean(differences, side) for side in sides)
    own = (first - second) / 2.0
    tau, paths = np.full(len(own), np.nan), np.zeros(len(own))
    for rows in _rows_by_metric(metrics).values():
        chosen = rows[np.isfinite(own[rows])]
        if len(chosen):
            tau[rows], paths[rows] = np.median(own[chosen]), len(chosen)
    return tau, paths


def _shared(differences: Floats, plain: Evidence, metrics: Sequence[str]) -> tuple[Floats, Mask]:
    """Return what the paths of each metric share in each pair, and the checks it is taken from."""
    shared, chosen = np.zeros_like(differences), np.zeros(len(metrics), dtype=np.bool_)
    for metric, rows in _rows_by_metric(metrics).items():
        whole = rows[plain.tested[rows] & np.isfinite(differences[:, rows]).all(axis=0)]
        if metric in _SUMS or len(whole) < FEWEST_PATHS:
            continue
        middles = np.median(differences[:, whole], axis=1)
        error, freedom = float(np.std(middles, ddof=1)), len(middles) - 1.0
        reach = error * float(special.stdtrit(freedom, 0.5 + CONFIDENCE / 2.0))
        # A mean beyond its noise may be a change of most paths.
        if abs(float(middles.mean())) * math.sqrt(len(middles)) <= reach:
            shared[:, whole], chosen[whole] = middles[:, None], True
    return shared, chosen


def _rows_by_metric(metrics: Sequence[str]) -> dict[str, npt.NDArray[np.intp]]:
    """Return the indexes of the checks of each metric."""
    found: dict[str, list[int]] = {}
    for at, metric in enumerate(metrics):
        found.setdefault(metric, []).append(at)
    return {metric: np.array(rows, dtype=np.intp) for metric, rows in found.items()}


def _signs_of(differences: Floats) -> Integers:
    """Return the sign that all known differences of each check have, else 0."""
    known = np.isfinite(differences)
    ways = [(~known | (sign * differences > 0.0)).all(axis=0) for sign in (1.0, -1.0)]
    return np.where(known.any(axis=0), ways[0].astype(np.int64) - ways[1], 0)


def _mean(values: Floats, chosen: Mask) -> Floats:
    counts = chosen.sum(axis=0)
    sums: Floats = np.where(chosen, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


# -- from evidence to decisions ------------------------------------------------------------------
def decide(evidence: Evidence, limits: Limits, *, part: float = 1.0) -> Decisions:
    """Decide all checks together.

    Args:
        evidence: The measured effects.
        limits: The limits.
        part: Share of the false alarms that noise may cause in this look, if there are several.
    """
    plain = _decided(evidence, limits, part=part)
    if evidence.unshared is None:
        return plain
    own = _decided(evidence.unshared, limits, part=part)
    with np.errstate(invalid="ignore"):
        beyond = np.sign(own.effect) * plain.effect > limits.margin
    chosen = (own.worse | own.better) & beyond & ~(plain.worse | plain.better)
    worse, better = plain.worse | (chosen & own.worse), plain.better | (chosen & own.better)
    # A smaller change is found if its plain effect is beyond the margin too.
    seen = limits.margin + quantile(POWER, evidence.freedom) * evidence.error
    return replace(
        plain,
        effect=np.where(chosen, own.effect, plain.effect),
        low=np.where(chosen, own.low, plain.low),
        high=np.where(chosen, own.high, plain.high),
        p_worse=np.fmin(plain.p_worse, np.where(beyond, own.p_worse, np.nan)),
        worse=worse,
        better=better,
        allowed=plain.allowed & ~worse,
        unshared=chosen,
        findable=np.fmin(plain.findable, np.maximum(own.findable, seen)),
        pairs=np.fmin(plain.pairs, own.pairs),
    )


def _decided(evidence: Evidence, limits: Limits, *, part: float) -> Decisions:
    """Decide by one kind of effects."""
    effect, freedom = evidence.effect, evidence.freedom
    level = part * evidence.level(limits.margin)
    reach = quantile(0.5 + CONFIDENCE / 2.0, freedom) * evidence.error
    worsening, bettering = effect * limits.direction, -effect * limits.direction
    p_worse, p_better = (
        one_sided(change, limits.margin, error=evidence.error, freedom=freedom)
        for change in (worsening, bettering)
    )
    allowed, unimproved = (change + reach < limits.threshold for change in (worsening, bettering))
    states = _States(evidence, limits.margin, level)
    stable = states.separations(evidence.runs.astype(np.float64)) <= FALSE_ALARMS / 2.0
    separation = evidence.separation * limits.direction
    certain = evidence.tested & stable
    inner = limits.margin + _reach(level, freedom) * evidence.error
    return Decisions(
        effect=effect,
        low=effect - reach,
        high=effect + reach,
        p_worse=np.minimum(p_worse * FALSE_ALARMS / 2.0 / evidence.level(limits.margin), 1.0),
        worse=certain & (p_worse <= level) & (separation > 0) & ~allowed,
        better=certain & (p_better <= level) & (separation < 0) & ~unimproved,
        allowed=allowed,
        unshared=np.zeros(len(effect), dtype=np.bool_),
        findable=np.where(
            evidence.tested, np.where(stable, np.fmax(inner, limits.threshold), np.inf), np.nan
        ),
        pairs=_pairs(evidence, limits, states, asked=~(allowed & evidence.tested), level=level),
    )


def one_sided(effect: Floats, margin: Floats, *, error: Floats, freedom: Floats) -> Floats:
    """Return ``P(t > (effect - margin) / error)``; NaN if unknown.

    With an error of 0 a difference is certain, and no difference undecided.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(effect == margin, 0.0, (effect - margin) / error)
    found = special.stdtr(np.where(freedom > 0, freedom, 1.0), -ratio)
    return np.where((freedom > 0) & np.isfinite(effect) & np.isfinite(error), found, np.nan)


def changed_for_certain(evidence: Evidence, effect: Floats, limits: Limits) -> Mask:
    """Return which tested checks changed significantly beyond the margin, in either direction.

    Args:
        evidence: Errors, the directions of the changes, and which checks are tested.
        effect: Remaining effects after another explanation of a part of them.
        limits: The limits.
    """
    signs = np.where(evidence.effect > 0.0, 1.0, -1.0)
    known = {"error": evidence.error, "freedom": evidence.freedom}
    found: Mask = one_sided(signs * effect, limits.margin, **known) <= evidence.level(limits.margin)
    return found & evidence.tested


class _States:
    """Paths that have several states, and how often states alone would separate the sides.

    Memory layout, a choice of a library or another process can make a path slower in some processes
    and not in others. If every new process happens to be in the slow state and no base process is,
    this is a slowdown in every pair, without any noise. No test on the path itself can tell it from
    a change; but other pairs of the same path, and other paths, show that states exist.

    A pair is in another state if it is further from the middle pair of its path than the margin.
    With ``J`` such pairs of ``R``, a pair has the base in the fast and the new side in the slow
    state with the chance ``c = min(J / (2 R), 1 / 4)``, because it is ``p (1 - p)`` for a slow
    state of chance ``p``; all R pairs have it with ``c^R``. If the sides are apart, ``J`` of
    ``n + m`` processes are further than the margin from the middle of their side, and
    ``p = J / (n + m)``. Only paths count that would be significant with all pairs in the other
    state: wide noise is not a state. ``4^-R`` is added for a path of two equally likely states that
    did not show them, so five pairs or fewer can never make a path fail.

    Because further pairs can only end a separation, the bound of one look holds for all later ones.
    States of a statistic of slow launches say nothing about others, and keep only this one from
    failing.
    """

    def __init__(self, evidence: Evidence, margin: Floats, level: float) -> None:
        self._steady = evidence.steady
        self._chances = np.zeros(len(margin))
        rows = np.flatnonzero(evidence.tested)
        for upper in (False, True):
            found = _chances(evidence, rows, margin, level=level, upper=upper)
            self._chances[rows] = np.maximum(self._chances[rows], found)

    def separations(self, runs: Floats) -> Floats:
        """Return for each check the expected number of false separations after its pairs.

        Args:
            runs: Pairs of each check, or of all in each line.
        """
        steady = self._chances[self._steady & (self._chances > 0.0)]
        found = _MOST_STATES**runs + (steady ** runs[..., None]).sum(axis=-1)
        own: Floats = np.where(self._steady, found, found + self._chances**runs)
        return own

    def pairs(self) -> Floats:
        """Return for each check the fewest pairs that states rarely separate, NaN for none."""
        counts = np.arange(2.0, PAIRS_LIMIT + 1.0, 2.0)[:, None]
        return _first(self.separations(counts) <= FALSE_ALARMS / 2.0, counts)


def _chances(
    evidence: Evidence, rows: npt.NDArray[np.intp], margin: Floats, *, level: float, upper: bool
) -> Floats:
    """Return for each row the chance that one pair looks slower by states, 0 without states."""
    away, margin = np.abs(_from_middles(evidence, rows, upper=upper)), margin[rows]
    known = np.isfinite(away)
    away = np.where(known, away, 0.0)
    other = away > margin
    count, total = other.sum(axis=0), known.sum(axis=0)
    jump = np.where(other, away, 0.0).sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(other, away - jump, away) ** 2).sum(axis=0)
    freedom = np.maximum(total - (3.0 if evidence.first_new else 2.0), 1.0)
    spread = np.fmax(np.sqrt(squares / freedom), evidence.typical[rows])
    error = spread * np.sqrt(evidence.scale[rows])
    share = count / np.maximum(total, 1)
    one = share * (1.0 - share) if evidence.first_new else share / 2.0
    one = np.where(share > 0.5, _MOST_STATES, np.minimum(one, _MOST_STATES))
    certain = one_sided(jump, margin, error=error, freedom=freedom) <= level
    return np.where((count > 0) & certain, one, 0.0)


def _from_middles(evidence: Evidence, rows: npt.NDArray[np.intp], *, upper: bool) -> Floats:
    """Return differences from the middle pair of each path, or process of each side."""
    residuals, middle = evidence.residuals[:, rows], evidence.first_new
    parts = (residuals[:middle], residuals[middle:])
    return np.concatenate([part - _middle(part, upper=upper) for part in parts if len(part)])


def _middle(values: Floats, *, upper: bool) -> Floats:
    """Return the lower or upper median of each column without NaN; NaN if there is no number."""
    known = np.isfinite(values).sum(axis=0)
    place = known // 2 if upper else np.maximum(known - 1, 0) // 2
    found: Floats = np.sort(values, axis=0)[place, np.arange(values.shape[1])]  # NaN last
    return found


# -- power ---------------------------------------------------------------------------------------
def quantile(probability: float, freedom: Floats) -> Floats:
    """Return quantiles of Student's t; NaN without degrees of freedom."""
    found = special.stdtrit(np.where(freedom > 0, freedom, 1.0), probability)
    return np.where(freedom > 0, found, np.nan)


def _reach(level: float, freedom: Floats) -> Floats:
    """Return how many standard errors beyond the margin are found with `POWER`."""
    return quantile(1.0 - level, freedom) + quantile(POWER, freedom)


def detectable_with(pairs: int, evidence: Evidence, margin: Floats) -> Floats:
    """Return the thresholds that so many pairs would hold with the noise of those at hand.

    Args:
        pairs: Of the next gate, or its runs on each side.
        evidence: Of the runs at hand.
        margin: Changes of each check up to this do not matter.

    Returns:
        Logarithms, one for each check; infinite if its noise is unknown.
    """
    level, later = evidence.level(margin), _after(pairs, evidence)
    found = 2.0 * _reach(level, later.freedom) * later.error
    if evidence.unshared is not None:
        level, own = evidence.unshared.level(margin), _after(pairs, evidence.unshared)
        found = _held_by_either(later, found, 2.0 * _reach(level, own.freedom) * own.error)
    return np.where(evidence.tested & np.isfinite(found), found, np.inf)


def _after(pairs: int, evidence: Evidence) -> Evidence:
    """Return what the evidence would be after so many pairs with the noise of those at hand."""
    runs = np.maximum(evidence.runs, 2).astype(np.float64)
    return replace(
        evidence,
        scale=evidence.scale * runs / pairs,
        freedom=evidence.freedom * (pairs - 1.0) / (runs - 1.0),
    )


def _held_by_either(evidence: Evidence, plain: Floats, own: Floats) -> Floats:
    """Return the thresholds that both tests together hold.

    Only a plain interval below the threshold lets an unchanged path pass, and only a plain effect
    beyond the margin lets a slower one fail. The first of these is the harder one.
    """
    freedom = evidence.freedom
    reach = quantile(0.5 + CONFIDENCE / 2.0, freedom) + quantile(POWER, freedom)
    return np.fmin(plain, np.maximum(own, reach * evidence.error))


def _pairs(
    evidence: Evidence, limits: Limits, states: _States, *, asked: Mask, level: float
) -> Floats:
    """Return the pairs that decide: that find a change, or show that it is within the threshold.

    Finding one takes as many as the states of the program need, too. The effect so far counts
    against a path only beyond its own error: more pairs may show that it was noise.
    """
    found = np.full(len(asked), np.nan)
    rows = np.flatnonzero(asked & ~evidence.limited)
    if not len(rows):
        return found
    runs, margin = evidence.runs[rows].astype(np.float64), limits.margin[rows]
    # Of one pair measured that often: the scale of R pairs is 1 / R.
    deviation = evidence.error[rows] * np.sqrt(np.maximum(runs, 1.0))
    badness = evidence.effect[rows] * limits.direction[rows]
    known = {"freedom": evidence.freedom[rows], "runs": runs}
    likely = np.maximum(badness - evidence.error[rows], 0.0)
    needed = _pairs_for(level, np.fmax(margin, likely - margin), deviation, **known)
    finds = np.maximum(needed, states.pairs()[rows])
    room = limits.threshold[rows] - likely
    allows = _pairs_for((1.0 - CONFIDENCE) / 2.0, np.fmax(room, 0.0), deviation, **known)
    found[rows] = np.fmin(finds, allows)
    return found


def _pairs_for(
    level: float, distance: Floats, deviation: Floats, *, freedom: Floats, runs: Floats
) -> Floats:
    """Return how many pairs see a distance with `POWER`, even numbers from 4 on; NaN for too many.

    ``((t[1 - level] + t[0.9]) deviation / distance)^2`` (the usual sample size, e.g. Chow, Shao,
    Wang 2008, "Sample Size Calculations in Clinical Research", 3.2), with the t distribution that
    this number of pairs has.
    """
    # Few degrees of freedom differ, and their quantiles take longer than all the rest.
    of_one, which = np.unique(freedom / np.maximum(runs - 1.0, 1.0), return_inverse=True)
    pairs = np.arange(4.0, PAIRS_LIMIT + 1.0, 2.0)[:, None]
    reach = _reach(level, of_one * (pairs - 1.0))[:, which]
    return _first(reach * deviation / np.sqrt(pairs) <= distance, pairs)


def _first(holds: Mask, pairs: Floats) -> Floats:
    """Return for each column the pairs of the first line that holds, NaN for none."""
    return np.where(holds.any(axis=0), pairs[np.argmax(holds, axis=0), 0], np.nan)
