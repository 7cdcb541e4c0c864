"""`.proton`, the file of record: one MessagePack map of columns, of any depth and size."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.base import corrupt, decoded, plain_map
from proton_bench.formats.limits import reading, take_bytes, take_table
from proton_bench.model.arrays import Array, Indexes, Mask
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.distribution import SKETCH_GAMMA
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

COMPRESS_ABOVE = 4096
COMPRESS_LEVEL = 4
# Deflate cannot exceed 1032:1, so a larger claim is false.
MAX_DEFLATE_RATIO = 1032


class PackedBytes(msgspec.Struct):
    """Bytes of the file; ``size`` is their number once inflated."""

    codec: str
    size: int
    content: bytes = msgspec.field(name="bytes")

    def packed(self) -> dict[str, Any]:
        """Return the map that is written."""
        return {"codec": self.codec, "size": self.size, "bytes": self.content}


class PackedColumn(PackedBytes, kw_only=True):
    """One array of the file."""

    dtype: str


def inflate(packed: PackedBytes, source: str, what: str) -> bytes:
    """Return the bytes; sizes are checked before anything is allocated.

    Raises:
        ProfileFormatError: The bytes are damaged or not as many as declared.
    """
    if packed.codec == "raw":
        if packed.size != len(packed.content):
            raise corrupt(source, f"{what} declares {packed.size} bytes, has {len(packed.content)}")
        return packed.content
    if packed.codec != "zlib":
        raise corrupt(
            source,
            f"{what} has the unknown codec {packed.codec[:40]!r}",
            "known are raw and zlib; a newer proton_bench may read it",
        )
    if not 0 <= packed.size <= MAX_DEFLATE_RATIO * len(packed.content):
        raise corrupt(source, f"{what} declares {packed.size} bytes in {len(packed.content)}")
    take_bytes(packed.size)
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed.content, packed.size + 1)
    except zlib.error as error:
        raise corrupt(source, f"{what} cannot be inflated ({error})") from None
    if len(content) != packed.size or not stream.eof:
        raise corrupt(source, f"{what} does not inflate to the declared {packed.size} bytes")
    return content


def array(
    packed: PackedColumn, source: str, *, what: str, dtype: str, count: int | None = None
) -> Array:
    """Return the column as a read-only array.

    Args:
        packed: The column of the file.
        source: Name of the file, for messages.
        what: Name of the column for messages.
        dtype: The only type allowed, as numpy writes it.
        count: The only number of elements allowed; None allows any.

    Raises:
        ProfileFormatError: The column is damaged, or of another type or length.
    """
    width = np.dtype(dtype).itemsize
    if packed.dtype != dtype:
        raise corrupt(source, f"{what} holds {packed.dtype[:40]!r}, expected {dtype!r}")
    if count is not None and packed.size != count * width:
        raise corrupt(source, f"{what} has {packed.size} bytes, expected {count * width}")
    content = inflate(packed, source, what)
    if len(content) % width:
        raise corrupt(source, f"{what} ends within an element")
    return np.frombuffer(content, dtype=dtype)


def pack_bytes(content: bytes) -> dict[str, Any]:
    """Return the map for some bytes, compressed if that is shorter."""
    if len(content) > COMPRESS_ABOVE:
        short = zlib.compress(content, COMPRESS_LEVEL)
        if len(short) < len(content):
            return {"codec": "zlib", "size": len(content), "bytes": short}
    return {"codec": "raw", "size": len(content), "bytes": content}


def pack(values: Array, dtype: str) -> dict[str, Any]:
    """Return the map for an array."""
    return {"dtype": dtype, **pack_bytes(values.astype(dtype, copy=False).tobytes())}


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
    packed: PackedMetric, source: str, *, rows: int, strings: tuple[str, ...]
) -> MetricColumn:
    """Return the column; values of rows without one are set to 0 (-1 for strings).

    Raises:
        ProfileFormatError: The column is damaged or does not fit the number of rows.
    """
    what = f"metric {packed.name[:80]!r}"
    kind = _KINDS.get(packed.dtype)
    if kind is None:
        raise corrupt(
            source,
            f"{what} is of type {packed.dtype[:40]!r}",
            f"known are {', '.join(_KINDS)}; a newer proton_bench may read it",
        )
    valid = _valid(packed.valid, source, what, rows=rows)
    count = None if kind.is_vector else rows
    values = array(packed.values, source, what=what, dtype=kind.dtype.str, count=count)
    offsets = None
    if kind.is_vector:
        if packed.offsets is None:
            raise corrupt(source, f"{what} holds vectors without offsets")
        offsets = array(packed.offsets, source, what=what, dtype="<i8", count=rows + 1)
    elif not bool(valid.all()):
        values = np.where(valid, values, kind.dtype.type(-1 if kind is ValueKind.STR else 0))
    spec = MetricSpec(packed.name, packed.aggregation)
    own = strings if kind is ValueKind.STR else ()
    return MetricColumn(spec, kind, values, valid, offsets, own)


def _valid(packed: PackedColumn | None, source: str, what: str, *, rows: int) -> Mask:
    if packed is None:
        return np.ones(rows, dtype=np.bool_)
    bits = array(packed, source, what=what, dtype="|u1", count=(rows + 7) // 8)
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

    def __init__(self, packed: PackedBytes, source: str, rows: int) -> None:
        self.packed = packed
        self._source = source
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
            with reading(len(self.packed.content), self._source):
                self._tables = dict(self._read())
        return self._tables

    def _read(self) -> Iterator[tuple[str, DistributionTable]]:
        content = inflate(self.packed, self._source, "distributions")
        for entry in decoded(lambda: _decode_entries(content), self._source):
            yield _table(entry, self._source, self._rows)


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


SCHEMA = "proton_bench.profile"
VERSION = (1, 0)


class ProfileLayout(msgspec.Struct, kw_only=True):
    """The keys that `.proton` files and their JSON form have alike."""

    schema: str
    version: tuple[int, int]
    partial: bool = False
    provenance: dict[str, Any] = {}
    devices: tuple[Device, ...] = ()
    variants: tuple[Variant, ...] = ()
    strings: tuple[str, ...]
    rows: int
    dropped: dict[str, int] = {}
    device_use: tuple[DeviceUse, ...] = ()


class _Layout(ProfileLayout, kw_only=True):
    parents: PackedColumn
    frames: PackedColumn
    kinds: PackedColumn
    device: PackedColumn | None = None
    variant: PackedColumn | None = None
    metrics: list[PackedMetric] = []
    distributions: PackedBytes | None = None
    steady: bytes = b""


class _Head(msgspec.Struct):
    """The keys that are read first, to recognize a newer file."""

    schema: str
    version: tuple[int, int]


# Not decode(type=...): two threads that first use a type at once crash msgspec.
_decode_head = msgspec.msgpack.Decoder(_Head).decode
_decode_layout = msgspec.msgpack.Decoder(_Layout).decode
_decode_raw = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode


class NativeFile:
    """The `.proton` format."""

    name = "proton"
    suffixes = (".proton",)

    def sniff(self, content: bytes) -> bool:
        """Return whether this is a map that names the schema."""
        return content[:1] >= b"\x80" and SCHEMA.encode() in content[:96]

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile; unknown keys are kept in ``extra``."""
        head = decoded(lambda: _decode_head(content), source)
        check_version(head.schema, head.version, source)
        with reading(len(content), source):
            raw = decoded(lambda: _decode_raw(content), source)
            extra = unknown_keys(raw, source, layout=_Layout, decode=msgspec.msgpack.decode)
            layout = decoded(lambda: _decode_layout(content), source)
            return self._checked(layout, source, extra)

    def _checked(self, layout: _Layout, source: str, extra: dict[str, Any]) -> Profile:
        try:
            profile = _profile(layout, source, extra)
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
        if profile.steady:
            layout["steady"] = profile.steady
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


