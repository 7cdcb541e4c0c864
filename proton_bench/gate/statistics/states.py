"""Paths that have several states, and how often states alone would separate the sides.

Memory layout, a choice of a library or another process can make a path slower in some processes
and not in others. If every new process happens to be in the slow state and no base process is, this
is a slowdown in every pair, without any noise. No test on the path itself can tell it from a
change; but other pairs of the same path, and other paths, show that states exist.

A pair is in another state if it is further from the middle pair of its path than the margin. With
``J`` such pairs of ``R``, a pair has the base in the fast and the new side in the slow state with
the chance (at most 1/4, because it is ``p (1 - p)`` for a slow state of chance ``p``)::

    c = min(J / (2 R), 1 / 4)          all R pairs: c^R

If the sides are apart, ``J`` of ``n + m`` processes are further than the margin from the middle of
their side, and ``p = J / (n + m)``, ``c = p (1 - p)``. Only paths count that would be significant
with all pairs in the other state: wide noise is not a state, and its own variance guards it. The
expected number of false separations is::

    4^-R + sum over such paths of c^R

where the first term stands for one path of two equally likely states that did not show them. So
five pairs or fewer can never make a path fail at half of 0.1 %, and in a program with many states
more pairs are needed. Because further pairs can only end a separation, the bound of one look holds
for all later looks too.

Pairs separate by what was measured, with the order effect. Without it they would all be alike if
the new side is slow wherever it ran second, or first, and both sides share a state in all other
pairs: a rate of ``2 (1/2)^(R/2) (1/4)^(R/2)``. As measured, the noise of these others must also
have one sign, one of ``2^(R/2)`` cases: 0.05 % with six pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from proton_bench.gate.statistics.contrast import Contrast
from proton_bench.gate.statistics.moderation import Moderated

__all__ = ["States", "states_of"]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# One path of two equally likely states: (1/2)^2 for a pair.
_MOST = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """Paths that change between states.

    Attributes:
        chances: For each of them, that one pair looks slower because of its states.
    """

    chances: Numbers

    def separations(self, runs: Numbers) -> Numbers:
        """Return the expected number of false separations after so many pairs."""
        found: Numbers = _MOST**runs + (self.chances ** runs[..., None]).sum(axis=-1)
        return found


def states_of(
    contrast: Contrast, noise: Moderated, margin: Numbers, *, tested: Mask, level: float
) -> States:
    """Find the paths whose states could look like a change.

    Args:
        contrast: The runs at hand.
        noise: Their moderated noise, with its prior.
        margin: Changes up to this do not matter, on the log scale.
        tested: Which paths are part of the family.
        level: P-value from which a path is significant.
    """
    rows = np.flatnonzero(tested)
    # Of an even number either of the two in the middle may be in the usual state.
    both = [
        _chances(contrast, noise, margin, rows=rows, level=level, upper=upper)
        for upper in (False, True)
    ]
    chances = np.maximum(*both)
    return States(chances[chances > 0.0])


def _chances(
    contrast: Contrast,
    noise: Moderated,
    margin: Numbers,
    *,
    rows: npt.NDArray[np.intp],
    level: float,
    upper: bool,
) -> Numbers:
    """Return the chance of each row, 0 for one without states."""
    away, margin = np.abs(_from_middles(contrast, rows, upper=upper)), margin[rows]
    known = np.isfinite(away)
    away = np.where(known, away, 0.0)
    other = away > margin
    count, total = other.sum(axis=0), known.sum(axis=0)
    jump = np.where(other, away, 0.0).sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(other, away - jump, away) ** 2).sum(axis=0)
    freedom = np.maximum(total - (3.0 if contrast.first_new else 2.0), 1.0)
    variance, freedom = _moderated(squares / freedom, freedom, noise, rows=rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(variance * contrast.scale[rows])
        p_values = special.stdtr(freedom, -(jump - margin) / error)
    share = count / np.maximum(total, 1)
    one = share * (1.0 - share) if contrast.first_new else share / 2.0
    one = np.where(share > 0.5, _MOST, np.minimum(one, _MOST))
    return np.where((count > 0) & (p_values <= level), one, 0.0)


def _moderated(
    own: Numbers, freedom: Numbers, noise: Moderated, *, rows: npt.NDArray[np.intp]
) -> tuple[Numbers, Numbers]:
    """Return variances within states, with as little of the prior as the noisiest path may use."""
    d0 = np.minimum(noise.prior_freedom[rows], noise.most_freedom[rows])
    s02 = np.nan_to_num(noise.prior_variance[rows])
    with np.errstate(invalid="ignore", divide="ignore"):
        tails = special.fdtrc(freedom, np.maximum(d0, 1e-9), own / s02)
    d0 = d0 * np.clip(np.nan_to_num(tails, nan=1.0) * 2.0 * len(rows), 0.0, 1.0)
    together = np.minimum(d0 + freedom, np.maximum(noise.most_freedom[rows], freedom))
    return (d0 * s02 + freedom * own) / (d0 + freedom), together


def _from_middles(contrast: Contrast, rows: npt.NDArray[np.intp], *, upper: bool) -> Numbers:
    """Return differences from the middle pair of each path, or process of each side."""
    residuals, middle = contrast.residuals[:, rows], contrast.first_new
    parts = (residuals[:middle], residuals[middle:])
    return np.concatenate([part - _middle(part, upper=upper) for part in parts if len(part)])


def _middle(values: Numbers, *, upper: bool) -> Numbers:
    """Return the lower or upper median of each column without NaN; NaN if there is no number."""
    known = np.isfinite(values).sum(axis=0)
    place = known // 2 if upper else np.maximum(known - 1, 0) // 2
    found: Numbers = np.sort(values, axis=0)[place, np.arange(values.shape[1])]  # NaN last
    return found
