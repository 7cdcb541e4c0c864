"""Profiles as relations: the tables of a query as arrays, without a database."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.choices import QUANTILES
from proton_bench.analysis.view.names import stable_name
from proton_bench.model.arrays import Array, Floats
from proton_bench.model.columns import (
    array_of,
    masked,
    metric_columns,
    objects,
    row_columns,
)
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.profile import Profile

# `nodes` has a column more for each metric: `wide_columns`.
_COLUMNS = {
    "runs": "run VARCHAR, file VARCHAR, nodes BIGINT, partial BOOLEAN, dropped BIGINT, "
    "start_time_ns BIGINT, end_time_ns BIGINT, estimated_cost_ns BIGINT, "
    "estimated_cost_share DOUBLE, backend VARCHAR, mode VARCHAR, host VARCHAR, pid BIGINT, "
    "rank BIGINT, provenance VARCHAR",
    "nodes": "run VARCHAR, node BIGINT, parent BIGINT, subtree_end BIGINT, depth BIGINT, "
    "name VARCHAR, kind VARCHAR, frame BIGINT, device BIGINT, variant BIGINT",
    "metrics": "run VARCHAR, node BIGINT, metric VARCHAR, unit VARCHAR, aggregation VARCHAR, "
    "value DOUBLE, inclusive DOUBLE, text VARCHAR, vector DOUBLE[]",
    "frames": "run VARCHAR, frame BIGINT, name VARCHAR, stable_name VARCHAR, file VARCHAR, "
    "line BIGINT, function VARCHAR, nodes BIGINT",
    "devices": "run VARCHAR, device BIGINT, kind VARCHAR, index BIGINT, arch VARCHAR, "
    "num_sms BIGINT, clock_rate_khz BIGINT, memory_clock_rate_khz BIGINT, bus_width_bits BIGINT, "
    "busy_ns BIGINT, idle_ns BIGINT, waiting_ns BIGINT",
    "variants": "run VARCHAR, variant BIGINT, code_hash VARCHAR, grid BIGINT[], block BIGINT[], "
    "shared_bytes BIGINT, registers BIGINT, signature VARCHAR, raw_name VARCHAR, config VARCHAR, "
    "local_bytes BIGINT, instructions MAP(VARCHAR, BIGINT)",
    "distributions": "run VARCHAR, node BIGINT, metric VARCHAR, n BIGINT, sum DOUBLE, "
    "minimum DOUBLE, maximum DOUBLE, geometric_mean DOUBLE, "
    + ", ".join(f"{each} DOUBLE" for each in QUANTILES),
}

# Table -> column -> type.
TABLES: dict[str, dict[str, str]] = {
    table: dict(each.split(" ", 1) for each in re.split(r", (?=\w+ )", columns))
    for table, columns in _COLUMNS.items()
}


def quantiles(table: DistributionTable) -> Floats:
    """Return a line per distribution with the `QUANTILES` of its samples, NaN where unknown.

    They are those of `Distribution.quantile`: exact where single samples were kept, which is up to
    64 of them, and else within `Distribution.relative_error`.
    """
    wanted = list(QUANTILES.values())
    found = np.full((len(table), len(wanted)), np.nan)
    kept, buckets = np.diff(table.sample_offsets), np.diff(table.bucket_offsets)
    is_raw = (kept == table.n) & (buckets == 0) & (table.n > 0)
    # A matrix for each number of samples: numpy then does all of them in one call.
    for count in np.unique(kept[is_raw]).tolist():
        places = np.flatnonzero(is_raw & (kept == count))
        samples = _samples(table, places, count)
        with np.errstate(invalid="ignore"):
            known = np.quantile(samples, wanted, axis=1).T
        # Samples are float32, which may be rounded past the extremes.
        lows, highs = table.minimum[places, None], table.maximum[places, None]
        found[places] = np.clip(known, lows, highs)
    for place in np.flatnonzero(~is_raw).tolist():
        entry = table.get(int(table.rows[place]))
        if entry is not None and not entry.moments_only and entry.n:
            values = entry.quantiles(wanted)
            found[place] = [np.nan if value is None else value for value in values]
    return found


def _samples(table: DistributionTable, places: Array, count: int) -> Array:
    starts = table.sample_offsets[places].astype(np.int64)
    found: Array = table.samples[starts[:, None] + np.arange(count)].astype(np.float64)
    return found


_INT64 = range(-(2**63), 2**63)
_FEW_LINES = 1000


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A profile with its label in the column ``run`` and its file."""

    label: str
    file: str
    profile: Profile


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """Lines for one table.

    Attributes:
        table: Name of the table.
        constants: Value of the columns that have one for all lines, such as ``run``.
        columns: Arrays of one length; masked elements and None have no value.
    """

    table: str
    constants: Mapping[str, str | None]
    columns: Mapping[str, Array]

    def __len__(self) -> int:
        return min(map(len, self.columns.values()), default=0)


