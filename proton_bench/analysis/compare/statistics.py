"""Intervals from a few runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CONFIDENCE", "Interval", "mean_difference"]

Values = npt.NDArray[Any]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Bounds of each row's change that hold with `CONFIDENCE`."""

    low: Values
    high: Values


def mean_difference(base: Values, new: Values) -> Interval | None:
    """Return the interval of the difference of the two sides' means, None with a run on each side.

    It is Welch's t interval, which does not assume equal spread. A side of one run is assumed to
    vary like the other.

    Args:
        base: One line per run, one column per row.
        new: The same of the other side.
    """
    sizes = len(base), len(new)
    if max(sizes) < 2:
        return None
    spreads = [side.var(axis=0, ddof=1) if len(side) > 1 else None for side in (base, new)]
    shares = []
    for own, other, size in zip(spreads, reversed(spreads), sizes, strict=True):
        spread = own if own is not None else other
        assert spread is not None
        shares.append(spread / size)
    error = np.sqrt(shares[0] + shares[1])
    middle = new.mean(axis=0) - base.mean(axis=0)
    reach = _quantile(_freedom(shares, sizes)) * error
    return Interval(middle - reach, middle + reach)


def _freedom(shares: list[Values], sizes: tuple[int, int]) -> Values:
    if min(sizes) == 1:
        return np.full(len(shares[0]), max(sizes) - 1, dtype=np.float64)
    below = sum(share**2 / (size - 1) for share, size in zip(shares, sizes, strict=True))
    found = np.full(len(shares[0]), float(sum(sizes) - 2))
    np.divide((shares[0] + shares[1]) ** 2, below, out=found, where=below > 0)
    return found


def _quantile(freedom: Values) -> Values:
    from scipy.special import stdtrit

    found: Values = stdtrit(freedom, 0.5 + CONFIDENCE / 2.0)
    return found
