"""What one process measured of one path: distinct values and how often each was seen."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.profile import Distribution

__all__ = ["Sample"]

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Values of the launches of one path in one process.

    Attributes:
        values: Distinct values, rising, in the metric's unit.
        counts: How often each was seen.
        relative_tick: How far apart values can be told, as a part of the value: 0 for raw ones.
    """

    values: Numbers
    counts: Numbers
    relative_tick: float = 0.0

    @property
    def size(self) -> float:
        """Number of launches."""
        return float(self.counts.sum())

    @classmethod
    def of_values(cls, values: Iterable[float]) -> Sample:
        """Return the sample of raw values; those that are not finite are left out."""
        raw = np.asarray(list(values), dtype=np.float64)
        distinct, counts = np.unique(raw[np.isfinite(raw)], return_counts=True)
        return cls(distinct, counts.astype(np.float64))

    @classmethod
    def of(cls, distribution: Distribution) -> Sample | None:
        """Return what a recorded distribution says, None where it holds moments alone."""
        if distribution.n == 0 or distribution.moments_only:
            return None
        if not distribution.has_sketch:
            return cls.of_values(distribution.samples.tolist())
        width = math.log(distribution.gamma)
        exponents = np.minimum(distribution.bucket_index * width, 700.0)
        # The value with the smallest relative distance to both bounds of its bucket.
        values = np.exp(exponents) * (2.0 / (distribution.gamma + 1.0))
        values = np.clip(values, distribution.minimum, distribution.maximum)
        counts = distribution.bucket_count.astype(np.float64)
        if distribution.zero_count:
            values = np.concatenate([[min(distribution.minimum, 0.0)], values])
            counts = np.concatenate([[float(distribution.zero_count)], counts])
        distinct, places = np.unique(values, return_inverse=True)
        summed = np.bincount(places.reshape(-1), weights=counts)
        return cls(distinct, summed.astype(np.float64), distribution.gamma - 1.0)
