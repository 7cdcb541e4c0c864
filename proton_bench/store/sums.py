"""Sums of stored profiles: one in place of many, with the quantiles of all their calls."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from proton_bench.store.engines import open_memory
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.engines import pyarrow_compute as pc
from proton_bench.store.rows import ProfileKey, new_batch
from proton_bench.store.sketches import merged
from proton_bench.store.store import Snapshot
from proton_bench.store.workers import open_workers

__all__ = ["sums_of"]

# Fewer take as long as to begin another task.
_SAMPLES_OF_TASK = 50_000
_OF_PROCESS = ("rank", "local_rank", "host", "pid", "worker")
_KEYS = ("part", "stack_hash", "code", "sample_type", "sample_unit", "aggregation")


def sums_of(
    snapshot: Snapshot, profiles: pa.Table, groups: Sequence[Hashable], *, quantiles: bool = True
) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """Yield the sum of each group of profiles: its row of ``profiles``, and its samples.

    A sum is a profile whose ``members`` are the profiles that it sums. Its samples have no key, and
    are in the order of its rows.

    Args:
        snapshot: The store.
        profiles: Rows of ``profiles``, one or more.
        groups: What the profiles of one group have in common, for each row.
        quantiles: Whether the sums have the quantiles of their calls.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    parts = pa.array([numbers[group] for group in groups], pa.int32())
    numbered = profiles.append_column("part", parts)
    members = numbered.select(["date", "job", "profile_id", "batch", "part"])
    with open_workers() as workers:
        sums = partial(_sums, snapshot, members, quantiles=quantiles)
        count = min(workers.tasks, 1 + sum(profiles["samples"].to_pylist()) // _SAMPLES_OF_TASK)
        shared = pa.concat_tables(workers.map(sums, _hash_ranges(count)))
    with open_memory() as connection:
        connection.register("shared", shared)
        found = connection.sql(_NUMBERED).to_arrow_table()
    for number in numbers.values():
        rows = numbered.filter(pc.equal(numbered["part"], number)).drop_columns(["part"])
        own = found.filter(pc.equal(found["part"], number)).drop_columns(["part"])
        yield _sum_row(rows.to_pylist()), own


def _hash_ranges(count: int) -> Iterator[tuple[int, int]]:
    """Yield ranges that have about as many hashes of stacks each.

    No sum is in two of them, and of compacted samples each is in files and row groups of its own.
    """
    step = 2**64 // count
    cuts = [-(2**63) + place * step for place in range(count)]
    for first, after in pairwise([*cuts, 2**63]):
        yield first, after - 1


def _sums(
    snapshot: Snapshot, members: pa.Table, hashes: tuple[int, int], *, quantiles: bool
) -> pa.Table:
    """Return the sums of the samples whose stacks have these hashes."""
    with snapshot.connect() as connection:
        connection.register("members", members)
        first, last = hashes
        days = _days(members)
        connection.execute(_FOUND.format(quantiles=quantiles, days=days, first=first, last=last))
        return connection.sql(_SUMS).to_arrow_table()


def _days(profiles: pa.Table) -> str:
    """Return the days of profiles as literals, so that files of others are not opened."""
    return ", ".join(f"DATE '{day}'" for day in profiles["date"].unique().to_pylist())


def _sum_row(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of the sum of profiles: the first one, without what others differ in."""
    members = sorted(row["profile_id"] for row in rows)
    id = hashlib.blake2b("".join(members).encode(), digest_size=16).hexdigest()
    start = min(row["time_unix_nano"] for row in rows)
    durations = [row["duration_nano"] for row in rows if row["duration_nano"] is not None]
    facts = json.loads(rows[0]["attributes"])
    common = {
        name: value if all(row[name] == value for row in rows) else None
        for name, value in rows[0].items()
    }
    return {
        **common,
        **ProfileKey(start, rows[0]["job"], id, new_batch()).columns(),
        "time_unix_nano": start,
        "duration_nano": max(durations, default=None),
        "partial": any(row["partial"] for row in rows),
        "nodes": max(row["nodes"] for row in rows),
        "members": members,
        "dropped": _added(rows, "dropped"),
        "totals": _added(rows, "totals"),
        "integer_metrics": rows[0]["integer_metrics"],
        "devices": rows[0]["devices"],
        "variants": [],
        "device_use": "[]",
        "attributes": json.dumps({k: v for k, v in facts.items() if k not in _OF_PROCESS}),
        "source": f"{len(rows)} profiles",
    }


def _added(rows: Sequence[dict[str, Any]], name: str) -> list[tuple[str, Any]]:
    values: Counter[str] = Counter()
    for row in rows:
        values.update(dict(row[name]))
    return list(values.items())


_FOUND = """
CREATE TEMP TABLE found AS
SELECT part, node, stack_hash, device, coalesce(code_hash, '') AS code, sample_type, sample_unit,
    aggregation, value, text, count, min, max, CASE WHEN {quantiles} THEN sketch END AS sketch
FROM stored_samples JOIN members USING (date, job, profile_id, batch)
WHERE date IN ({days}) AND stack_hash BETWEEN ({first})::BIGINT AND {last}"""
_OTHERS = f"""
SELECT {", ".join(_KEYS)}, min(node) AS node, min(device) AS device,
    CASE WHEN aggregation != 'pty' THEN sum(value ORDER BY value)
        WHEN min(value) = max(value) THEN min(value) END AS value,
    CASE WHEN min(text) = max(text) THEN min(text) END AS text
FROM found GROUP BY {", ".join(_KEYS)}"""
_SUMS = f"""
SELECT *, min(node) OVER (PARTITION BY part, stack_hash, code) AS first_node
FROM ({_OTHERS}) JOIN ({merged("found", _KEYS)}) USING ({", ".join(_KEYS)})"""
# Properties that differ have no sum.
_NUMBERED = """
SELECT part, (dense_rank() OVER (PARTITION BY part ORDER BY first_node, stack_hash, code))::INT
    AS node, stack_hash, device, NULL::INT AS variant, nullif(code, '') AS code_hash, sample_type,
    sample_unit, aggregation, value, text, count, min, max, sketch
FROM shared WHERE value IS NOT NULL OR text IS NOT NULL
ORDER BY part, node, sample_type, sample_unit, aggregation"""
