"""P-values of many tests, adjusted so that any false rejection among them is unlikely."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["adjusted"]

Numbers = npt.NDArray[np.float64]


def adjusted(p_values: Numbers) -> Numbers:
    """Return for each test the smallest level at which it is rejected; NaN stays NaN.

    Holm 1979 (Scand. J. Stat. 6:65): with the p-values sorted, the i-th of M is multiplied by
    ``M - i + 1`` and is at least as large as the one before. The chance of any false rejection is
    then at most the level, however the tests depend on one another: a scope and the kernels in it
    are one family.

    Args:
        p_values: One for each test; NaN for untested ones, which are not part of the family.
    """
    results = np.full(len(p_values), np.nan)
    rows = np.flatnonzero(np.isfinite(p_values))
    order = rows[np.argsort(p_values[rows], kind="stable")]
    raw = p_values[order] * np.arange(len(rows), 0, -1)
    results[order] = np.minimum(np.maximum.accumulate(raw), 1.0)
    return results
