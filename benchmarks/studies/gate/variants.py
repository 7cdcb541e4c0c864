"""Statistics that were tried instead of the gate's, on the same numbers of processes.

All judge pairs with the margin and the family of the gate: only the noise of a path, or the test,
differs.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
from scipy import special

from benchmarks.studies.gate.machine import Drawn
from benchmarks.studies.gate.rules import Rule, judged
from proton_bench.gate.statistics.contrast import Contrast
from proton_bench.gate.statistics.family import adjusted
from proton_bench.gate.statistics.timing import FALSE_ALARMS, Limits, one_sided

__all__ = ["VARIANTS"]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_SPREADS = np.exp(np.linspace(np.log(2e-4), np.log(0.3), 60))
_STEPS = 200


def own_noise(drawn: Drawn) -> Mask:
    """A t test of each path alone."""
    found = judged(drawn)
    contrast = found.evidence.contrast
    error = np.sqrt(contrast.variance * contrast.scale)
    p_values = one_sided(
        contrast.effect, found.limits.margin, error=error, freedom=contrast.freedom
    )
    return _called(p_values, contrast, found.limits)


def without_states(drawn: Drawn) -> Mask:
    """The gate by plain effects, without its guard against states of paths."""
    found = judged(drawn)
    evidence = found.evidence
    p_values = one_sided(
        evidence.contrast.effect,
        found.limits.margin,
        error=evidence.error,
        freedom=evidence.noise.freedom,
    )
    return _called(p_values, evidence.contrast, found.limits)


def mixture_prior(drawn: Drawn) -> Mask:
    """Empirical Bayes: any distribution of spreads on a grid, by maximum likelihood (EM).

    The p-value is the mean over the posterior of the path's spread (Efron 2016, Biometrika 103:1,
    "g-modeling"). One uniform path is added, so that no spread is impossible.
    """
    found = judged(drawn)
    contrast = found.evidence.contrast
    squares = contrast.variance * contrast.freedom
    variances = _SPREADS**2
    likelihood = -0.5 * (
        squares[:, None] / variances + contrast.freedom[:, None] * np.log(variances)
    )
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    weights = np.full(len(_SPREADS), 1.0 / len(_SPREADS))
    for _ in range(_STEPS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = (posterior.sum(axis=0) + 1.0 / len(_SPREADS)) / (len(posterior) + 1.0)
    posterior = likelihood * weights
    posterior /= posterior.sum(axis=1, keepdims=True)
    errors = _SPREADS * np.sqrt(contrast.scale[:, None])
    beyond = (contrast.effect - found.limits.margin)[:, None] / errors
    p_values = (posterior * special.ndtr(-beyond)).sum(axis=1)
    return _called(p_values, contrast, found.limits)


def shrunk_by_kernel(drawn: Drawn) -> Mask:
    """Two levels of shrinkage: a path to the paths of its kernel, eight paths each here."""
    found = judged(drawn)
    contrast = found.evidence.contrast
    kernel = np.arange(len(contrast)) // 8
    count = np.bincount(kernel)[kernel]
    pooled = (np.bincount(kernel, contrast.variance) / np.bincount(kernel))[kernel]
    # The paths of a kernel say as much as the path itself, at most three times.
    of_kernel = np.minimum(count - 1.0, 3.0) * contrast.freedom
    freedom = contrast.freedom + of_kernel
    variance = (contrast.freedom * contrast.variance + of_kernel * pooled) / freedom
    variance = np.maximum(variance, contrast.variance)
    error = np.sqrt(variance * contrast.scale)
    p_values = one_sided(contrast.effect, found.limits.margin, error=error, freedom=freedom)
    return _called(p_values, contrast, found.limits)


def sign_flips(drawn: Drawn) -> Mask:
    """An exact test: the signs of the pairs, for all paths together, over the largest t (max-T).

    Without a change beyond the margin every sign of a pair is as likely, so the chance of the
    largest t over all paths is at least ``2^-R`` (Westfall, Young 1993).
    """
    found = judged(drawn)
    contrast, margin = found.evidence.contrast, found.limits.margin
    beyond = contrast.residuals + contrast.effect - margin
    runs = len(beyond)
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=runs)))

    def t_values(values: Numbers) -> Numbers:
        means = values @ beyond / runs
        variance = ((beyond**2).sum(axis=0) - runs * means**2) / (runs - 1.0)
        ratio: Numbers = means / np.sqrt(np.maximum(variance, 1e-18) / runs)
        return ratio

    largest = t_values(signs).max(axis=1)
    own = t_values(np.ones((1, runs)))[0]
    p_values = (largest[:, None] >= own * (1.0 - 1e-9)).mean(axis=0)
    called: Mask = p_values <= FALSE_ALARMS
    return called & (contrast.separation > 0)


def _called(p_values: Numbers, contrast: Contrast, limits: Limits) -> Mask:
    del limits
    found: Mask = (adjusted(p_values) <= FALSE_ALARMS) & (contrast.separation > 0)
    return found


VARIANTS: dict[str, Rule] = {
    "ours": lambda drawn: judged(drawn).worse,
    "ours without the guard against states": without_states,
    "own noise of each path": own_noise,
    "mixture prior": mixture_prior,
    "shrinkage within kernels": shrunk_by_kernel,
    "sign flips of pairs": sign_flips,
}
