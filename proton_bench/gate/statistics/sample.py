"""The values that one process measured for one path, their counts and their precision."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from proton_bench.model.metrics.distribution import Distribution, Intervals

__all__ = ["Sample"]

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Values of the launches of one path in one process.

    Attributes:
        known: Intervals of the values, in the metric's unit.
        mean: Mean of all launches, NaN without any; exact however wide the intervals are.
        values: The value that represents each interval.
        counts: Launches in each interval.
    """

    known: Intervals
    mean: float = math.nan
    values: Numbers = field(init=False)
    counts: Numbers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", self.known.middles())
        object.__setattr__(self, "counts", self.known.counts.astype(np.float64))

    @property
    def size(self) -> float:
        """Number of launches."""
        return float(self.counts.sum())

    @classmethod
    def of_values(cls, values: Iterable[float]) -> Sample:
        """Return the sample of raw values; non-finite ones are left out."""
        raw = np.asarray(list(values), dtype=np.float64)
        raw = raw[np.isfinite(raw)]
        return cls(Intervals.of_values(raw), float(raw.mean()) if len(raw) else math.nan)

    @classmethod
    def of(cls, distribution: Distribution) -> Sample | None:
        """Return the sample of a recorded distribution, None if it has only moments."""
        known = distribution.intervals()
        if distribution.n == 0 or known is None:
            return None
        return cls(known, distribution.mean)