def wide_columns(profiles: Sequence[Profile]) -> dict[str, str]:
    """Return the columns that metrics add to ``nodes``, with their types.

    A metric that holds numbers has a column of its full name with the node's own value; an
    inclusive one also ``<name> (inc)`` with the sum over the subtree. SQL ignores case: of several
    names that then are one, the first is a column; the table ``metrics`` holds all of them.
    """
    taken = set(TABLES["nodes"])
    found: dict[str, str] = {}
    for profile in profiles:
        for name, values in _numbers(profile):
            # Sums beyond 64 bits become floats.
            kind = "BIGINT" if values.dtype.kind == "i" else "DOUBLE"
            if name in found:
                found[name] = kind if found[name] == kind else "DOUBLE"
            elif name.casefold() not in taken:
                taken.add(name.casefold())
                found[name] = kind
    return found


def _numbers(profile: Profile) -> Iterator[tuple[str, Array]]:
    for metric, suffix, values in metric_columns(profile):
        # A name with a zero byte cannot be written in SQL.
        if values.dtype != object and "\0" not in metric:
            yield f"{metric}{suffix}", values


def relations(
    run: LabelledRun, tables: Sequence[str], columns: Sequence[str]
) -> Iterator[Relation]:
    """Yield the lines of one run.

    Args:
        run: The run.
        tables: Which tables.
        columns: Columns that metrics add to ``nodes``.
    """
    for table in tables:
        if table == "nodes":
            yield _nodes(run, columns)
        else:
            yield from _joined(_BUILDERS[table](run))


def _joined(found: Iterator[Relation]) -> Iterator[Relation]:
    """Yield the same lines in fewer relations, because each has a cost in the database."""
    for _, alike in groupby(found, key=_shape):
        parts = list(alike)
        if len(parts) == 1:
            yield parts[0]
            continue
        lengths = [len(each) for each in parts]
        columns: dict[str, Array] = {
            name: np.repeat(objects([each.constants[name] for each in parts]), lengths)
            for name in parts[0].constants
        }
        for name in parts[0].columns:
            arrays = [each.columns[name] for each in parts]
            columns[name] = np.ma.concatenate(arrays)  # type: ignore[no-untyped-call]
        yield Relation(parts[0].table, {}, columns)


def _shape(relation: Relation) -> Hashable:
    """Return a key of relations that can be joined; long ones stay separate."""
    names = (*relation.constants, *relation.columns)
    return (relation.table, names) if len(relation) < _FEW_LINES else object()


def _nodes(run: LabelledRun, columns: Sequence[str]) -> Relation:
    profile = run.profile
    found: dict[str, Array] = {
        "node": np.arange(len(profile)),
        "subtree_end": profile.subtree_end,
        "frame": profile.frames,
        **row_columns(profile),
        **{name: values for name, values in _numbers(profile) if name in columns},
    }
    return Relation("nodes", {"run": run.label}, found)


def _metrics(run: LabelledRun) -> Iterator[Relation]:
    for name, column in run.profile.columns.items():
        constants = {
            "run": run.label,
            "metric": name,
            "unit": column.spec.unit or None,
            "aggregation": column.spec.aggregation.value,
        }
        yield Relation("metrics", constants, _values(run.profile, name, column))


def _values(profile: Profile, name: str, column: MetricColumn) -> dict[str, Array]:
    if not column.kind.is_number:
        where = np.flatnonzero(column.valid)
        cells = _cells([column.get(row) for row in where.tolist()])
        return {"node": where, "text" if column.kind is ValueKind.STR else "vector": cells}
    if column.spec.aggregation is not Aggregation.INCLUSIVE:
        where = np.flatnonzero(column.valid)
        return {"node": where, "value": column.values[where]}
    where = np.flatnonzero(profile.covered(name))
    return {
        "node": where,
        "value": masked(column.values[where], column.valid[where]),
        "inclusive": profile.inclusive(name)[where],
    }


def _frames(run: LabelledRun) -> Iterator[Relation]:
    profile = run.profile
    used, counts = np.unique(profile.frames, return_counts=True)
    names = [profile.strings[place] for place in used.tolist()]
    parts = [_python_parts(name) for name in names]
    yield Relation(
        "frames",
        {"run": run.label},
        {
            "frame": used,
            "name": objects(names),
            "stable_name": objects([stable_name(name) for name in names]),
            "file": objects([part[0] for part in parts]),
            "line": array_of("i8", [part[1] for part in parts]),
            "function": objects([part[2] for part in parts]),
            "nodes": counts,
        },
    )


