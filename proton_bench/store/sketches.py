"""Distributions in a store: counts of buckets of one width, which add up exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from proton_bench.model.arrays import Array, Indexes, Integers, Mask
from proton_bench.model.metrics.distribution import (
    SKETCH_GAMMA,
    Distribution,
    Intervals,
    bucket_bounds,
    bucket_numbers,
)
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.engines import pyarrow_compute as pc
from proton_bench.store.schema import SKETCH

_INDEX_BITS, _INDEX_BIAS = 32, 1 << 31
_ROW = "row"
# Buckets that are merged at a time, and the most places for those of all groups.
_BUCKETS_AT_ONCE, _MOST_CELLS = 1 << 17, 1 << 22


def sketches_of(table: DistributionTable, rows: Integers) -> pa.StructArray:
    """Return the sketch of each of these rows, none where its quantiles are unknown.

    Distributions of earlier versions whose buckets have another width have none: they could not be
    added to others without an error.

    Args:
        table: Distributions of some of the rows, and of no others.
        rows: Rows of the profile.
    """
    is_whole = _is_whole(table)
    kept = np.diff(table.sample_offsets)
    is_raw = ~is_whole & (kept == table.n)
    if table.gamma != SKETCH_GAMMA or table.value_error:
        is_whole[:] = False
    is_whole &= table.open_below == 0
    raw_lengths, raw_index, raw_count = _raw_buckets(table, is_raw)
    own_lengths = np.diff(table.bucket_offsets)
    lengths = np.where(is_raw, raw_lengths, np.where(is_whole, own_lengths, 0))
    # Both are in the order of the entries.
    from_raw = np.repeat(is_raw, lengths)
    from_own = ~from_raw
    index, count = np.empty(len(from_raw), dtype="<i4"), np.empty(len(from_raw), dtype="<i8")
    index[from_raw], index[from_own] = raw_index, _of(is_whole, own_lengths, table.bucket_index)
    count[from_raw], count[from_own] = raw_count, _of(is_whole, own_lengths, table.bucket_count)
    places = np.searchsorted(rows, table.rows)
    collapses, zeros, has_sketch, of_row = (
        np.zeros(len(rows), dtype=dtype) for dtype in ("<i2", "<i8", np.bool_, "<i4")
    )
    collapses[places], zeros[places] = table.collapses, table.zero_count
    has_sketch[places], of_row[places] = is_raw | is_whole, lengths
    offsets = pa.array(np.concatenate([[0], np.cumsum(of_row)]).astype("<i4"))
    return pa.StructArray.from_arrays(
        [
            pa.array(collapses),
            pa.array(zeros),
            pa.ListArray.from_arrays(offsets, pa.array(index)),
            pa.ListArray.from_arrays(offsets, pa.array(count)),
        ],
        fields=list(SKETCH),
        mask=pa.array(~has_sketch),
    )


def _is_whole(table: DistributionTable) -> Mask:
    """Return whether the buckets of each distribution cover all of its samples."""
    running = np.zeros(len(table.bucket_count) + 1, dtype="<i8")
    np.cumsum(table.bucket_count, out=running[1:])
    counted = np.diff(running[table.bucket_offsets])
    has_buckets = np.diff(table.bucket_offsets) > 0
    kept = np.diff(table.sample_offsets)
    found: Mask = (counted + table.zero_count == table.n) & (has_buckets | (table.n > kept))
    return found


def _of(flags: Mask, lengths: Array, values: Array) -> Array:
    """Return the values of flagged entries, which have so many each."""
    is_every = int(lengths[flags].sum()) == len(values)
    return values if is_every else values[np.repeat(flags, lengths)]


def _raw_buckets(table: DistributionTable, is_raw: Mask) -> tuple[Integers, Integers, Integers]:
    """Return the number of buckets of each entry with raw samples, and their indexes and counts."""
    kept = np.diff(table.sample_offsets)
    entries = np.repeat(np.flatnonzero(is_raw), kept[is_raw])
    # In place where it can be: new memory takes as long as the arithmetic.
    values = _of(is_raw, kept, table.samples).astype("f8")
    # As float32, samples may be rounded past the extremes.
    np.clip(values, table.minimum[entries], table.maximum[entries], out=values)
    if table.zero_count.any():
        is_positive = values > 0
        entries, values = entries[is_positive], values[is_positive]
    keys = bucket_numbers(np.log(values, out=values))
    keys += _INDEX_BIAS
    keys += entries << _INDEX_BITS
    # They are sorted by entry already, which a stable sort makes use of; `np.unique` does not.
    keys.sort(kind="stable")
    is_first = np.ones(len(keys) + 1, dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:-1])
    starts = np.flatnonzero(is_first)
    keys, counts = keys[starts[:-1]], np.diff(starts)
    lengths = np.bincount(keys >> _INDEX_BITS, minlength=len(table))
    keys &= (1 << _INDEX_BITS) - 1
    keys -= _INDEX_BIAS
    return lengths, keys, counts


def merged(samples: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return a line for each key, with the ``count``, extremes and ``sketch`` of its samples.

    What a part of the samples lacks is missing, but unknown counts, which are left out. Merging in
    steps, in any order, gives equal bits: buckets are widened to the widest of the samples, and
    their counts are integers.

    Args:
        samples: The columns of the keys, and these.
        keys: Names of columns.
    """
    numbered = samples.append_column(_ROW, pa.array(np.arange(len(samples))))
    every = pc.ScalarAggregateOptions(skip_nulls=False)
    found = numbered.group_by(list(keys), use_threads=False).aggregate(
        [("count", "sum"), ("min", "min", every), ("max", "max", every), (_ROW, "list")]
    )
    rows = found[f"{_ROW}_list"].combine_chunks()
    sketches = _merged_sketches(samples["sketch"].combine_chunks(), rows)
    values = [found[name] for name in ("count_sum", "min_min", "max_max")]
    return pa.table(
        [*(found[key] for key in keys), *values, sketches],
        names=[*keys, "count", "min", "max", "sketch"],
    )


