"""A profile as rows of the tables of a store."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.naming.frame_names import parse_frame
from proton_bench.errors import ProfileFormatError
from proton_bench.model import preorder
from proton_bench.model.arrays import Array, Indexes, Integers, Mask
from proton_bench.model.columns import chosen
from proton_bench.model.frame import KIND_NAMES, ROOT_NAME
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.preorder import depths, positions
from proton_bench.model.profile import Profile
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.schema import BELOW, SCHEMAS
from proton_bench.store.sketches import sketches_of

# Odd multipliers and the finalizer of SplitMix64, which permutes 64 bits.
_OF_PARENT, _OF_KIND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_MIXERS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST_SHIFT = np.uint64(31)


def stack_hashes(profile: Profile) -> Integers:
    """Return the hash of each row's stack: of its name, its kind and the hash of its parent.

    That of the root is 0, whatever its name. Hashes are part of the store and never change. Of ten
    million stacks, two have the same hash with a probability of 3 in a million.
    """
    return _hashes(profile.strings, profile.frames, profile.kinds, parents=profile.parents)


def path_hashes(tree: StackTree) -> Integers:
    """Return what the hash of each stack has to be."""
    kinds = np.array([KIND_NAMES.index(kind) for kind in tree.kinds], dtype=np.uint8)
    return _hashes(tree.strings, tree.frames(), kinds, parents=tree.parents)


def _hashes(
    strings: Sequence[str], frames: Indexes, kinds: npt.NDArray[np.uint8], *, parents: Indexes
) -> Integers:
    names = np.fromiter(map(_name_hash, strings), np.uint64, len(strings))
    own = names[frames] + kinds.astype(np.uint64) * _OF_KIND
    levels = depths(parents)
    order = np.argsort(levels, kind="stable")
    ends = np.cumsum(np.bincount(levels))
    found = np.zeros(len(parents), dtype=np.uint64)
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        rows = order[begin:end]
        found[rows] = _mixed(found[parents[rows]] * _OF_PARENT + own[rows])
    return found.view(np.int64)


@lru_cache(maxsize=1 << 16)
def _name_hash(name: str) -> int:
    content = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    for shift, factor in _MIXERS:
        values = (values ^ (values >> shift)) * factor
    return values ^ (values >> _LAST_SHIFT)


def new_stacks(profile: Profile, hashes: Integers, known: set[int]) -> pa.Table:
    """Return the stacks that are not known yet, and add them to the known ones.

    Args:
        profile: A profile.
        hashes: Hash of each of its rows.
        known: Hashes of stacks that are stored.
    """
    every = hashes.tolist()
    if known.issuperset(every):
        return SCHEMAS["stacks"].empty_table()
    found: dict[int, int] = {}
    for row, each in enumerate(every):
        if each not in known:
            found.setdefault(each, row)
    known.update(found)
    rows = np.array(list(found.values()))
    names = [profile.name(row) if row else ROOT_NAME for row in rows.tolist()]
    places = [_place(name) for name in names]
    above = profile.parents[rows]
    columns = [
        pa.array(hashes[rows]),
        pa.array(hashes[above], mask=above < 0),
        pa.array(profile.depths()[rows]),
        pa.array(names, pa.string()),
        pa.array([KIND_NAMES[kind] for kind in profile.kinds[rows].tolist()], pa.string()),
        pa.array([file for file, _ in places], pa.string()),
        pa.array([line for _, line in places], pa.int64()),
    ]
    return pa.table(columns, schema=SCHEMAS["stacks"])


def _place(name: str) -> tuple[str | None, int | None]:
    """Return file and line of a Python frame, None for other names."""
    frame = parse_frame(name)
    if frame is None or int(frame.line[:20]) not in _INT64:
        return None, None
    return frame.file, int(frame.line[:20])


@dataclass(frozen=True, slots=True, eq=False)
class StackTree:
    """Stacks as a tree, in pre-order, so that globs of call paths can be matched.

    Attributes:
        hashes: Hash of each stack.
        parents: Row of each stack's parent, -1 for the root.
        strings: Name of each stack.
        kinds: Name of each stack's kind.
    """

    hashes: Integers
    parents: Indexes
    strings: Sequence[str]
    kinds: Sequence[str]

    @classmethod
    def of(cls, stacks: pa.Table) -> StackTree:
        """Return the tree of these stacks, of which a store without profiles has none.

        Raises:
            ProfileFormatError: They do not form a tree.
        """
        table = stacks.sort_by([("depth", "ascending"), ("name", "ascending")])
        hashes, depths = table["stack_hash"].to_numpy(), table["depth"].to_numpy()
        order = np.argsort(hashes)
        above = table["parent_hash"].fill_null(0).to_numpy()
        found = np.minimum(np.searchsorted(hashes, above, sorter=order), len(hashes) - 1)
        parents = order[found].astype("<i4")
        # One level apart, so that there is no way round.
        is_below = (hashes[parents] == above) & (depths[parents] + 1 == depths)
        is_below[:1] = depths[:1] == 0
        parents[:1] = -1
        if not is_below.all() or table["parent_hash"].null_count != min(len(hashes), 1):
            raise ProfileFormatError(
                "the call paths of the store do not form a tree: `proton store maintain` lists "
                "what is wrong; copy its table stacks back"
            )
        places = positions(parents)
        rows = np.argsort(places)
        table, above = table.take(rows), parents[rows]
        return cls(
            hashes[rows],
            np.where(above >= 0, places[above], -1).astype("<i4"),
            table["name"].to_pylist(),
            table["kind"].to_pylist(),
        )

    def frames(self) -> Indexes:
        """Return the index of each stack's name in ``strings``."""
        return np.arange(len(self.hashes), dtype="<i4")

    def path(self, row: int) -> tuple[str, ...]:
        """Return the names from below the root down to a stack; () for the root."""
        names: list[str] = []
        while row > 0:
            names.append(self.strings[row])
            row = int(self.parents[row])
        return tuple(reversed(names))


