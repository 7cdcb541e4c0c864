"""Distributions in a store: counts of buckets of one width, which add up exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.model.metrics.distribution import SKETCH_GAMMA, Distribution, bucket_numbers
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.schema import SKETCH

__all__ = ["distribution_of", "sketches_of"]

_INDEX_BITS, _INDEX_BIAS = 32, 1 << 31


def sketches_of(table: DistributionTable) -> pa.StructArray:
    """Return the sketch of each distribution, none where its quantiles are unknown.

    Distributions of earlier versions whose buckets have another width have none: they could not be
    added to others without an error.
    """
    is_whole = _is_whole(table)
    kept = np.diff(table.sample_offsets)
    is_raw = ~is_whole & (kept == table.n)
    if table.gamma != SKETCH_GAMMA or table.value_error:
        is_whole[:] = False
    is_whole &= table.open_below == 0
    entries, index, count = _bucket_rows(table, is_raw, is_whole)
    offsets = np.zeros(len(table) + 1, dtype="<i4")
    np.cumsum(np.bincount(entries, minlength=len(table)), out=offsets[1:])
    return pa.StructArray.from_arrays(
        [
            pa.array(table.collapses.astype("<i2")),
            pa.array(table.zero_count),
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(index.astype("<i4"))),
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(count)),
        ],
        fields=list(SKETCH),
        mask=pa.array(~(is_raw | is_whole)),
    )


def _is_whole(table: DistributionTable) -> npt.NDArray[np.bool_]:
    """Return whether the buckets of each distribution cover all of its samples."""
    running = np.concatenate([[0], np.cumsum(table.bucket_count)])
    counted = np.diff(running[table.bucket_offsets])
    has_buckets = np.diff(table.bucket_offsets) > 0
    kept = np.diff(table.sample_offsets)
    found: npt.NDArray[np.bool_] = (counted + table.zero_count == table.n) & (
        has_buckets | (table.n > kept)
    )
    return found


def _bucket_rows(
    table: DistributionTable, is_raw: npt.NDArray[np.bool_], is_whole: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return entry, number and count of all buckets, in this order; raw samples get buckets."""
    places = np.arange(len(table))
    of_sample = np.repeat(places, np.diff(table.sample_offsets))
    values = table.samples.astype("f8")[is_raw[of_sample]]
    of_sample = of_sample[is_raw[of_sample]]
    values = np.clip(values, table.minimum[of_sample], table.maximum[of_sample])
    is_positive = values > 0
    numbers = bucket_numbers(np.log(values[is_positive]))
    keys = (of_sample[is_positive] << _INDEX_BITS) + (numbers + _INDEX_BIAS)
    keys, counts = np.unique(keys, return_counts=True)
    of_bucket = np.repeat(places, np.diff(table.bucket_offsets))
    chosen = is_whole[of_bucket]
    entries = np.concatenate([keys >> _INDEX_BITS, of_bucket[chosen]])
    index = np.concatenate(
        [(keys & ((1 << _INDEX_BITS) - 1)) - _INDEX_BIAS, table.bucket_index[chosen]]
    )
    count = np.concatenate([counts, table.bucket_count[chosen]])
    order = np.argsort(entries, kind="stable")
    return entries[order], index[order], count[order]


def distribution_of(sample: dict[str, Any]) -> Distribution | None:
    """Return the distribution of a row of ``samples``, None without a sketch.

    The logarithmic moments are those of the middles of the buckets.

    Args:
        sample: The row.
    """
    sketch = sample["sketch"]
    if sketch is None:
        return None
    index = np.array(sketch["index"], dtype="<i4")
    count = np.array(sketch["count"], dtype="<i8")
    middles = (index - 0.5) * math.ldexp(math.log(SKETCH_GAMMA), sketch["collapses"])
    return Distribution(
        n=int(count.sum()) + sketch["zero_count"],
        zero_count=sketch["zero_count"],
        total=sample["value"],
        minimum=sample["min"],
        maximum=sample["max"],
        sum_ln=float(count @ middles),
        sum_ln2=float(count @ middles**2),
        bucket_index=index,
        bucket_count=count,
        collapses=sketch["collapses"],
    )
