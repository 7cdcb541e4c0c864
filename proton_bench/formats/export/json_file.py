"""`.json`: the whole profile as one flat, versioned JSON object, for jq and other programs.

One list per column, one element per row; null stands for no value, NaN and infinity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec
import numpy as np

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.formats.base import corrupt, decoded, plain_map
from proton_bench.formats.limits import take_table
from proton_bench.formats.native.file import ProfileLayout, check_version, unknown_keys
from proton_bench.model.builder import with_strings
from proton_bench.model.frame import KIND_NAMES, StringTable
from proton_bench.model.metrics.distribution import SKETCH_GAMMA, Distribution, as_samples
from proton_bench.model.metrics.distribution_table import DistributionTable, check_buckets
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.support.text import json_bytes

SCHEMA = "proton_bench.profile.json"
VERSION = (1, 0)
_KINDS = {name: number for number, name in enumerate(KIND_NAMES)}


class _Metric(msgspec.Struct, kw_only=True):
    name: str
    unit: str = ""
    aggregation: Aggregation
    type: ValueKind
    values: list[Any]


# Fields of `Distribution` whose names in the file are others.
_RENAMED = {"total": "sum", "minimum": "min", "maximum": "max", "open_below": "collapsed"}
_FIELDS = tuple(each.name for each in fields(Distribution))


class _Distribution(msgspec.Struct, kw_only=True, rename=_RENAMED):
    """The fields of `Distribution`, with its row and metric."""

    metric: str
    row: int
    n: int
    zero_count: int
    total: float
    minimum: float
    maximum: float
    sum_ln: float
    sum_ln2: float
    samples: list[float] = []
    bucket_index: list[int] = []
    bucket_count: list[int] = []
    collapses: int = 0
    open_below: bool = False  # as files of earlier versions can be
    gamma: float = SKETCH_GAMMA
    value_error: float = 0.0


class _Layout(ProfileLayout, kw_only=True):
    parents: list[int]
    frames: list[int]
    kinds: list[str]
    device: list[int]
    variant: list[int]
    metrics: list[_Metric] = []
    distributions: list[_Distribution] = []


class _Head(msgspec.Struct):
    schema: Any = None
    version: tuple[int, int] = (0, 0)


# Not decode(type=...): two threads that first use a type at once crash msgspec.
_decode_head = msgspec.json.Decoder(_Head | list[Any] | int | float | str | bool | None).decode
_decode_layout = msgspec.json.Decoder(_Layout).decode
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_FOREIGN = "the JSON is of no known tool (proton_bench, triton.profiler, torch.profiler)"


class JsonFile:
    """The `.json` format."""

    name = "json"
    suffixes = (".json",)

    def sniff(self, content: bytes) -> bool:
        """Return whether this is a JSON object that names the schema."""
        return content[:64].lstrip()[:1] == b"{" and SCHEMA.encode() in content[:256]

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile; unknown keys are kept in ``extra``."""
        head = decoded(lambda: _decode_head(content), source)
        if not isinstance(head, _Head) or not isinstance(head.schema, str):
            raise corrupt(source, _FOREIGN, "name a profile")
        check_version(head.schema, head.version, source, known=SCHEMA)
        layout = decoded(lambda: _decode_layout(content), source)
        try:
            raw = decoded(lambda: _decode_raw(content), source)
            extra = unknown_keys(raw, source, layout=_Layout, decode=msgspec.json.decode)
            profile = _profile(layout, extra, source)
            profile.self_check()
        except (ProfileFormatError, MetricError, OverflowError) as error:
            raise corrupt(source, str(error)) from None
        return profile

    def encode(self, profile: Profile) -> bytes:
        """Return the whole file."""
        layout: dict[str, Any] = {
            "schema": SCHEMA,
            "version": list(VERSION),
            "partial": profile.partial,
            "provenance": profile.provenance.to_plain(),
            "devices": profile.devices,
            "variants": profile.variants,
            "strings": profile.strings,
            "rows": len(profile),
            "parents": profile.parents,
            "frames": profile.frames,
            "kinds": [KIND_NAMES[kind] for kind in profile.kinds.tolist()],
            "device": profile.device_rows,
            "variant": profile.variant_rows,
            "metrics": [_packed(column) for column in profile.columns.values()],
            "distributions": _packed_distributions(profile.distributions),
            "dropped": dict(profile.dropped),
        }
        if profile.device_use:
            layout["device_use"] = profile.device_use
        layout |= profile.extra
        return json_bytes(msgspec.json.encode(layout, enc_hook=np.ndarray.tolist)) + b"\n"


def _packed(column: MetricColumn) -> dict[str, Any]:
    # msgspec writes null for NaN and infinity.
    return {
        "name": column.spec.name,
        "unit": column.spec.unit,
        "aggregation": str(column.spec.aggregation),
        "type": str(column.kind),
        "values": column.to_list(),
    }