def _merged_sketches(sketches: pa.StructArray, groups: pa.ListArray) -> pa.StructArray:
    """Return the sketch of each group, none where a part of it has none.

    Args:
        sketches: Sketches.
        groups: The places of those of each group, one at least.
    """
    if not len(groups):
        return pa.nulls(0, SKETCH)
    # Some groups at a time, so that memory is bounded.
    most = len(sketches.field("index").values) // _BUCKETS_AT_ONCE + 1
    cuts = np.flatnonzero(np.diff(groups.offsets.to_numpy()[1:] * most // len(sketches), append=-1))
    parts = [
        _merged_some(sketches.take(groups[first:after].flatten()), groups[first:after])
        for first, after in pairwise([0, *(cuts + 1).tolist()])
    ]
    return pa.concat_arrays(parts)


def _merged_some(sketches: pa.StructArray, groups: pa.ListArray) -> pa.StructArray:
    """Return what `_merged_sketches` returns, of sketches in the order of their groups."""
    sizes = groups.value_lengths().to_numpy()
    starts = np.cumsum(sizes) - sizes
    collapses, zeros, index, count = sketches.flatten()
    collapses, zeros, lengths = (
        each.fill_null(0).to_numpy() for each in (collapses, zeros, index.value_lengths())
    )
    widest = np.maximum.reduceat(collapses, starts)
    shifts = np.repeat(np.repeat(widest, sizes) - collapses, lengths).astype("<i8")
    # The bucket with index i ends at the i-th power of the ratio, and widening squares that.
    wide = -(-index.flatten().to_numpy().astype("<i8") >> shifts)
    numbers = np.repeat(np.repeat(np.arange(len(sizes)), sizes), lengths)
    lengths, wide, counts = _added(numbers, wide, count.flatten().to_numpy(), size=len(sizes))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype("<i4"))
    is_known = np.logical_and.reduceat(sketches.is_valid().to_numpy(zero_copy_only=False), starts)
    return pa.StructArray.from_arrays(
        [
            pa.array(widest),
            pa.array(np.add.reduceat(zeros, starts)),
            pa.ListArray.from_arrays(offsets, pa.array(wide.astype("<i4"))),
            pa.ListArray.from_arrays(offsets, pa.array(counts)),
        ],
        fields=list(SKETCH),
        mask=pa.array(~is_known),
    )


def _added(
    groups: Integers,
    index: Integers,
    count: Integers,
    *,
    size: int,
) -> tuple[Integers, Integers, Integers]:
    """Return the number of buckets of each group, and their indexes and counts, in their order.

    Args:
        groups: Group of each bucket.
        index: Index of each bucket; those of a group may be equal.
        count: Count of each bucket.
        size: Number of groups.
    """
    if not len(index):
        return np.zeros(size, "<i8"), index, count
    least = int(index.min())
    width = int(index.max()) - least + 1
    cells = groups * width + (index - least)
    if size * width <= _MOST_CELLS:
        totals, found = np.zeros(size * width, "<i8"), np.zeros(size * width, np.bool_)
        np.add.at(totals, cells, count)
        found[cells] = True
        kept = np.flatnonzero(found)
        totals = totals[kept]
    else:
        kept, places = np.unique(cells, return_inverse=True)
        totals = np.zeros(len(kept), "<i8")
        np.add.at(totals, places, count)
    return np.bincount(kept // width, minlength=size), kept % width + least, totals


def distribution_of(sample: dict[str, Any]) -> Distribution | None:
    """Return the distribution of a row of ``samples``, None without a sketch.

    Args:
        sample: The row.
    """
    sketch = sample["sketch"]
    if sketch is None:
        return None
    index = np.array(sketch["index"], dtype="<i4")
    count = np.array(sketch["count"], dtype="<i8")
    return _distribution({**sample, **sketch}, index, count)


def quantiles_of(calls: pa.Table, points: Sequence[float]) -> list[pa.Array]:
    """Return these quantiles of each line of `merged`, as `Distribution.quantiles` has them."""
    sketches = calls["sketch"].combine_chunks()
    collapses, zeros, index, counts = sketches.flatten()
    collapses, zeros, lengths = (
        each.fill_null(0).to_numpy() for each in (collapses, zeros, counts.value_lengths())
    )
    # Beyond the last bucket are only ranks of lines without buckets.
    index = np.append(index.flatten().to_numpy(), np.int32(0))
    running = np.concatenate([[0], np.cumsum(counts.flatten().to_numpy())])
    ends = np.cumsum(lengths)
    before = running[ends - lengths]
    last = running[ends] - before + zeros - 1
    least, most = (calls[name].to_numpy() for name in ("min", "max"))
    step = np.ldexp(math.log(SKETCH_GAMMA), collapses)
    is_known = sketches.is_valid().to_numpy(zero_copy_only=False) & (last >= 0)
    found = []
    for point in points:
        rank = np.floor(point * last).astype("<i8")
        is_zero = rank < zeros
        places = np.searchsorted(running, before + np.maximum(rank - zeros, 0), side="right") - 1
        lows, highs = bucket_bounds(index[places], step)
        lows, highs = np.where(is_zero, -math.inf, lows), np.where(is_zero, 0.0, highs)
        lows, highs = (np.clip(each, least, most) for each in (lows, highs))
        middles = Intervals(lows, highs, rank, is_zero).middles()
        values = np.select([rank == 0, rank == last], [least, most], middles)
        is_value = is_known & ((rank == 0) | (rank == last) | ~(is_zero & (least < 0)))
        found.append(pa.array(values, mask=~is_value))
    return found


def _distribution(facts: dict[str, Any], index: Indexes, count: Integers) -> Distribution:
    """Return a distribution; its logarithmic moments are those of the middles of the buckets."""
    middles = (index - 0.5) * math.ldexp(math.log(SKETCH_GAMMA), facts["collapses"])
    return Distribution(
        n=int(count.sum()) + facts["zero_count"],
        zero_count=facts["zero_count"],
        total=facts["value"],
        minimum=facts["min"],
        maximum=facts["max"],
        sum_ln=float(count @ middles),
        sum_ln2=float(count @ middles**2),
        bucket_index=index,
        bucket_count=count,
        collapses=facts["collapses"],
    )