def unknown_keys(
    raw: Mapping[str, msgspec.Raw],
    source: str,
    *,
    layout: type[ProfileLayout],
    decode: Callable[[msgspec.Raw], Any],
) -> dict[str, Any]:
    """Return keys of later versions; sizes are checked before decoding."""
    known = layout.__struct_fields__
    unknown = {
        key: decoded(lambda value=value: decode(value), source)  # type: ignore[misc]
        for key, value in raw.items()
        if key not in known
    }
    return plain_map(unknown, source)


def _profile(layout: _Layout, source: str, extra: dict[str, Any]) -> Profile:
    rows = layout.rows
    if not 1 <= rows < 2**31:
        raise ProfileFormatError(f"it declares {rows} rows")
    # parents come first, because they prove the number of rows for all other columns.
    parents = array(layout.parents, source, what="parents", dtype="<i4", count=rows)
    take_table(rows, len(layout.metrics))
    kinds = array(layout.kinds, source, what="kinds", dtype="|u1", count=rows)
    columns: dict[str, MetricColumn] = {}
    for packed in layout.metrics:
        if packed.name in columns:
            raise ProfileFormatError(f"metric {packed.name[:80]!r} occurs twice")
        columns[packed.name] = metric_column(packed, source, rows=rows, strings=layout.strings)
    return Profile(
        strings=layout.strings,
        parents=parents,
        frames=array(layout.frames, source, what="frames", dtype="<i4", count=rows),
        # A kind that a later minor version added is unknown here.
        kinds=np.where(kinds < len(FrameKind), kinds, 0).astype(np.uint8),
        device_rows=_optional(layout.device, source, "device", rows=rows),
        variant_rows=_optional(layout.variant, source, "variant", rows=rows),
        devices=layout.devices,
        variants=layout.variants,
        columns=columns,
        distributions=(
            PackedDistributions(layout.distributions, source, rows) if layout.distributions else {}
        ),
        provenance=Provenance(plain_map(layout.provenance, source)),
        dropped=layout.dropped,
        device_use=layout.device_use,
        partial=layout.partial,
        steady=layout.steady,
        extra=extra,
    )


def _optional(packed: PackedColumn | None, source: str, what: str, *, rows: int) -> Indexes:
    if packed is None:
        return np.full(rows, -1, dtype="<i4")
    return array(packed, source, what=what, dtype="<i4", count=rows)


def _pack_optional(values: Indexes) -> dict[str, Any] | None:
    return pack(values, "<i4") if bool((values >= 0).any()) else None