def _packed_distributions(tables: Mapping[str, DistributionTable]) -> list[_Distribution]:
    return [
        _Distribution(metric=metric, row=row, **{name: getattr(entry, name) for name in _FIELDS})
        for metric, table in tables.items()
        for row, entry in table
    ]


def _profile(layout: _Layout, extra: dict[str, Any], source: str) -> Profile:
    rows = layout.rows
    lists = {name: getattr(layout, name) for name in ("parents", "frames", "kinds", "device")}
    lists["variant"] = layout.variant
    for name, values in lists.items():
        if len(values) != rows:
            raise ProfileFormatError(f"{name} has {len(values)} elements, not {rows}")
    take_table(rows, len(layout.metrics))
    table = StringTable()
    places = np.array([table.index(text) for text in layout.strings] or [0], dtype="<i4")
    columns = {metric.name: _column(metric, table, rows) for metric in layout.metrics}
    strings = table.texts()
    frames = np.array(layout.frames, dtype="<i4")
    if rows and not (frames.min() >= 0 and frames.max() < len(layout.strings)):
        raise ProfileFormatError("a row has a name that does not exist")
    # JSON has integers of any size, MessagePack does not.
    counted = {"devices": layout.devices, "variants": layout.variants, "dropped": layout.dropped}
    counted["device_use"] = layout.device_use
    plain_map(msgspec.to_builtins(counted), source)
    return Profile(
        strings=strings,
        parents=np.array(layout.parents, dtype="<i4"),
        frames=places[frames],
        # A kind that a later minor version added is unknown here.
        kinds=np.array([_KINDS.get(kind, 0) for kind in layout.kinds], dtype=np.uint8),
        device_rows=np.array(layout.device, dtype="<i4"),
        variant_rows=np.array(layout.variant, dtype="<i4"),
        devices=layout.devices,
        variants=layout.variants,
        columns={name: with_strings(column, strings) for name, column in columns.items()},
        distributions=_tables(layout.distributions, rows),
        provenance=Provenance(plain_map(layout.provenance, source)),
        dropped=layout.dropped,
        device_use=layout.device_use,
        partial=layout.partial,
        extra=extra,
    )


def _column(metric: _Metric, table: StringTable, rows: int) -> MetricColumn:
    if len(metric.values) != rows:
        raise ProfileFormatError(f"metric {metric.name[:80]!r} has {len(metric.values)} values")
    present = [row for row, value in enumerate(metric.values) if value is not None]
    values = [metric.values[row] for row in present]
    spec = MetricSpec(metric.name, metric.aggregation)
    column = MetricColumn.from_rows(spec, present, values, total=rows, table=table)
    return _of_kind(column, metric.type, rows)


def _of_kind(column: MetricColumn, kind: ValueKind, rows: int) -> MetricColumn:
    """Convert columns without values, and floats that look like ints, to their declared type."""
    if column.kind is kind:
        return column
    spec = column.spec
    if not bool(column.valid.any()):
        size = 0 if kind.is_vector else rows
        values = np.full(size, -1 if kind is ValueKind.STR else 0, dtype=kind.dtype)
        offsets = np.zeros(rows + 1, dtype=np.int64) if kind.is_vector else None
        return MetricColumn(spec, kind, values, column.valid, offsets)
    wider = {ValueKind.INT: ValueKind.FLOAT, ValueKind.INT_VECTOR: ValueKind.FLOAT_VECTOR}
    if wider.get(column.kind) is not kind:
        raise ProfileFormatError(f"metric {spec.name[:80]!r} holds {column.kind}, not {kind}")
    return MetricColumn(spec, kind, column.values.astype("<f8"), column.valid, column.offsets)


def _tables(entries: list[_Distribution], rows: int) -> dict[str, DistributionTable]:
    by_metric: dict[str, dict[int, Distribution]] = {}
    for entry in entries:
        if not all(map(math.isfinite, (entry.total, entry.minimum, entry.maximum))):
            raise ProfileFormatError("a distribution has a moment that is not finite")
        check_buckets(entry.gamma, entry.collapses, entry.value_error)
        found = {name: getattr(entry, name) for name in _FIELDS}
        found["samples"] = as_samples(entry.samples)
        found["bucket_index"] = np.array(entry.bucket_index, dtype="<i4")
        found["bucket_count"] = np.array(entry.bucket_count, dtype="<i8")
        by_metric.setdefault(entry.metric, {})[entry.row] = Distribution(**found)
    tables = {name: DistributionTable.from_mapping(found) for name, found in by_metric.items()}
    for table in tables.values():
        table.self_check(rows)
    return tables
