"""`.proton`, the file of record: one MessagePack map of columns, of any depth and size."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.base import corrupt, decoded, plain_map
from proton_bench.formats.budget import (
    OBJECTS_OF_DEVICE,
    OBJECTS_OF_REASON,
    DecodeBudget,
    Limit,
    decoding,
    take_table,
)
from proton_bench.formats.deep_msgpack import length_of
from proton_bench.formats.native.columns import PackedBytes, PackedColumn, array, pack
from proton_bench.formats.native.distributions import PackedDistributions, pack_distributions
from proton_bench.formats.native.metrics import PackedMetric, metric_column, pack_metric
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import MetricColumn
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

__all__ = ["SCHEMA", "VERSION", "NativeFile", "check_version"]

SCHEMA = "proton_bench.profile"
VERSION = (1, 0)


class _Layout(msgspec.Struct, kw_only=True):
    """The known keys of the file."""

    schema: str
    version: tuple[int, int]
    partial: bool = False
    provenance: dict[str, Any] = {}
    devices: tuple[Device, ...] = ()
    strings: tuple[str, ...]
    rows: int
    parents: PackedColumn
    frames: PackedColumn
    kinds: PackedColumn
    device: PackedColumn | None = None
    variant: PackedColumn | None = None
    variants: tuple[Variant, ...] = ()
    metrics: list[PackedMetric] = []
    distributions: PackedBytes | None = None
    dropped: dict[str, int] = {}
    device_use: tuple[DeviceUse, ...] = ()


_KNOWN = frozenset(_Layout.__struct_fields__)
# What elements of these lists count as: some objects each.
_LISTS = {
    "strings": 1,
    "devices": OBJECTS_OF_DEVICE,
    "variants": 4,
    "metrics": 8,
    "device_use": 8,
    "dropped": OBJECTS_OF_REASON,
}
_HEAD_BYTES = 5
_BYTES_OF_VALUE = 4


class _Head(msgspec.Struct):
    """The keys that are read first, to recognize a newer file."""

    schema: str
    version: tuple[int, int]


class NativeFile:
    """The `.proton` format."""

    name = "proton"
    suffixes = (".proton",)

    def sniff(self, content: bytes) -> bool:
        """Return whether this is a map that names the schema."""
        return content[:1] >= b"\x80" and SCHEMA.encode() in content[:96]

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile; unknown keys are kept in ``extra``."""
        head = decoded(lambda: msgspec.msgpack.decode(content, type=_Head), source)
        check_version(head.schema, head.version, source)
        with decoding(len(content), source) as budget:
            extra = _unknown_keys(content, budget)
            layout = decoded(lambda: msgspec.msgpack.decode(content, type=_Layout), source)
            return self._checked(layout, budget, extra)

    def _checked(self, layout: _Layout, budget: DecodeBudget, extra: dict[str, Any]) -> Profile:
        source = budget.source
        try:
            profile = _profile(layout, budget, extra)
            profile.self_check()
        except ProfileFormatError as error:
            raise error if source in str(error) else corrupt(source, str(error)) from None
        return profile

    def encode(self, profile: Profile) -> bytes:
        """Return the whole file."""
        layout: dict[str, Any] = {
            "schema": SCHEMA,
            "version": list(VERSION),
            "partial": profile.partial,
            "provenance": profile.provenance.to_plain(),
            "devices": profile.devices,
            "strings": profile.strings,
            "rows": len(profile),
            "parents": pack(profile.parents, "<i4"),
            "frames": pack(profile.frames, "<i4"),
            "kinds": pack(profile.kinds, "|u1"),
            "device": _pack_optional(profile.device_rows),
            "variant": _pack_optional(profile.variant_rows),
            "variants": profile.variants,
            "metrics": [pack_metric(column) for column in profile.columns.values()],
            "distributions": pack_distributions(profile.distributions),
            "dropped": dict(profile.dropped),
        }
        if profile.device_use:
            layout["device_use"] = profile.device_use
        return msgspec.msgpack.encode(layout | dict(profile.extra))


def check_version(
    schema: str, version: tuple[int, int], source: str, *, known: str = SCHEMA
) -> None:
    """Raise ProfileFormatError unless this release can read the schema and version."""
    if schema != known:
        raise corrupt(
            source, f"the schema is {schema[:60]!r}, not {known!r}", "it is not a profile"
        )
    if version[0] != VERSION[0]:
        raise corrupt(
            source,
            f"the format version is {version[0]}.{version[1]}, this release reads {VERSION[0]}.x",
            "update proton_bench, or write the file again",
        )


def _unknown_keys(content: bytes, budget: DecodeBudget) -> dict[str, Any]:
    """Return keys of later versions; sizes are checked before decoding."""
    source = budget.source
    budget.take(Limit.OBJECTS, length_of(content))
    raw = decoded(lambda: msgspec.msgpack.decode(content, type=dict[str, msgspec.Raw]), source)
    for key, value in raw.items():
        if key in _LISTS:
            budget.take(Limit.OBJECTS, _LISTS[key] * length_of(bytes(value)[:_HEAD_BYTES]))
        elif key not in _KNOWN or key == "provenance":
            budget.take(Limit.OBJECTS, len(bytes(value)) // _BYTES_OF_VALUE)
    unknown = {
        key: decoded(lambda value=value: msgspec.msgpack.decode(value), source)  # type: ignore[misc]
        for key, value in raw.items()
        if key not in _KNOWN
    }
    return plain_map(unknown, source)


def _profile(layout: _Layout, budget: DecodeBudget, extra: dict[str, Any]) -> Profile:
    rows = layout.rows
    budget.take(Limit.OBJECTS, sum(len(each.instructions) for each in layout.variants))
    if not 1 <= rows < 2**31:
        raise ProfileFormatError(f"it declares {rows} rows")
    # parents come first, because they prove the number of rows for all other columns.
    parents = array(layout.parents, budget, what="parents", dtype="<i4", count=rows)
    take_table(rows, len(layout.metrics))
    kinds = array(layout.kinds, budget, what="kinds", dtype="|u1", count=rows)
    columns: dict[str, MetricColumn] = {}
    for packed in layout.metrics:
        if packed.name in columns:
            raise ProfileFormatError(f"metric {packed.name[:80]!r} occurs twice")
        columns[packed.name] = metric_column(packed, budget, rows=rows, strings=layout.strings)
    return Profile(
        strings=layout.strings,
        parents=parents,
        frames=array(layout.frames, budget, what="frames", dtype="<i4", count=rows),
        # A kind that a later minor version added is unknown here.
        kinds=np.where(kinds < len(FrameKind), kinds, 0).astype(np.uint8),
        device_rows=_optional(layout.device, budget, "device", rows=rows),
        variant_rows=_optional(layout.variant, budget, "variant", rows=rows),
        devices=layout.devices,
        variants=layout.variants,
        columns=columns,
        distributions=(
            PackedDistributions(layout.distributions, budget, rows) if layout.distributions else {}
        ),
        provenance=Provenance(plain_map(layout.provenance, budget.source)),
        dropped=layout.dropped,
        device_use=layout.device_use,
        partial=layout.partial,
        extra=extra,
    )


def _optional(
    packed: PackedColumn | None, budget: DecodeBudget, what: str, *, rows: int
) -> npt.NDArray[np.int32]:
    if packed is None:
        return np.full(rows, -1, dtype="<i4")
    return array(packed, budget, what=what, dtype="<i4", count=rows)


def _pack_optional(values: npt.NDArray[np.int32]) -> dict[str, Any] | None:
    return pack(values, "<i4") if bool((values >= 0).any()) else None
