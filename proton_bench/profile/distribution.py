"""Samples of one metric on one row: moments, few raw values, or a log-bucket sketch of all."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.errors import MetricError, UsageError

__all__ = ["MAX_BUCKETS", "MAX_SAMPLES", "SKETCH_GAMMA", "Distribution", "as_samples"]

SKETCH_ACCURACY = 0.001
SKETCH_GAMMA = (1 + SKETCH_ACCURACY) / (1 - SKETCH_ACCURACY)
MAX_SAMPLES = 64
MAX_BUCKETS = 1024


def _empty(dtype: str) -> npt.NDArray[Any]:
    return np.zeros(0, dtype=dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The samples of one metric on one row, in the metric's unit.

    Attributes:
        n: Number of samples.
        zero_count: Samples that are not positive; they have no logarithm and no bucket.
        total: Sum of all samples.
        minimum: Smallest sample, 0 when there is none.
        maximum: Largest sample, 0 when there is none.
        sum_ln: Sum of ln(t) over positive samples.
        sum_ln2: Sum of ln(t)^2 over positive samples.
        samples: Raw float32 samples, at most 64; they are all samples when there are no buckets.
        bucket_index: Rising bucket numbers; bucket i covers (gamma^(i-1), gamma^i].
        bucket_count: Samples in each bucket.
        collapsed: The lowest buckets were merged, so low quantiles are not known.
        gamma: Ratio of neighbouring bucket bounds.
    """

    n: int
    zero_count: int
    total: float
    minimum: float
    maximum: float
    sum_ln: float
    sum_ln2: float
    samples: npt.NDArray[np.float32] = field(default_factory=lambda: _empty("<f4"))
    bucket_index: npt.NDArray[np.int32] = field(default_factory=lambda: _empty("<i4"))
    bucket_count: npt.NDArray[np.int64] = field(default_factory=lambda: _empty("<i8"))
    collapsed: bool = False
    gamma: float = SKETCH_GAMMA

    @property
    def mean(self) -> float:
        """Mean of all samples, NaN without samples."""
        return self.total / self.n if self.n else math.nan

    @property
    def moments_only(self) -> bool:
        """Whether neither raw samples nor buckets cover all samples, so quantiles are unknown."""
        return self.n > 0 and not self.has_sketch and len(self.samples) != self.n

    @property
    def has_sketch(self) -> bool:
        """Whether buckets (and ``zero_count``) cover all samples."""
        counted = int(self.bucket_count.sum()) + self.zero_count
        return counted == self.n and (len(self.bucket_count) > 0 or self.n > len(self.samples))

    def quantile(self, q: float) -> float | None:
        """Return the q-quantile, None when only moments are known or it lies in collapsed buckets.

        Exact (linear between neighbours) from raw samples; from the sketch the value of the
        sample of that rank, within 0.1 %.

        Raises:
            UsageError: ``q`` is not between 0 and 1.
        """
        if not 0.0 <= q <= 1.0:
            raise UsageError(f"quantile {q!r} is not between 0 and 1")
        if self.n == 0 or self.moments_only:
            return None
        if not self.has_sketch:
            with np.errstate(invalid="ignore"):
                return float(np.quantile(self.samples.astype(np.float64), q))
        rank = q * (self.n - 1)
        if rank < self.zero_count:
            return min(self.minimum, 0.0)
        counts = np.cumsum(self.bucket_count) + self.zero_count
        if not len(counts):
            return self.maximum
        position = min(int(np.searchsorted(counts, rank, side="right")), len(counts) - 1)
        if self.collapsed and position == 0:
            return self.minimum if rank == 0 else None
        index = int(self.bucket_index[position])
        # The value with the smallest relative distance to both bounds of its bucket.
        middle = 2.0 * math.exp(min(index * math.log(self.gamma), 700.0)) / (self.gamma + 1.0)
        return min(max(middle, self.minimum), self.maximum)

    @classmethod
    def from_samples(cls, values: Iterable[float]) -> Distribution:
        """Return the distribution of these samples: raw up to 64, with a sketch beyond.

        Raises:
            MetricError: A sample is NaN or infinite.
        """
        with np.errstate(over="ignore"):
            return cls._from_array(np.asarray(list(values), dtype=np.float64))

    @classmethod
    def _from_array(cls, data: npt.NDArray[np.float64]) -> Distribution:
        if not bool(np.isfinite(data).all()):
            raise MetricError("a distribution takes finite samples only")
        logs = np.log(data[data > 0])
        keep_all = len(data) <= MAX_SAMPLES
        index, count, collapsed = _buckets(logs, SKETCH_GAMMA) if not keep_all else _no_buckets()
        return cls(
            n=len(data),
            zero_count=int((data <= 0).sum()),
            total=float(data.sum()),
            minimum=float(data.min()) if len(data) else 0.0,
            maximum=float(data.max()) if len(data) else 0.0,
            sum_ln=float(logs.sum()),
            sum_ln2=float((logs * logs).sum()),
            samples=as_samples(data[:MAX_SAMPLES]),
            bucket_index=index,
            bucket_count=count,
            collapsed=collapsed,
        )

    def merge(self, other: Distribution) -> Distribution:
        """Return the distribution of both sets of samples; moments add exactly.

        Raises:
            UsageError: Both hold buckets of different width.
        """
        if self.n == 0 or other.n == 0:
            return other if self.n == 0 else self
        samples, index, count, collapsed = self._merged_detail(other)
        return Distribution(
            n=self.n + other.n,
            zero_count=self.zero_count + other.zero_count,
            total=self.total + other.total,
            minimum=min(self.minimum, other.minimum),
            maximum=max(self.maximum, other.maximum),
            sum_ln=self.sum_ln + other.sum_ln,
            sum_ln2=self.sum_ln2 + other.sum_ln2,
            samples=samples,
            bucket_index=index,
            bucket_count=count,
            collapsed=collapsed,
            gamma=self.gamma if self.has_sketch else other.gamma,
        )

    def _merged_detail(
        self, other: Distribution
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], bool]:
        if self.moments_only or other.moments_only:
            return (_empty("<f4"), *_no_buckets())
        raw = not (self.has_sketch or other.has_sketch)
        if raw and self.n + other.n <= MAX_SAMPLES:
            return (np.concatenate([self.samples, other.samples]), *_no_buckets())
        if self.has_sketch and other.has_sketch and self.gamma != other.gamma:
            raise UsageError(
                f"distributions with bucket ratios {self.gamma} and {other.gamma} cannot be merged"
            )
        gamma = self.gamma if self.has_sketch else other.gamma
        parts = [part._sketch(gamma) for part in (self, other)]
        index, count, collapsed = _limited(
            np.concatenate([part[0] for part in parts]),
            np.concatenate([part[1] for part in parts]),
        )
        samples = np.concatenate([self.samples, other.samples])[:MAX_SAMPLES]
        return samples, index, count, collapsed or self.collapsed or other.collapsed

    def _sketch(self, gamma: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if self.has_sketch:
            return self.bucket_index, self.bucket_count
        positive = self.samples[self.samples > 0].astype(np.float64)
        index, count, _ = _buckets(np.log(positive), gamma)
        return index, count


def as_samples(values: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return the values as float32; those that are too large become infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float64).astype("<f4")


def _no_buckets() -> tuple[npt.NDArray[Any], npt.NDArray[Any], bool]:
    return _empty("<i4"), _empty("<i8"), False


def _buckets(
    logs: npt.NDArray[np.float64], gamma: float
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], bool]:
    index = np.ceil(logs / math.log(gamma)).astype(np.int64)
    return _limited(index, np.ones(len(index), dtype=np.int64))


def _limited(
    index: npt.NDArray[Any], count: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], bool]:
    """Sum counts of equal buckets and collapse the lowest ones past the cap."""
    distinct, inverse = np.unique(index, return_inverse=True)
    counts = np.zeros(len(distinct), dtype="<i8")
    np.add.at(counts, inverse, count)
    excess = len(distinct) - MAX_BUCKETS
    if excess > 0:
        counts[excess] += counts[:excess].sum()
        distinct, counts = distinct[excess:], counts[excess:]
    return distinct.astype("<i4"), counts, excess > 0
