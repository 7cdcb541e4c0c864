"""The distributions of a `.proton` file: one compressed section, inflated on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.base import corrupt, decoded
from proton_bench.formats.budget import DecodeBudget, Limit
from proton_bench.formats.deep_msgpack import length_of
from proton_bench.formats.native.columns import PackedBytes, inflate, pack_bytes
from proton_bench.model.metrics.distribution import SKETCH_GAMMA
from proton_bench.model.metrics.distribution_table import DistributionTable

__all__ = ["PackedDistributions", "pack_distributions"]

# Key in the file, field of DistributionTable, type.
_FIELDS = (
    ("rows", "rows", "<i4"),
    ("n", "n", "<i8"),
    ("zero_count", "zero_count", "<i8"),
    ("sum", "total", "<f8"),
    ("min", "minimum", "<f8"),
    ("max", "maximum", "<f8"),
    ("sum_ln", "sum_ln", "<f8"),
    ("sum_ln2", "sum_ln2", "<f8"),
    ("sample_offsets", "sample_offsets", "<i4"),
    ("samples", "samples", "<f4"),
    ("bucket_offsets", "bucket_offsets", "<i4"),
    ("bucket_steps", "bucket_index", "<i4"),
    ("bucket_count", "bucket_count", "<i8"),
    ("collapses", "collapses", "|u1"),
    ("collapsed", "open_below", "|u1"),
)
# Bucket indexes are written as differences, which compress by a third better; earlier versions
# wrote them directly.
_STEPS = "bucket_steps"
# A file may lack one of these two: earlier versions wrote "collapsed", because they merged the
# lowest buckets into one that is open below.
_OPTIONAL = frozenset({"collapses", "collapsed"})
# Assumed for wide buckets of files of earlier versions, which do not hold the error of values.
_EARLIER_ERROR = 1.0 / 32.0
_OBJECTS = 64  # that a table counts as


class _Entry(msgspec.Struct, kw_only=True, gc=False):
    """One table of the file; other keys are skipped."""

    metric: str
    gamma: float
    value_error: float | None = None
    rows: bytes
    n: bytes
    zero_count: bytes
    sum: bytes
    min: bytes
    max: bytes
    sum_ln: bytes
    sum_ln2: bytes
    sample_offsets: bytes
    samples: bytes
    bucket_offsets: bytes
    bucket_steps: bytes | None = None
    bucket_index: bytes | None = None
    bucket_count: bytes
    collapses: bytes | None = None
    collapsed: bytes | None = None


class PackedDistributions(Mapping[str, DistributionTable]):
    """Tables by metric name. Damage raises ProfileFormatError on first use."""

    def __init__(self, packed: PackedBytes, budget: DecodeBudget, rows: int) -> None:
        self.packed = packed
        self._budget = budget
        self._rows = rows
        self._tables: dict[str, DistributionTable] | None = None

    def __getitem__(self, metric: str) -> DistributionTable:
        return self._inflated()[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self._inflated())

    def __len__(self) -> int:
        return len(self._inflated())

    def _inflated(self) -> dict[str, DistributionTable]:
        if self._tables is None:
            with self._budget.running():
                self._tables = dict(self._read())
        return self._tables

    def _read(self) -> Iterator[tuple[str, DistributionTable]]:
        source = self._budget.source
        content = inflate(self.packed, self._budget, "distributions")
        self._budget.take(Limit.OBJECTS, _OBJECTS * length_of(content))
        for entry in decoded(lambda: _decode_entries(content), source):
            yield _table(entry, source, self._rows)


_decode_entries = msgspec.msgpack.Decoder(list[_Entry]).decode


def _table(entry: _Entry, source: str, rows: int) -> tuple[str, DistributionTable]:
    arrays: dict[str, Any] = {}
    has_one = any(getattr(entry, key) is not None for key in _OPTIONAL)
    for key, field, dtype in _FIELDS:
        content: bytes | None = getattr(entry, key)
        is_earlier = key == _STEPS and content is None
        if is_earlier:
            content = entry.bucket_index
        if content is None and key in _OPTIONAL and has_one:
            content = bytes(len(entry.rows) // 4)
        if content is None or len(content) % np.dtype(dtype).itemsize:
            raise corrupt(source, f"the distributions have no usable {key}")
        arrays[field] = np.frombuffer(content, dtype=dtype)
        if key == _STEPS and not is_earlier:
            arrays[field] = np.cumsum(arrays[field], dtype=dtype)
    value_error = entry.value_error
    if value_error is None:
        value_error = 0.0 if entry.gamma == SKETCH_GAMMA else _EARLIER_ERROR
    table = DistributionTable(**arrays, gamma=entry.gamma, value_error=value_error)
    try:
        table.self_check(rows)
    except ProfileFormatError as error:
        raise corrupt(source, str(error)) from None
    return entry.metric, table


def pack_distributions(tables: Mapping[str, DistributionTable]) -> dict[str, Any] | None:
    """Return the encoded section, None without distributions."""
    if isinstance(tables, PackedDistributions):
        return tables.packed.packed()
    if not tables:
        return None
    entries = []
    for metric, table in tables.items():
        entry: dict[str, Any] = {
            "metric": metric,
            "gamma": table.gamma,
            "value_error": table.value_error,
        }
        for key, field, dtype in _FIELDS:
            if key == "collapsed" and not table.open_below.any():
                continue
            values = getattr(table, field).astype(dtype, copy=False)
            entry[key] = (
                np.diff(values, prepend=values.dtype.type(0)) if key == _STEPS else values
            ).tobytes()
        entries.append(entry)
    return pack_bytes(msgspec.msgpack.encode(entries))
