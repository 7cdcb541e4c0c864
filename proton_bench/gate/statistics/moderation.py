"""Variances of paths shrunk towards a prior: the noise of the moderated t test.

::

    posterior = (d0 * s02 + d * s2) / (d0 + d)        degrees of freedom: d0 + d

(Smyth 2004, section 3), where ``d0 + d`` is at most the sum of all ``d``, as in limma. A path that
is much noisier than the others has a smaller ``d0``, down to 0, by the robust rule of Phipson, Lee,
Majewski, Alexander, Smyth 2016 (Ann. Appl. Stat. 10:946). With ``f = s2 / s02``, the probability
that a regular path has a larger one, ``tail = P(F(d, d0) > f)``, is compared with
its rank::

    d0 of the path = d0 * min(1, tail / ((rank - 1/2) / M))       rank 1: the largest f

so that a path noisier than the noisiest of M regular ones is judged by its own variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from proton_bench.gate.statistics.prior import Prior

__all__ = ["Moderated", "moderate", "prior_weights"]

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Moderated:
    """Posterior variances of paths and their degrees of freedom; NaN and 0 if unknown.

    Attributes:
        variance: Of one pair, or of one process if the sides are apart.
        freedom: Degrees of freedom of the t distribution.
    """

    variance: Numbers
    freedom: Numbers


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
    if not prior.freedom > 0.0:
        known = own_freedom > 0
        return Moderated(np.where(known, own, np.nan), own_freedom)
    weights = prior_weights(own, own_freedom, prior)
    d0 = np.where(weights < 1.0, weights * min(prior.freedom, limit), prior.freedom)
    together = d0 + own_freedom
    with np.errstate(invalid="ignore", divide="ignore"):
        mixed = (d0 * prior.variance + own_freedom * own) / together
    mixed = np.where(np.isinf(d0), prior.variance, mixed)
    return Moderated(
        np.where(together > 0, mixed, np.nan),
        np.minimum(together, np.maximum(limit, own_freedom)),
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
