"""The distributions of one metric over the rows of a profile, stored by column."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.errors import ProfileFormatError
from proton_bench.model.arrays import Array, Floats, Indexes, Integers, Mask
from proton_bench.model.metrics.distribution import (
    MAX_BUCKETS,
    MAX_SAMPLES,
    SKETCH_GAMMA,
    Distribution,
)

_SCALARS = (
    *("n", "zero_count", "total", "minimum", "maximum", "sum_ln", "sum_ln2"),
    *("collapses", "open_below"),
)
# Relative difference of floating-point sums in another order.
SUM_ERROR = 1e-9
# Buckets wider than a factor of a million are useless.
_LARGEST_RATIO_LN = math.log(1e6)
# Files of other versions may have more than this one records, and merged ones count more.
_MOST_TIMES, _MOST_COUNTED = 16, 1 << 53


@dataclass(frozen=True, slots=True, eq=False)
class DistributionTable:
    """Distributions of one metric; entry i belongs to row ``rows[i]``.

    The fields are those of `Distribution`, one element per entry; ``samples`` and the buckets of
    entry i are the slices that ``sample_offsets`` and ``bucket_offsets`` bound.
    """

    rows: Indexes
    n: Integers
    zero_count: Integers
    total: Floats
    minimum: Floats
    maximum: Floats
    sum_ln: Floats
    sum_ln2: Floats
    sample_offsets: Indexes
    samples: npt.NDArray[np.float32]
    bucket_offsets: Indexes
    bucket_index: Indexes
    bucket_count: Integers
    collapses: npt.NDArray[np.uint8]
    open_below: npt.NDArray[np.uint8]
    gamma: float = SKETCH_GAMMA
    value_error: float = 0.0

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[int, Distribution]]:
        for position, row in enumerate(self.rows.tolist()):
            yield row, self._at(position)

    def get(self, row: int) -> Distribution | None:
        """Return the distribution of the row, None without samples."""
        position = int(np.searchsorted(self.rows, row))
        if position == len(self.rows) or self.rows[position] != row:
            return None
        return self._at(position)

    def take(self, keep: Mask) -> DistributionTable:
        """Return the entries of the kept rows, renumbered.

        Args:
            keep: One flag per row of the profile.
        """
        places = (np.cumsum(keep) - 1).astype("<i4")
        found = self.of_rows(keep)
        return replace(found, rows=places[found.rows])

    def of_rows(self, keep: Mask) -> DistributionTable:
        """Return the entries of these rows, numbered as before.

        Args:
            keep: One flag per row of the profile.
        """
        kept = keep[self.rows]
        scalars = {name: getattr(self, name)[kept] for name in _SCALARS}
        sample_counts, bucket_counts = np.diff(self.sample_offsets), np.diff(self.bucket_offsets)
        of_sample, of_bucket = np.repeat(kept, sample_counts), np.repeat(kept, bucket_counts)
        return DistributionTable(
            rows=self.rows[kept],
            sample_offsets=_offsets(sample_counts[kept].tolist()),
            samples=self.samples[of_sample],
            bucket_offsets=_offsets(bucket_counts[kept].tolist()),
            bucket_index=self.bucket_index[of_bucket],
            bucket_count=self.bucket_count[of_bucket],
            gamma=self.gamma,
            value_error=self.value_error,
            **scalars,
        )

    def _at(self, position: int) -> Distribution:
        samples = slice(self.sample_offsets[position], self.sample_offsets[position + 1])
        buckets = slice(self.bucket_offsets[position], self.bucket_offsets[position + 1])
        return Distribution(
            n=int(self.n[position]),
            zero_count=int(self.zero_count[position]),
            total=float(self.total[position]),
            minimum=float(self.minimum[position]),
            maximum=float(self.maximum[position]),
            sum_ln=float(self.sum_ln[position]),
            sum_ln2=float(self.sum_ln2[position]),
            samples=self.samples[samples],
            bucket_index=self.bucket_index[buckets],
            bucket_count=self.bucket_count[buckets],
            collapses=int(self.collapses[position]),
            open_below=bool(self.open_below[position]),
            gamma=self.gamma,
            value_error=self.value_error,
        )

    def self_check(self, rows: int) -> None:
        """Raise ProfileFormatError unless the table fits a profile with that many rows."""
        entries = len(self.rows)
        if entries and (self.rows[0] < 0 or self.rows[-1] >= rows):
            raise ProfileFormatError("a distribution belongs to a row that does not exist")
        if bool((self.rows[1:] <= self.rows[:-1]).any()):
            raise ProfileFormatError("the rows of the distributions do not rise")
        if any(len(getattr(self, name)) != entries for name in _SCALARS):
            raise ProfileFormatError("the columns of the distributions differ in length")
        _check_offsets(self.sample_offsets, entries, len(self.samples))
        _check_offsets(self.bucket_offsets, entries, len(self.bucket_index))
        if len(self.bucket_index) != len(self.bucket_count):
            raise ProfileFormatError("the buckets of the distributions differ in length")
        if not bool(np.isfinite(self.samples).all()):
            raise ProfileFormatError("a distribution has a sample that is not finite")
        if bool((self.n < 0).any() | (self.zero_count < 0).any() | (self.bucket_count < 0).any()):
            raise ProfileFormatError("a distribution counts fewer than zero samples")
        _check_sizes(self)
        falls = self.bucket_index[1:] <= self.bucket_index[:-1]
        first = self.bucket_offsets[1:-1]
        falls[first[(first > 0) & (first <= len(falls))] - 1] = False
        if bool(falls.any()):
            raise ProfileFormatError("the buckets of the distributions do not rise")
        check_buckets(self.gamma, int(self.collapses.max(initial=0)), self.value_error)

    @classmethod
    def from_mapping(cls, entries: Mapping[int, Distribution]) -> DistributionTable:
        """Build the table from distributions by row; finer buckets are merged to the widest."""
        known = [entries[row] for row in sorted(entries)]
        gamma = max((entry.gamma for entry in known if entry.has_sketch), default=SKETCH_GAMMA)
        ordered = [entry.with_gamma(gamma) for entry in known]
        return cls(
            rows=np.array(sorted(entries), dtype="<i4"),
            n=_column(ordered, "n", "<i8"),
            zero_count=_column(ordered, "zero_count", "<i8"),
            total=_column(ordered, "total", "<f8"),
            minimum=_column(ordered, "minimum", "<f8"),
            maximum=_column(ordered, "maximum", "<f8"),
            sum_ln=_column(ordered, "sum_ln", "<f8"),
            sum_ln2=_column(ordered, "sum_ln2", "<f8"),
            sample_offsets=_offsets([len(entry.samples) for entry in ordered]),
            samples=_joined([entry.samples for entry in ordered], "<f4"),
            bucket_offsets=_offsets([len(entry.bucket_index) for entry in ordered]),
            bucket_index=_joined([entry.bucket_index for entry in ordered], "<i4"),
            bucket_count=_joined([entry.bucket_count for entry in ordered], "<i8"),
            collapses=_column(ordered, "collapses", "|u1"),
            open_below=_column(ordered, "open_below", "|u1"),
            gamma=gamma,
            value_error=max((entry.value_error for entry in ordered), default=0.0),
        )


def _check_sizes(table: DistributionTable) -> None:
    """Raise if a distribution is larger than any possible one."""
    for offsets, most in (
        (table.sample_offsets, MAX_SAMPLES),
        (table.bucket_offsets, MAX_BUCKETS),
    ):
        if int(np.diff(offsets).max(initial=0)) > _MOST_TIMES * most:
            raise ProfileFormatError("a distribution has impossibly many entries")
    counts = (table.n, table.zero_count, table.bucket_count)
    if max(int(each.max(initial=0)) for each in counts) > _MOST_COUNTED:
        raise ProfileFormatError("a distribution counts impossibly many samples")


def check_buckets(gamma: float, collapses: int, value_error: float) -> None:
    """Raise ProfileFormatError if buckets are invalid.

    Args:
        gamma: Ratio of bounds before any merging.
        collapses: How often buckets were merged in pairs.
        value_error: Relative error of values.
    """
    if not 1.0 < gamma < 1e6 or not 0 <= collapses <= 32:
        raise ProfileFormatError(
            f"distributions have the bucket ratio {gamma}, squared {collapses} times"
        )
    if math.ldexp(math.log(gamma), collapses) > _LARGEST_RATIO_LN:
        raise ProfileFormatError("the buckets of the distributions are too wide to say anything")
    if not 0.0 <= value_error < 1.0:
        raise ProfileFormatError(f"distributions have values that are {value_error} off")


def _check_offsets(offsets: Indexes, entries: int, total: int) -> None:
    if (
        len(offsets) != entries + 1
        or offsets[0] != 0
        or offsets[-1] != total
        or bool((offsets[1:] < offsets[:-1]).any())
    ):
        raise ProfileFormatError("the offsets of the distributions do not fit")


def _column(entries: list[Distribution], field: str, dtype: str) -> Array:
    return np.array([getattr(entry, field) for entry in entries], dtype=dtype)


def _offsets(lengths: list[int]) -> Indexes:
    return np.cumsum([0, *lengths]).astype("<i4")


def _joined(parts: list[Array], dtype: str) -> Array:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts]).astype(dtype, copy=False)
