"""Variances of paths shrunk towards a prior from all paths: the noise of the moderated t test.

The prior is a scaled inverse chi-square. Smyth 2004 ("Linear models and empirical Bayes methods for
assessing differential expression in microarray experiments", Stat. Appl. Genet. Mol. Biol. 3(1):3,
doi:10.2202/1544-6115.1027, sections 3 and 6.2), as limma's ``fitFDist`` does it. With ``s2`` of
``d`` degrees of freedom for each path::

    e = ln s2 - digamma(d / 2) + ln(d / 2)
    trigamma(d0 / 2) = var(e) - mean of trigamma(d / 2)
    s02 = exp(mean(e) + digamma(d0 / 2) - ln(d0 / 2))
    posterior = (d0 * s02 + d * s2) / (d0 + d)        degrees of freedom: d0 + d

If ``e`` varies no more than with equal variances, ``d0`` is infinite and ``s02`` is the mean of
all. ``d0 + d`` is at most the sum of all ``d``, as in limma. A path that is much noisier than the
others has a smaller ``d0``, down to 0, by the robust rule of Phipson, Lee, Majewski, Alexander,
Smyth 2016 (Ann. Appl. Stat. 10:946). With ``f = s2 / s02``, the probability that a regular path has
a larger one, ``tail = P(F(d, d0) > f)``, is compared with its rank::

    d0 of the path = d0 * min(1, tail / ((rank - 1/2) / M))       rank 1: the largest f

so that a path noisier than the noisiest of M regular ones is judged by its own variance. The fit
itself is not robust: a few noisy paths make ``d0`` small, which costs little power and says
truthfully that paths differ (`benchmarks/studies/README.md`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

__all__ = [
    "NO_PRIOR",
    "Moderated",
    "Prior",
    "fit_prior",
    "moderate",
    "prior_weights",
    "trigamma_inverse",
]

Numbers = npt.NDArray[np.float64]

# As limma: smaller variances are raised to this share of the median.
_SMALLEST = 1e-5


@dataclass(frozen=True, slots=True)
class Prior:
    """A variance and its weight.

    Attributes:
        variance: ``s02``, the expected variance; NaN if unknown.
        freedom: ``d0``, its degrees of freedom; may be infinite.
    """

    variance: float
    freedom: float


NO_PRIOR = Prior(math.nan, 0.0)


def trigamma_inverse(value: float) -> float:
    """Return ``x`` with ``trigamma(x) = value``: Newton's method on ``1 / trigamma``.

    The reciprocal is convex and nearly straight, so that the steps fall without overshooting
    (Smyth 2004, appendix).
    """
    if not value > 0.0:
        return math.nan
    if value > 1e7:
        return 1.0 / math.sqrt(value)
    if value < 1e-6:
        return 1.0 / value
    x = 0.5 + 1.0 / value
    for _ in range(50):
        here = float(special.polygamma(1, x))
        step = here * (1.0 - here / value) / float(special.polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x


def fit_prior(variances: Numbers, freedom: Numbers, *, shared: float = 0.0) -> Prior:
    """Return the prior that these sample variances suggest.

    Args:
        variances: Of each path; those that are NaN or without freedom are left out.
        freedom: Degrees of freedom of each.
        shared: Mean square of the correlations of the paths' noise. Their variances then vary
            together and differ less than independent ones, by this share.
    """
    usable = np.isfinite(variances) & np.isfinite(freedom) & (freedom > 1e-15)
    found, d = np.maximum(variances[usable], 0.0), freedom[usable]
    if len(found) == 0:
        return NO_PRIOR
    if len(found) == 1:
        return Prior(float(found[0]), 0.0)
    typical = float(np.median(found)) or float(found.max())
    if typical == 0.0:
        return NO_PRIOR
    found = np.maximum(found, _SMALLEST * typical)
    e = np.log(found) - special.digamma(d / 2.0) + np.log(d / 2.0)
    by_chance = (1.0 - shared) * float(special.polygamma(1, d / 2.0).mean())
    excess = float(e.var(ddof=1)) - by_chance
    if not excess > 0.0:
        return Prior(float(found.mean()), math.inf)
    prior = 2.0 * trigamma_inverse(excess)
    offset = float(special.digamma(prior / 2.0)) - math.log(prior / 2.0)
    return Prior(math.exp(float(e.mean()) + offset), prior)


@dataclass(frozen=True, slots=True, eq=False)
class Moderated:
    """Posterior variances of paths and their degrees of freedom; NaN and 0 if unknown.

    Attributes:
        variance: Of one pair, or of one process if the sides are apart.
        freedom: Degrees of freedom of the t distribution.
        prior_variance: Expected variance of a path without own data.
        prior_freedom: Its degrees of freedom; 0 if it is unknown.
        most_freedom: Most degrees of freedom of a path.
    """

    variance: Numbers
    freedom: Numbers
    prior_variance: Numbers
    prior_freedom: Numbers
    most_freedom: Numbers


def moderate(variances: Numbers, freedom: Numbers, prior: Prior, *, limit: float) -> Moderated:
    """Return variances shrunk towards a prior.

    Args:
        variances: Sample variances; NaN for none.
        freedom: Their degrees of freedom.
        prior: The prior.
        limit: Most degrees of freedom of a path: those of all data.
    """
    own_freedom = np.where(np.isfinite(variances), freedom, 0.0)
    own = np.where(own_freedom > 0, variances, 0.0)
    about = (
        np.full(len(own), prior.variance),
        np.full(len(own), prior.freedom),
        np.maximum(limit, own_freedom),
    )
    if not prior.freedom > 0.0:
        known = own_freedom > 0
        return Moderated(np.where(known, own, np.nan), own_freedom, *about)
    weights = prior_weights(own, own_freedom, prior)
    d0 = np.where(weights < 1.0, weights * min(prior.freedom, limit), prior.freedom)
    together = d0 + own_freedom
    with np.errstate(invalid="ignore", divide="ignore"):
        mixed = (d0 * prior.variance + own_freedom * own) / together
    mixed = np.where(np.isinf(d0), prior.variance, mixed)
    return Moderated(
        np.where(together > 0, mixed, np.nan),
        np.minimum(together, np.maximum(limit, own_freedom)),
        *about,
    )


def prior_weights(variances: Numbers, freedom: Numbers, prior: Prior) -> Numbers:
    """Return for each path how much of the prior it may use, 0 to 1."""
    weights = np.ones(len(variances))
    rows = np.flatnonzero(freedom > 0)
    if not len(rows) or not prior.variance > 0.0:
        return weights
    ratio = variances[rows] / prior.variance
    d = freedom[rows]
    if np.isinf(prior.freedom):
        tails = special.chdtrc(d, ratio * d)
    else:
        tails = special.fdtrc(d, prior.freedom, ratio)
    order = np.argsort(tails, kind="stable")
    expected = (np.arange(1, len(rows) + 1) - 0.5) / len(rows)
    found = np.minimum(tails[order] / expected, 1.0)
    weights[rows[order]] = np.maximum.accumulate(found)
    return weights
