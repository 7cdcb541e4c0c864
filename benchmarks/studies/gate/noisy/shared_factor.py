"""A rule that is not in the gate: without the noise that the paths of a machine share.

On a loaded machine most of the noise of a path is common to many paths: other work slows a whole
run, and paths that need the same units of the CPU alike. The residuals ``E`` of R pairs and M paths
show this factor. For path p it is taken from all other paths, each with variance 1, so that a noisy
path cannot explain itself::

    f_p    = first left singular vector of the scaled residuals without p
    load_p = E_p . f_p                   residual_p = E_p - f_p load_p
    effect_p = mean of D_p - slope load_p

``slope``, what the factor added to the means, is the median of the ratios of effects and loads,
weighted by the loads: it stays if fewer than half of the paths changed (factor-adjusted multiple
testing: Friguet, Kloareg, Causeur 2009, JASA 104:1406). A path is worse if it is by the rule of the
gate, or by these effects while its plain effect is beyond the margin too; each at half the level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from proton_bench.gate.experiment.looks import looks
from proton_bench.gate.statistics.contrast import Contrast, paired
from proton_bench.gate.statistics.evidence import Background, weigh
from proton_bench.gate.statistics.timing import Limits, decide

__all__ = ["decided", "verdict_by", "verdict_without_shared", "without_shared"]

Numbers = npt.NDArray[np.float64]


def without_shared(contrast: Contrast) -> Contrast:
    """Return the contrast of pairs without the factor that all paths share."""
    residuals = contrast.residuals
    scale = np.sqrt((residuals**2).sum(axis=0))
    scaled = residuals / np.where(scale > 0.0, scale, 1.0)
    products = scaled @ scaled.T - scaled.T[:, :, None] * scaled.T[:, None, :]
    factors = np.linalg.eigh(products)[1][:, :, -1]
    common = np.linalg.eigh(scaled @ scaled.T)[1][:, -1]
    factors *= np.where(factors @ common < 0.0, -1.0, 1.0)[:, None]
    loads = (residuals.T * factors).sum(axis=1)
    ratios = contrast.effect / np.where(loads == 0.0, np.inf, loads)
    order = np.argsort(ratios)
    weights = np.cumsum(np.abs(loads)[order])
    slope = ratios[order][np.searchsorted(weights, weights[-1] / 2.0)]
    effect = contrast.effect - slope * loads
    remaining = residuals - (factors * loads[:, None]).T
    freedom = np.maximum(contrast.freedom - 1.0, 0.0)
    corrected = remaining + effect
    return replace(
        contrast,
        effect=effect,
        variance=(remaining**2).sum(axis=0) / np.maximum(freedom, 1e-9),
        freedom=freedom,
        scale=contrast.scale * (1.0 + 1.0 / len(effect)),
        residuals=remaining,
        separation=(corrected > 0.0).all(axis=0).astype(np.int64) - (corrected < 0.0).all(axis=0),
    )


class Judged(NamedTuple):
    """What a rule says of each path at one look.

    Attributes:
        worse: Whether it got worse.
        allowed: Whether it did not.
        pairs: Pairs that would decide, NaN for too many.
    """

    worse: npt.NDArray[np.bool_]
    allowed: npt.NDArray[np.bool_]
    pairs: Numbers


def decided(contrast: Contrast, limits: Limits, part: float) -> Judged:
    """Return what the gate's own rule says, with this part of the false alarms."""
    count = len(limits.threshold)
    nothing = Background(np.zeros(count), np.zeros(count), ["time"] * count)
    found = decide(weigh(contrast, nothing, fewest_runs=4), limits, part=part)
    return Judged(found.worse, found.allowed, found.pairs)


def verdict_by(
    rule: Callable[[Contrast, Limits, float], Judged],
    sides: tuple[Numbers, Numbers, Numbers],
    *,
    threshold: float,
) -> tuple[str, npt.NDArray[np.bool_]]:
    """Return what `proton ab` says with a rule, and which paths it calls worse.

    Args:
        rule: Judges the pairs of a look, with its part of the false alarms.
        sides: Base, new side and order, as for `verdict_without_shared`.
        threshold: As a share.
    """
    base, new, order = sides
    count = base.shape[1]
    limits = Limits(np.full(count, np.log1p(threshold)), np.ones(count))
    for look in looks(len(order)):
        contrast = paired(base[: look.pairs], new[: look.pairs], order[: look.pairs])
        found = rule(contrast, limits, look.part)
        undecided = ~found.worse & ~found.allowed
        if not (undecided & (found.pairs <= 2 * len(order))).any():
            break
    told = "FAIL" if found.worse.any() else "INCONCLUSIVE" if undecided.mean() > 0.05 else "PASS"
    return told, found.worse


def verdict_without_shared(
    base: Numbers, new: Numbers, order: Numbers, *, threshold: float
) -> tuple[str, npt.NDArray[np.bool_]]:
    """Return what an experiment would say, and which paths it would call worse.

    Args:
        base: ``ln`` of the statistic, one line for each pair, one column for each path.
        new: The same of the new side.
        order: +1 for each pair in which the base ran first, -1 for the others.
        threshold: As a share.
    """

    def judge(contrast: Contrast, limits: Limits, part: float) -> Judged:
        plain, freed = (
            decided(each, limits, part / 2.0) for each in (contrast, without_shared(contrast))
        )
        worse = plain.worse | (freed.worse & (contrast.effect > limits.margin))
        return Judged(worse, plain.allowed, np.fmin(plain.pairs, freed.pairs))

    return verdict_by(judge, (base, new, order), threshold=threshold)
