"""Samples of one metric on one row: moments, few raw values, or a log-bucket sketch of all.

A sketch knows its error: every quantile is within `Distribution.relative_error` of the true value,
whatever was merged. If that does not hold, there is no quantile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from proton_bench.errors import MetricError, UsageError
from proton_bench.model.arrays import Array, Floats, Indexes, Integers, Mask

SKETCH_ACCURACY = 0.001
SKETCH_GAMMA = (1 + SKETCH_ACCURACY) / (1 - SKETCH_ACCURACY)
MAX_SAMPLES = 64
MAX_BUCKETS = 2048
# Range of full precision of float32.
_LEAST_RAW, _MOST_RAW = float(np.finfo("f4").tiny), float(np.finfo("f4").max)
_RAW_ERROR = float(np.finfo("f4").eps) / 2.0


def _empty(dtype: str) -> Array:
    return np.zeros(0, dtype=dtype)


class Intervals(NamedTuple):
    """Intervals of samples: ``counts[i]`` of them are in ``[lows[i], highs[i]]``.

    Attributes:
        lows: Least values that the samples can have, rising; float64.
        highs: Greatest values, rising; equal to ``lows`` if single samples were kept.
        counts: Number of samples in each interval; int64.
        unknown: Whether an interval is too wide to give a value; bool.
    """

    lows: Floats
    highs: Floats
    counts: Integers
    unknown: Mask

    @classmethod
    def of_values(cls, values: Floats) -> Intervals:
        """Return the intervals of single values: each distinct one with its count."""
        distinct, counts = np.unique(values, return_counts=True)
        return cls(distinct, distinct, counts.astype("i8"), np.zeros(len(distinct), dtype=np.bool_))

    def middles(self) -> Floats:
        """Return the values with the smallest relative distance to both ends of each interval."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            # 2 / (1 / low + 1 / high), which neither overflows nor underflows.
            middles = self.lows * (2.0 / (1.0 + self.lows / self.highs))
        inside = np.where((self.lows > 0) & np.isfinite(middles), middles, self.lows)
        return np.clip(inside, self.lows, self.highs)


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The samples of one metric on one row, in the metric's unit.

    Attributes:
        n: Number of samples.
        zero_count: Samples that are not positive and so have no bucket.
        total: Sum of all samples.
        minimum: Smallest sample, 0 without samples.
        maximum: Largest sample, 0 without samples.
        sum_ln: Sum of ln(t) over positive samples.
        sum_ln2: Sum of ln(t)^2 over positive samples.
        samples: Raw float32 samples, at most 64; they are all samples when there are no buckets.
        bucket_index: Rising bucket numbers; bucket i covers (g^(i-1), g^i], g = `bucket_ratio`.
        bucket_count: Samples in each bucket.
        collapses: How often all buckets were merged in pairs, which squares their ratio.
        open_below: The lowest bucket also has all smaller values, so quantiles in it are unknown.
            Files of earlier versions have such buckets.
        gamma: Ratio of neighbouring bucket bounds before any merging.
        value_error: Relative error of values before they were counted in buckets.
    """

    n: int
    zero_count: int
    total: float
    minimum: float
    maximum: float
    sum_ln: float
    sum_ln2: float
    samples: npt.NDArray[np.float32] = field(default_factory=lambda: _empty("<f4"))
    bucket_index: Indexes = field(default_factory=lambda: _empty("<i4"))
    bucket_count: Integers = field(default_factory=lambda: _empty("<i8"))
    collapses: int = 0
    open_below: bool = False
    gamma: float = SKETCH_GAMMA
    value_error: float = 0.0

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

    @property
    def bucket_ratio(self) -> float:
        """Ratio of the bounds of a bucket."""
        return math.exp(math.ldexp(math.log(self.gamma), self.collapses))

    @property
    def relative_error(self) -> float:
        """Relative error of quantiles.

        It is that of float32 for raw samples, and infinite if quantiles are unknown.
        """
        if self.moments_only:
            return math.inf
        if not self.has_sketch:
            return _RAW_ERROR
        # The error of the value in the middle of bounds whose ratio is g, after "DDSketch",
        # Masson et al., VLDB 2019; errors of values widen the bounds.
        ratio = self.bucket_ratio * (1.0 + self.value_error) / (1.0 - self.value_error)
        return (ratio - 1.0) / (ratio + 1.0)

    def intervals(self) -> Intervals | None:
        """Return the intervals of the samples, None if only moments are known."""
        if self.moments_only:
            return None
        if not self.has_sketch:
            return Intervals.of_values(self._raw())
        step = math.ldexp(math.log(self.gamma), self.collapses)
        lows, highs = bucket_bounds(self.bucket_index, step)
        lows, highs = lows / (1.0 + self.value_error), highs / (1.0 - self.value_error)
        unknown = np.zeros(len(lows), dtype=np.bool_)
        counts = self.bucket_count.astype("i8")
        if self.open_below:
            lows[:1], unknown[:1] = -math.inf, True
        if self.zero_count:
            lows, highs = np.append(-math.inf, lows), np.append(0.0, highs)
            counts = np.append(self.zero_count, counts)
            unknown = np.append(self.minimum < 0, unknown)
        lows, highs = (np.clip(each, self.minimum, self.maximum) for each in (lows, highs))
        return Intervals(lows, highs, counts, unknown)

    def _raw(self) -> Floats:
        """Return the raw samples; as float32 they may be rounded past the extremes."""
        found: Floats = np.clip(self.samples.astype("f8"), self.minimum, self.maximum)
        return found

    def quantile(self, q: float) -> float | None:
        """Return the q-quantile, None if it is unknown.

        Exact (linear between neighbours) from raw samples; from a sketch the value of the sample of
        rank ``q (n - 1)``, rounded down, within `relative_error`. Quantiles are unknown if only
        moments are kept, and in a bucket that is open below.

        Raises:
            UsageError: ``q`` is not between 0 and 1.
        """
        return self.quantiles([q])[0]

    def quantiles(self, points: Sequence[float]) -> list[float | None]:
        """Return several quantiles at once; otherwise as `quantile`."""
        for q in points:
            if not 0.0 <= q <= 1.0:
                raise UsageError(f"quantile {q!r} is not between 0 and 1")
        known = self.intervals() if self.n else None
        if known is None:
            return [None] * len(points)
        if not self.has_sketch:
            raw: list[float | None] = np.quantile(self._raw(), points).tolist()
            return raw
        upto = np.cumsum(known.counts)
        ranks = [math.floor(q * (self.n - 1)) for q in points]
        places = np.searchsorted(upto, ranks, side="right").tolist()
        middles = known.middles()
        ends = {self.n - 1: self.maximum, 0: self.minimum}
        return [
            ends[rank] if rank in ends else None if known.unknown[place] else float(middles[place])
            for rank, place in zip(ranks, places, strict=True)
        ]

    @classmethod
    def from_samples(cls, values: Iterable[float]) -> Distribution:
        """Return the distribution of these samples: raw up to 64, with a sketch beyond.

        Raises:
            MetricError: A sample is NaN or infinite.
        """
        with np.errstate(over="ignore"):
            return cls._from_array(np.asarray(list(values), dtype=np.float64))

    @classmethod
    def _from_array(cls, data: Floats) -> Distribution:
        if not bool(np.isfinite(data).all()):
            raise MetricError("a distribution takes finite samples only")
        logs = np.log(data[data > 0])
        sizes = np.abs(data[data != 0])
        fits = not len(sizes) or (sizes.min() >= _LEAST_RAW and sizes.max() <= _MOST_RAW)
        is_raw = len(data) <= MAX_SAMPLES and bool(fits)
        return cls(
            n=len(data),
            zero_count=int((data <= 0).sum()),
            total=float(data.sum()),
            minimum=float(data.min()) if len(data) else 0.0,
            maximum=float(data.max()) if len(data) else 0.0,
            sum_ln=float(logs.sum()),
            sum_ln2=float((logs * logs).sum()),
            samples=as_samples(data) if is_raw else _empty("<f4"),
            **({} if is_raw else _Sketch.of(logs, SKETCH_GAMMA).limited().fields()),
        )

    def merge(self, other: Distribution) -> Distribution:
        """Return the distribution of both sets of samples."""
        return Distribution.merged([self, other])

    @classmethod
    def merged(cls, parts: Iterable[Distribution]) -> Distribution:
        """Return the distribution of all samples; moments add exactly.

        Buckets of different width are merged to the widest, which increases the error.
        """
        known = [part for part in parts if part.n]
        if len(known) <= 1:
            return known[0] if known else cls.from_samples([])
        found = cls(
            n=sum(part.n for part in known),
            zero_count=sum(part.zero_count for part in known),
            total=sum(part.total for part in known),
            minimum=min(part.minimum for part in known),
            maximum=max(part.maximum for part in known),
            sum_ln=sum(part.sum_ln for part in known),
            sum_ln2=sum(part.sum_ln2 for part in known),
        )
        if any(part.moments_only for part in known):
            return found
        gammas = [part.gamma for part in known if part.has_sketch]
        if not gammas and found.n <= MAX_SAMPLES:
            return replace(found, samples=np.concatenate([part.samples for part in known]))
        gamma = max(gammas, default=SKETCH_GAMMA)
        sketch = _Sketch.merged([part._sketch(gamma) for part in known]).limited()
        return replace(found, **sketch.fields())

    def with_gamma(self, gamma: float) -> Distribution:
        """Return the distribution with buckets of a ratio at least as large as its own."""
        if not self.has_sketch or gamma == self.gamma:
            return self
        return replace(self, **self._sketch(gamma).limited().fields())

    def _sketch(self, gamma: float) -> _Sketch:
        """Return all samples in buckets of this ratio, at least as large as the current one."""
        if not self.has_sketch:
            values = self._raw()
            return _Sketch.of(np.log(values[values > 0]), gamma)
        known = _Sketch(
            self.bucket_index.astype("i8"),
            self.bucket_count.astype("i8"),
            gamma=self.gamma,
            collapses=self.collapses,
            open_below=self.open_below,
            value_error=self.value_error,
        )
        return known if gamma == self.gamma else known.with_gamma(gamma)


@dataclass(frozen=True, slots=True, eq=False)
class _Sketch:
    """Counts of positive values by their logarithm; the fields are those of `Distribution`."""

    index: Integers
    count: Integers
    gamma: float
    collapses: int = 0
    open_below: bool = False
    value_error: float = 0.0

    @classmethod
    def of(cls, logs: Array, gamma: float) -> _Sketch:
        index = bucket_numbers(logs, gamma)
        return cls(index, np.ones(len(index), dtype="i8"), gamma)

    def fields(self) -> dict[str, Any]:
        return {
            "bucket_index": self.index.astype("<i4"),
            "bucket_count": self.count.astype("<i8"),
            "collapses": self.collapses,
            "open_below": self.open_below,
            "gamma": self.gamma,
            "value_error": self.value_error,
        }

    @classmethod
    def merged(cls, sketches: Sequence[_Sketch]) -> _Sketch:
        """Return sketches of one gamma merged, with buckets as wide as the widest."""
        collapses = max(sketch.collapses for sketch in sketches)
        parts = [sketch.collapsed(collapses) for sketch in sketches]
        index = np.concatenate([part.index for part in parts])
        # Values below the bound of an open bucket could as well be in it.
        bounds = [int(part.index[0]) for part in parts if part.open_below and len(part.index)]
        if bounds:
            index = np.maximum(index, max(bounds))
        return cls(
            index,
            np.concatenate([part.count for part in parts]),
            gamma=parts[0].gamma,
            collapses=collapses,
            open_below=bool(bounds),
            value_error=max(part.value_error for part in parts),
        )

    def collapsed(self, collapses: int) -> _Sketch:
        """Return the sketch with this total number of collapses."""
        often = collapses - self.collapses
        # ceil(index / 2), so many times.
        index = (self.index + ((1 << often) - 1)) >> often
        return replace(self, index=index, collapses=collapses)

    def limited(self) -> _Sketch:
        """Return the sketch with unique buckets, at most MAX_BUCKETS."""
        index, inverse = np.unique(self.index, return_inverse=True)
        collapses = self.collapses
        while len(np.unique(index)) > MAX_BUCKETS:
            index = (index + 1) >> 1
            collapses += 1
        distinct, places = np.unique(index, return_inverse=True)
        count = np.zeros(len(distinct), dtype="i8")
        np.add.at(count, places.reshape(-1)[inverse.reshape(-1)], self.count)
        return replace(self, index=distinct, count=count, collapses=collapses)

    def with_gamma(self, gamma: float) -> _Sketch:
        """Return the middles of the buckets as values of other buckets."""
        step = math.ldexp(math.log(self.gamma), self.collapses)
        ratio = math.exp(step)
        own = (ratio - 1.0) / (ratio + 1.0)
        logs = self.index * step + math.log(2.0 / (ratio + 1.0))
        if self.open_below:  # the bound itself, so that all of the bucket stays below it
            logs[:1] = self.index[:1] * step
        return replace(
            _Sketch.of(logs, gamma),
            count=self.count,
            open_below=self.open_below,
            value_error=(own + self.value_error) / (1.0 + own * self.value_error),
        )


def bucket_numbers(logs: Floats, gamma: float = SKETCH_GAMMA) -> Integers:
    """Return the number of each value's bucket before any merging, from the values' logarithms."""
    numbers = logs / math.log(gamma)
    return np.ceil(numbers, out=numbers).astype(np.int64)


def as_samples(values: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return the values as float32; too large ones become infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float64).astype("<f4")


def bucket_bounds(index: Indexes, step: float | Floats) -> tuple[Floats, Floats]:
    """Return the lower and upper bounds of buckets, from the logarithm of their ratio."""
    powers = index.astype("f8") * step
    with np.errstate(over="ignore"):  # infinite bounds are cut at the extremes
        return np.exp(powers - step), np.exp(powers)