# Numbers of rows, and which of them are known.
Numbers = tuple[Array, Mask]
# Between which places of rows those below each row are.
Span = tuple[Array, Array]
_MOST_INTEGER = 2.0**62
_COUNT = "count"
_NS_PER_S = 1_000_000_000
_INT64 = range(-(2**63), 2**63)
_KEY = ("date", "job", "profile_id", "batch")
# Columns of samples that are not of the key.
_OF_ROW = [each for each in SCHEMAS["samples"] if each.name not in _KEY]


@dataclass(frozen=True, slots=True)
class ProfileKey:
    """The key of a profile in the tables.

    Attributes:
        time_unix_nano: When it began.
        job: Name of its job.
        profile_id: Hash of its file.
        batch: `new_batch` of the writing; samples of other batches do not count.
    """

    time_unix_nano: int
    job: str
    profile_id: str
    batch: str

    @property
    def date(self) -> date:
        """The day of the start, UTC."""
        return datetime.fromtimestamp(self.time_unix_nano // _NS_PER_S, UTC).date()

    def columns(self) -> dict[str, Any]:
        """Return the columns of the key."""
        return {
            "date": self.date,
            "job": self.job,
            "profile_id": self.profile_id,
            "batch": self.batch,
        }


def new_batch() -> str:
    """Return a new id of a writing: the time in ms since 1970 and a random number.

    Ids of later writings are greater, as far as clocks agree.
    """
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}"


def age_hours(batch: str) -> float:
    """Return how long ago a writing began."""
    return (time.time() - int(batch[:12], 16) / 1000.0) / 3600.0


# -- profiles ------------------------------------------------------------------------------------
def profile_row(profile: Profile, key: ProfileKey) -> dict[str, Any]:
    """Return the columns of the table ``profiles`` that the profile says."""
    facts = profile.provenance
    start, end = _integer(facts.get("start_time_ns")), _integer(facts.get("end_time_ns"))
    recorded_ns = _integer(facts.get("recorded_ns"))  # of a run with pauses
    if recorded_ns is None and start is not None and end is not None:
        recorded_ns = end - start
    git, gpu = _first_map(facts.get("git")), _first_map(facts.get("gpus_at_start"))
    return {
        **key.columns(),
        "time_unix_nano": key.time_unix_nano,
        "duration_nano": recorded_ns,
        **{name: _integer(facts.get(name)) for name in ("rank", "world_size", "pid")},
        "host": _text(facts.get("host")),
        "commit": _text(git.get("revision")),
        "dirty": git["dirty"] if isinstance(git.get("dirty"), bool) else None,
        "branch": _text(git.get("branch")),
        "gpu_uuid": _text(gpu.get("uuid")),
        "arch": next((device.arch for device in profile.devices if device.arch), None),
        "driver": _text(gpu.get("driver")),
        "nodes": len(profile),
        "partial": profile.partial,
        "dropped": list(profile.dropped.items()),
        "integer_metrics": [
            name for name, column in profile.columns.items() if column.kind is ValueKind.INT
        ],
        "totals": [
            (name, float(profile.inclusive(name)[0]))
            for name, column in profile.columns.items()
            if column.kind.is_number and column.spec.aggregation is Aggregation.INCLUSIVE
        ],
        "devices": [asdict(device) for device in profile.devices],
        "variants": [
            {**asdict(variant), "instructions": list(variant.instructions.items())}
            for variant in profile.variants
        ],
        "device_use": json.dumps([asdict(use) for use in profile.device_use]),
        "attributes": json.dumps(facts.to_plain(), default=str),
    }


