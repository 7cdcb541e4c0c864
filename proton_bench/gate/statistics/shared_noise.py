"""Estimates the noise that paths share, and so how much many paths know together.

A machine that is busy for a while slows all paths of a process alike. Their variances vary
together, and many paths say no more about the noise than few. With ``r`` the correlation of the
residuals of two paths, their variances correlate by ``r^2`` (for normal residuals), and the mean of
the variances of ``M`` paths of ``d`` degrees of freedom each has, after Satterthwaite::

    d * M_eff degrees of freedom        1 / M_eff = 1 / M + (1 - 1 / M) * mean of r^2

A sample correlation of few runs is never 0: with ``d`` degrees of freedom its square is expected to
be (Muirhead 1982, "Aspects of Multivariate Statistical Theory", section 5.1)::

    E[r_hat^2] = 1 - (d - 1) / d * (1 - r^2) * 2F1(1, 1; d / 2 + 1; r^2)

which is ``1 / d`` for paths that have nothing in common. `shared_part` solves this for ``r^2``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

__all__ = ["LEAST", "effective_freedom", "shared_part"]

Numbers = npt.NDArray[np.float64]

# Few runs say little about what paths share: it may have been quiet in these runs alone. With at
# least this much, no path has more than twice its own degrees of freedom.
LEAST = 0.5
_STEPS = 40


def shared_part(residuals: Numbers, freedom: Numbers) -> float:
    """Return the mean square of the correlations of paths, without what chance gives; 0 to 1.

    Args:
        residuals: One line for each pair or process, one column for each path; NaN for missing.
            Paths with fewer values than others are left out.
        freedom: Degrees of freedom of each column.

    Returns:
        0 for fewer than two paths, or one degree of freedom.
    """
    whole = np.isfinite(residuals).all(axis=0) & (freedom > 1.0)
    chosen = residuals[:, whole]
    norms = np.sqrt((chosen**2).sum(axis=0))
    chosen, norms = chosen[:, norms > 0.0], norms[norms > 0.0]
    paths = len(norms)
    if paths < 2:
        return 0.0
    unit = chosen / norms
    # All squared correlations: unit @ unit.T has the sum of unit.T @ unit and is smaller.
    squares = float(((unit @ unit.T) ** 2).sum())
    mean = (squares - paths) / (paths * (paths - 1.0))
    return _without_chance(mean, float(freedom[whole].min()))


def effective_freedom(freedom: Numbers, shared: float) -> float:
    """Return the degrees of freedom that all paths have together.

    Args:
        freedom: Of each path; 0 if unknown.
        shared: The mean square of their correlations.
    """
    paths = int((freedom > 0).sum())
    if not paths:
        return 0.0
    return float(freedom.sum()) / (1.0 + (paths - 1.0) * shared)


def _without_chance(mean: float, freedom: float) -> float:
    """Return the squared correlation that makes this mean of squared sample correlations."""
    low, high = 0.0, 1.0
    if mean <= 1.0 / freedom:
        return low
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        expected = 1.0 - (freedom - 1.0) / freedom * (1.0 - middle) * float(
            special.hyp2f1(1.0, 1.0, freedom / 2.0 + 1.0, middle)
        )
        low, high = (middle, high) if expected < mean else (low, middle)
    return (low + high) / 2.0
