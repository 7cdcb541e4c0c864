"""The prior of a path's variance from the variances of all paths: scaled inverse chi-square.

Smyth 2004 ("Linear models and empirical Bayes methods for assessing differential expression in
microarray experiments", Stat. Appl. Genet. Mol. Biol. 3(1):3, doi:10.2202/1544-6115.1027, section
6.2), as limma's ``fitFDist`` does it. With ``s2`` of ``d`` degrees of freedom for each path::

    e = ln s2 - digamma(d / 2) + ln(d / 2)
    trigamma(d0 / 2) = var(e) - mean of trigamma(d / 2)
    s02 = exp(mean(e) + digamma(d0 / 2) - ln(d0 / 2))

If ``e`` varies no more than with equal variances, ``d0`` is infinite and ``s02`` is the mean of
all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

__all__ = ["NO_PRIOR", "Prior", "fit_prior", "trigamma_inverse"]

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
