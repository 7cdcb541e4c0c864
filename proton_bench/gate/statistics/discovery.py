"""Selects the significant ones of many tests, with a bound on the share of false ones."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

__all__ = ["Dependence", "adjusted", "discoveries"]

Numbers = npt.NDArray[np.float64]


class Dependence(StrEnum):
    """The known dependence between tests."""

    POSITIVE = "bh"
    ANY = "by"


def discoveries(
    p_values: Numbers, level: float, dependence: Dependence = Dependence.POSITIVE
) -> npt.NDArray[np.bool_]:
    """Return which hypotheses to reject so that the false discovery rate is at most ``level``.

    Benjamini, Hochberg 1995 (J. R. Stat. Soc. B 57:289): with the p-values sorted, reject up to the
    last ``i`` with ``p_(i) <= i level / M``. It holds if the tests are independent or positively
    dependent (Benjamini, Yekutieli 2001, Ann. Stat. 29:1165), as paths that share a clock are. For
    any dependence ``level`` is divided by ``1 + 1/2 + ... + 1/M``.

    Args:
        p_values: One for each test; NaN for untested ones, which are not part of the family.
        level: The false discovery rate.
        dependence: How the tests may depend on one another.
    """
    found: npt.NDArray[np.bool_] = adjusted(p_values, dependence) <= level
    return found


def adjusted(p_values: Numbers, dependence: Dependence = Dependence.POSITIVE) -> Numbers:
    """Return for each test the smallest level at which `discoveries` rejects it; NaN stays NaN."""
    results = np.full(len(p_values), np.nan)
    rows = np.flatnonzero(np.isfinite(p_values))
    if not len(rows):
        return results
    order = rows[np.argsort(p_values[rows], kind="stable")]
    ranks = np.arange(1, len(rows) + 1)
    factor = float((1.0 / ranks).sum()) if dependence is Dependence.ANY else 1.0
    raw = p_values[order] * (len(rows) * factor) / ranks
    results[order] = np.minimum(np.minimum.accumulate(raw[::-1])[::-1], 1.0)
    return results
