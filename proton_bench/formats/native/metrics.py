"""Metric columns of the `.proton` format."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from proton_bench.formats.base import corrupt
from proton_bench.formats.budget import DecodeBudget
from proton_bench.formats.native.columns import PackedColumn, array, pack
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind

__all__ = ["PackedMetric", "metric_column", "pack_metric"]

_DTYPES = {
    ValueKind.INT: "<i8",
    ValueKind.FLOAT: "<f8",
    ValueKind.STR: "str",
    ValueKind.INT_VECTOR: "vec<i8",
    ValueKind.FLOAT_VECTOR: "vec<f8",
}
_KINDS = {text: kind for kind, text in _DTYPES.items()}


class PackedMetric(msgspec.Struct, kw_only=True):
    """One metric of the file."""

    name: str
    unit: str
    aggregation: Aggregation
    dtype: str
    values: PackedColumn
    valid: PackedColumn | None
    offsets: PackedColumn | None


def metric_column(
    packed: PackedMetric, budget: DecodeBudget, *, rows: int, strings: tuple[str, ...]
) -> MetricColumn:
    """Return the column; values of rows without one are set to 0 (-1 for strings).

    Raises:
        ProfileFormatError: The column is damaged or does not fit the number of rows.
    """
    what = f"metric {packed.name[:80]!r}"
    kind = _KINDS.get(packed.dtype)
    if kind is None:
        raise corrupt(
            budget.source,
            f"{what} is of type {packed.dtype[:40]!r}",
            f"known are {', '.join(_KINDS)}; a newer proton_bench may read it",
        )
    valid = _valid(packed.valid, budget, what, rows=rows)
    count = None if kind.is_vector else rows
    values = array(packed.values, budget, what=what, dtype=kind.dtype.str, count=count)
    offsets = None
    if kind.is_vector:
        if packed.offsets is None:
            raise corrupt(budget.source, f"{what} holds vectors without offsets")
        offsets = array(packed.offsets, budget, what=what, dtype="<i8", count=rows + 1)
    elif not bool(valid.all()):
        values = np.where(valid, values, kind.dtype.type(-1 if kind is ValueKind.STR else 0))
    spec = MetricSpec(packed.name, packed.aggregation)
    own = strings if kind is ValueKind.STR else ()
    return MetricColumn(spec, kind, values, valid, offsets, own)


def _valid(
    packed: PackedColumn | None, budget: DecodeBudget, what: str, *, rows: int
) -> npt.NDArray[np.bool_]:
    if packed is None:
        return np.ones(rows, dtype=np.bool_)
    bits = array(packed, budget, what=what, dtype="|u1", count=(rows + 7) // 8)
    return np.unpackbits(bits, count=rows, bitorder="little").view(np.bool_)


def pack_metric(column: MetricColumn) -> dict[str, Any]:
    """Return the encoded map of a column."""
    everywhere = bool(column.valid.all())
    bits = np.packbits(column.valid, bitorder="little")
    return {
        "name": column.spec.name,
        "unit": column.spec.unit,
        "aggregation": str(column.spec.aggregation),
        "dtype": _DTYPES[column.kind],
        "values": pack(column.values, column.kind.dtype.str),
        "valid": None if everywhere else pack(bits, "|u1"),
        "offsets": None if column.offsets is None else pack(column.offsets, "<i8"),
    }