def _first_map(value: Any) -> Mapping[str, Any]:
    """Return a map, or the first map of a list; an empty one for anything else."""
    listed = value if isinstance(value, tuple) else (value,)
    return next((each for each in listed if isinstance(each, Mapping)), {})


def _integer(value: Any) -> int | None:
    return value if type(value) is int and value in _INT64 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


# -- samples -------------------------------------------------------------------------------------
def sample_rows(profile: Profile, hashes: Integers, key: ProfileKey) -> pa.Table:
    """Return the rows of the table ``samples``.

    A row of the profile has one for each number and text, with the row's calls beside it. Calls
    have one of their own only where no other metric adds up. Vectors are left out.

    Args:
        profile: The profile.
        hashes: `stack_hashes` of the profile.
        key: Its key.
    """
    nodes = _Nodes.of(profile, hashes)
    parts: list[dict[str, pa.Array]] = []
    is_counted = np.zeros(len(profile), dtype=np.bool_)
    for name, column in profile.columns.items():
        if name != _COUNT and not column.kind.is_vector:
            has_value = column.known if column.kind.is_number else column.valid
            parts += nodes.samples(column, has_value)
            if column.spec.aggregation is Aggregation.INCLUSIVE:
                is_counted |= has_value
    if nodes.calls is not None:
        parts += nodes.samples(nodes.calls, nodes.calls.known & ~is_counted)
    if not parts:
        return SCHEMAS["samples"].empty_table()
    rows, constant = sum(len(part["node"]) for part in parts), key.columns()
    columns = [
        pa.repeat(pa.scalar(constant[name]), rows)
        if name in constant
        else pa.chunked_array([part[name] for part in parts])
        for name in SCHEMAS["samples"].names
    ]
    return pa.table(columns, schema=SCHEMAS["samples"])


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """Facts of a profile's rows, as columns of the table."""

    profile: Profile
    hashes: Integers
    code_hashes: Array
    calls: MetricColumn | None

    @classmethod
    def of(cls, profile: Profile, hashes: Integers) -> _Nodes:
        codes = [variant.code_hash or None for variant in profile.variants]
        calls = profile.columns.get(_COUNT)
        is_usable = calls is not None and calls.kind.is_number
        return cls(
            profile,
            hashes,
            chosen(codes, profile.variant_rows),
            calls if is_usable else None,
        )

    def samples(self, column: MetricColumn, has_value: Mask) -> Iterator[dict[str, pa.Array]]:
        """Yield the columns of one metric, without the key, if it has any rows.

        Args:
            column: The metric.
            has_value: Which rows of the profile have a value of it.
        """
        spec, profile = column.spec, self.profile
        is_text = column.kind is ValueKind.STR
        adds_up = not is_text and spec.aggregation is Aggregation.INCLUSIVE
        rows = np.flatnonzero(has_value | are_above(profile, has_value) if adds_up else has_value)
        if not len(rows):
            return
        values, is_known = column.values[rows], has_value[rows]
        calls, sketches = self._calls(spec, rows, is_known)
        columns = {
            "node": pa.array(rows.astype("<i4")),
            "stack_hash": pa.array(self.hashes[rows]),
            "device": _index(profile.device_rows[rows]),
            "variant": _index(profile.variant_rows[rows]),
            "code_hash": pa.array(self.code_hashes[rows], pa.string()),
            "sample_type": pa.repeat(pa.scalar(spec.base), len(rows)),
            "sample_unit": pa.repeat(pa.scalar(spec.unit), len(rows)),
            "aggregation": pa.repeat(pa.scalar(spec.aggregation.value), len(rows)),
            **{name: pa.array(each, mask=~known) for name, (each, known) in calls.items()},
        }
        if is_text:
            columns["text"] = pa.array(chosen(column.strings, values), pa.string())
        else:
            columns["value"] = pa.array(values.astype("f8"), mask=~is_known)
        if sketches is not None:
            columns["sketch"] = sketches
        if adds_up:
            columns["below"] = below(profile, rows, values=(values, is_known), calls=calls)
        lacking = (each for each in _OF_ROW if each.name not in columns)
        yield columns | {each.name: pa.nulls(len(rows), each.type) for each in lacking}

    def _calls(
        self, spec: MetricSpec, rows: Array, is_known: Mask
    ) -> tuple[dict[str, Numbers], pa.StructArray | None]:
        """Return calls and extremes of rows, and their sketches; none of those without a value."""
        found: dict[str, Numbers] = {}
        if self.calls is not None and spec.aggregation is Aggregation.INCLUSIVE:
            counts = self.calls.values[rows].astype("<i8")
            found["count"] = counts, is_known & self.calls.known[rows]
        table = self.profile.samples(spec.name)
        if table is not None:
            is_wanted = np.zeros(len(self.profile), dtype=np.bool_)
            is_wanted[rows] = is_known
            table = table if is_wanted[table.rows].all() else table.of_rows(is_wanted)
        if table is None or not len(table):
            return found, None
        places = np.searchsorted(table.rows, rows) % len(table)
        has_calls = table.rows[places] == rows
        found["min"] = table.minimum[places], has_calls
        found["max"] = table.maximum[places], has_calls
        counts, are_counted = found.get(
            "count", (np.zeros(len(rows), dtype="<i8"), np.zeros_like(is_known))
        )
        counts = np.where(are_counted, counts, table.n[places])
        found["count"] = counts, are_counted | has_calls
        return found, sketches_of(table, rows)