def _python_parts(name: str) -> tuple[str | None, int | None, str | None]:
    """Return file, line and function of ``file:line@function``; None for other names."""
    place, at, function = name.partition("@")
    file, colon, line = place.rpartition(":")
    if at and colon and line.isascii() and line.isdigit() and int(line[:20]) in _INT64:
        return file, int(line[:20]), function
    return None, None, None


def _runs(run: LabelledRun) -> Iterator[Relation]:
    profile, facts = run.profile, run.profile.provenance
    cost = own_cost(profile)
    known: dict[str, Any] = {
        "nodes": len(profile),
        "partial": profile.partial,
        "dropped": sum(profile.dropped.values()),
        **{name: _integer(facts.get(name)) for name in ("start_time_ns", "end_time_ns", "rank")},
        "pid": _integer(facts.get("pid")),
        "estimated_cost_ns": round(cost.cost_ns) if cost is not None else None,
        "estimated_cost_share": cost.share if cost is not None else None,
        **{name: _text(facts.get(name)) for name in ("backend", "mode", "host")},
        "provenance": json.dumps(facts.to_plain(), default=str),
        "file": run.file.encode("utf-8", "backslashreplace").decode(),
    }
    columns = {name: _array(TABLES["runs"][name], [value]) for name, value in known.items()}
    yield Relation("runs", {"run": run.label}, columns)


def _devices(run: LabelledRun) -> Iterator[Relation]:
    devices = run.profile.devices
    uses = {use.device: use for use in run.profile.device_use if use.scope is None}
    columns: dict[str, Array] = {
        "device": np.arange(len(devices)),
        # 0 is a valid device number; elsewhere it means unknown.
        "index": array_of("i8", [device.index for device in devices]),
    }
    for name in ("busy_ns", "idle_ns", "waiting_ns"):
        found = [getattr(uses.get(place), name, None) for place in range(len(devices))]
        columns[name] = array_of("i8", found)
    yield Relation("devices", {"run": run.label}, _attributes("devices", devices, columns))


def _variants(run: LabelledRun) -> Iterator[Relation]:
    variants = run.profile.variants
    columns = _attributes("variants", variants, {"variant": np.arange(len(variants))})
    yield Relation("variants", {"run": run.label}, columns)


def _attributes(table: str, objects: Sequence[Any], given: dict[str, Array]) -> dict[str, Array]:
    """Return an array of each attribute beside the given ones; 0 and "" mean unknown."""
    columns = dict(given)
    for name, kind in TABLES[table].items():
        if name not in ("run", *given):
            columns[name] = _array(kind, [getattr(each, name) or None for each in objects])
    return columns


def _distributions(run: LabelledRun) -> Iterator[Relation]:
    for name, table in run.profile.distributions.items():
        positive = np.maximum(table.n - table.zero_count, 1)
        columns: dict[str, Array] = {
            "node": table.rows,
            "n": table.n,
            "sum": table.total,
            "minimum": masked(table.minimum, table.n > 0),
            "maximum": masked(table.maximum, table.n > 0),
            "geometric_mean": masked(
                np.exp(table.sum_ln / positive), (table.zero_count == 0) & (table.n > 0)
            ),
        }
        for what, values in zip(QUANTILES, quantiles(table).T, strict=True):
            columns[what] = masked(values, np.isfinite(values))
        yield Relation("distributions", {"run": run.label, "metric": name}, columns)


_BUILDERS: dict[str, Callable[[LabelledRun], Iterator[Relation]]] = {
    "runs": _runs,
    "metrics": _metrics,
    "frames": _frames,
    "devices": _devices,
    "variants": _variants,
    "distributions": _distributions,
}


# -- values --------------------------------------------------------------------------------------
def _array(kind: str, values: Sequence[Any]) -> Array:
    dtype = {"BIGINT": "i8", "DOUBLE": "f8", "BOOLEAN": "?"}.get(kind)
    return _cells(values) if dtype is None else array_of(dtype, values)


def _cells(values: Sequence[Any]) -> Array:
    return objects(list(map(_cell, values)))


def _cell(value: Any) -> Any:
    if isinstance(value, dict):  # DuckDB takes other dicts for structs where it can
        return {"key": list(value), "value": [_integer(each) for each in value.values()]}
    return list(value) if isinstance(value, tuple) else value


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and value in _INT64 else None


def _text(value: Any) -> str | None:
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    return None if value is None else str(value)
