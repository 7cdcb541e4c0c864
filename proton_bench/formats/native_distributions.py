"""The distributions of a `.proton` file: one packed section, inflated when first looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.base import corrupt, decoded
from proton_bench.formats.native_columns import Budget, PackedBytes, inflate, pack_bytes
from proton_bench.profile.distribution import SKETCH_GAMMA
from proton_bench.profile.distribution_table import DistributionTable

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
# Indexes of buckets are written as the steps between them, which take a third less when compressed;
# earlier versions wrote them as they are.
_STEPS, _EARLIER_INDEXES = "bucket_steps", "bucket_index"
# Of these two a file may lack one: earlier versions merged the lowest buckets into one that is open
# below ("collapsed"), and what records today has none of those.
_OPTIONAL = frozenset({"collapses", "collapsed"})
# Earlier versions said nothing of it, and had values that were off in wide buckets alone.
_EARLIER_ERROR = 1.0 / 32.0


class PackedDistributions(Mapping[str, DistributionTable]):
    """Tables by metric name. Damage shows as ProfileFormatError at the first look."""

    def __init__(self, packed: PackedBytes, budget: Budget, rows: int) -> None:
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
            source = self._budget.source
            content = inflate(self.packed, self._budget, "distributions")
            entries = decoded(
                lambda: msgspec.msgpack.decode(content, type=list[dict[str, Any]]), source
            )
            self._tables = dict(_table(entry, source, self._rows) for entry in entries)
        return self._tables


def _table(entry: dict[str, Any], source: str, rows: int) -> tuple[str, DistributionTable]:
    arrays: dict[str, Any] = {}
    for key, field, dtype in _FIELDS:
        content = entry.get(key)
        is_earlier = key == _STEPS and content is None
        if is_earlier:
            content = entry.get(_EARLIER_INDEXES)
        if content is None and key in _OPTIONAL and not _OPTIONAL.isdisjoint(entry):
            content = bytes(len(entry["rows"]) // 4)
        if not isinstance(content, bytes) or len(content) % np.dtype(dtype).itemsize:
            raise corrupt(source, f"the distributions have no usable {key}")
        arrays[field] = np.frombuffer(content, dtype=dtype)
        if key == _STEPS and not is_earlier:
            arrays[field] = np.cumsum(arrays[field], dtype=dtype)
    metric, gamma = entry.get("metric"), entry.get("gamma")
    if not isinstance(metric, str) or not isinstance(gamma, float):
        raise corrupt(source, "the distributions name no metric or no bucket ratio")
    value_error = entry.get("value_error", 0.0 if gamma == SKETCH_GAMMA else _EARLIER_ERROR)
    if not isinstance(value_error, float):
        raise corrupt(source, "the distributions do not say how far values are off")
    table = DistributionTable(**arrays, gamma=gamma, value_error=value_error)
    try:
        table.self_check(rows)
    except ProfileFormatError as error:
        raise corrupt(source, str(error)) from None
    return metric, table


def pack_distributions(tables: Mapping[str, DistributionTable]) -> dict[str, Any] | None:
    """Return the section as it is written, None when there are no distributions."""
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