def _index(places: Array) -> pa.Array:
    return pa.array(places, mask=places < 0)


# -- what lies below rows ------------------------------------------------------------------------
def are_above(profile: Profile, flags: Mask) -> Mask:
    """Return which rows of a profile have flagged rows below them."""
    running = _running(flags)
    found: Mask = running[profile.subtree_end] > running[1:]
    return found


def below(
    profile: Profile, rows: Array, *, values: Numbers, calls: Mapping[str, Numbers]
) -> pa.StructArray:
    """Return the column ``below`` of rows, none where no row below has a value.

    Calls below a row that has calls are parts of these, and left out.

    Args:
        profile: The profile.
        rows: The rows that have a value, or rows below them that have.
        values: Their values.
        calls: Their columns ``count``, ``min`` and ``max``, as far as they are known.
    """
    places = np.arange(len(rows))
    # Rows below one are those between these places.
    span = places + 1, np.searchsorted(rows, profile.subtree_end[rows])
    number = _differences(values[1], span)
    is_apart = number > 0
    if "count" in calls:
        counts, are_known = calls["count"]
        is_apart &= ~((counts > 0) & are_known)
    columns = {"value": pa.array(_sums(profile, rows, values, span=span).astype("f8"))}
    for name in ("count", "min", "max"):
        if name not in calls:
            columns[name] = pa.nulls(len(rows), BELOW.field(name).type)
            continue
        known = _differences(calls[name][1], span)
        if name == "count":
            found, is_known = _sums(profile, rows, calls[name], span=span), known > 0
        else:
            found, is_known = _extremes(calls[name], span, is_least=name == "min"), known == number
        columns[name] = pa.array(found, mask=~(is_known & is_apart))
    return pa.StructArray.from_arrays(
        [columns[field.name] for field in BELOW], fields=list(BELOW), mask=pa.array(number == 0)
    )


def _running(values: Array) -> Array:
    running = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=running[1:])
    return running


def _differences(values: Array, span: Span) -> Integers:
    running = _running(values)
    found: Integers = running[span[1]] - running[span[0]]
    return found


def _sums(profile: Profile, rows: Array, values: Numbers, *, span: Span) -> Array:
    """Return the sums of the values below rows: exact ones of integers."""
    own = np.where(values[1], values[0], 0)
    if own.dtype.kind == "i" and float(np.abs(own.astype("f8")).sum()) < _MOST_INTEGER:
        return _differences(own, span)
    # Differences of one running sum would lose small values.
    spread = np.zeros(len(profile))
    spread[rows] = own
    totals = preorder.sums(profile.parents, spread)
    return np.bincount(profile.parents[1:], totals[1:], minlength=len(profile))[rows]


def _extremes(values: Numbers, span: Span, *, is_least: bool) -> Array:
    """Return the least or largest value below rows, from those of runs of 1, 2, 4, ... rows."""
    join, rest = (np.minimum, np.inf) if is_least else (np.maximum, -np.inf)
    begins, ends = span
    found, of_run, length = np.full(len(begins), rest), np.where(values[1], values[0], rest), 1
    while len(rows := np.flatnonzero(ends - begins >= length)):
        # Two runs cover what is at most twice as long; longer ones are looked up later.
        found[rows] = join(of_run[begins[rows]], of_run[ends[rows] - length])
        of_run, length = join(of_run[:-length], of_run[length:]), 2 * length
    return found
