"""Distributions in a store: counts of buckets of one width, which add up exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.model.metrics.distribution import SKETCH_GAMMA, Distribution, bucket_numbers
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.engines import pyarrow_compute as pc
from proton_bench.store.schema import SKETCH

__all__ = ["distribution_of", "distributions_of", "merged", "sketches_of"]

_INDEX_BITS, _INDEX_BIAS = 32, 1 << 31


def sketches_of(table: DistributionTable, rows: npt.NDArray[np.int64]) -> pa.StructArray:
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
    from_raw, is_chosen = np.repeat(is_raw, lengths), np.repeat(is_whole, own_lengths)
    index, count = np.empty(len(from_raw), dtype="<i4"), np.empty(len(from_raw), dtype="<i8")
    index[from_raw], index[~from_raw] = raw_index, table.bucket_index[is_chosen]
    count[from_raw], count[~from_raw] = raw_count, table.bucket_count[is_chosen]
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


def _raw_buckets(
    table: DistributionTable, is_raw: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the number of buckets of each entry with raw samples, and their indexes and counts."""
    entries = np.repeat(np.arange(len(table)), np.diff(table.sample_offsets))
    chosen = is_raw[entries]
    entries, values = entries[chosen], table.samples[chosen].astype("f8")
    # As float32, samples may be rounded past the extremes.
    values = np.clip(values, table.minimum[entries], table.maximum[entries])
    if table.zero_count.any():
        entries, values = entries[values > 0], values[values > 0]
    keys = (entries << _INDEX_BITS) + (bucket_numbers(np.log(values)) + _INDEX_BIAS)
    keys, counts = np.unique(keys, return_counts=True)
    lengths = np.bincount(keys >> _INDEX_BITS, minlength=len(table))
    return lengths, (keys & ((1 << _INDEX_BITS) - 1)) - _INDEX_BIAS, counts


def merged(source: str, keys: Sequence[str]) -> str:
    """Return a query that merges samples: a line per key with ``count``, extremes and ``sketch``.

    What a part of the samples lacks is missing. Merging in steps, in any order, gives equal bits:
    buckets are widened to the widest of the samples, and their counts are integers.

    Args:
        source: A query for the keys, and these columns as in ``samples``.
        keys: Columns without NULL.
    """
    key = ", ".join(keys)
    return f"""
        WITH source AS ({source}),
        keyed AS (
            SELECT {key}, (row_number() OVER ())::INT AS id, sum(count)::BIGINT AS count,
                CASE WHEN count(min) = count(*) THEN min(min) END AS min,
                CASE WHEN count(max) = count(*) THEN max(max) END AS max,
                count(sketch) = count(*) AS is_known, max(sketch.collapses) AS collapses,
                sum(sketch.zero_count)::BIGINT AS zero_count
            FROM source GROUP BY {key}),
        spread AS (
            SELECT id, collapses - sketch.collapses AS shift, unnest(sketch.index) AS index,
                unnest(sketch.count) AS count
            FROM source JOIN (SELECT {key}, id, collapses FROM keyed WHERE is_known)
            USING ({key})),
        buckets AS (
            SELECT id, CASE shift WHEN 0 THEN index ELSE ceil(index / (1 << shift))::INT END
                AS index, sum(count)::BIGINT AS count
            FROM spread GROUP BY ALL),
        lists AS (
            SELECT id, list(index ORDER BY index) AS index, list(count ORDER BY index) AS counts
            FROM buckets GROUP BY id)
        SELECT {key}, count, min, max, CASE WHEN is_known THEN {{
            'collapses': collapses, 'zero_count': zero_count,
            'index': coalesce(index, []), 'count': coalesce(counts, [])}} END AS sketch
        FROM keyed LEFT JOIN lists USING (id)"""


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


def distributions_of(answers: pa.Table) -> list[Distribution | None]:
    """Return the distribution of each line that has ``total`` and the columns of `merged`."""
    sketches = answers["sketch"].combine_chunks()
    known = ("collapses", "zero_count")
    facts = answers.select(["total", "min", "max"]).rename_columns(["value", "min", "max"])
    for name in known:
        facts = facts.append_column(name, pc.struct_field(sketches, name))
    index, count = (pc.struct_field(sketches, name) for name in ("index", "count"))
    return [
        None
        if row["collapses"] is None
        else _distribution(row, index[place].values.to_numpy(), count[place].values.to_numpy())
        for place, row in enumerate(facts.to_pylist())
    ]


def _distribution(
    facts: dict[str, Any], index: npt.NDArray[np.int32], count: npt.NDArray[np.int64]
) -> Distribution:
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
