"""Sums of stored profiles: one in place of many, with the quantiles of all their calls.

A sum is a profile whose ``members`` are the profiles that it sums. Its id is a hash of their ids,
so the sum of the same profiles is found by it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from itertools import pairwise
from typing import Any

from proton_bench.formats.base import corrupt, decoded, plain_map
from proton_bench.store.engines import open_memory
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.engines import pyarrow_compute as pc
from proton_bench.store.rows import ProfileKey, new_batch
from proton_bench.store.schema import CALLED_BELOW, SCHEMAS
from proton_bench.store.sketches import merged
from proton_bench.store.store import SAMPLE_ORDER, Partition, Snapshot, Store, delete, is_among
from proton_bench.store.workers import open_workers

# Fewer take as long as to begin another task; more do not fit into the memory of a small machine.
_SAMPLES_OF_TASK, _SAMPLES_AT_ONCE = 50_000, 1_000_000
_OF_PROCESS = ("rank", "local_rank", "host", "pid", "worker")
_KEYS = ("part", "stack_hash", "code", "sample_type", "sample_unit", "aggregation")


def unsummed(snapshot: Snapshot, before: date, *, least: int) -> list[Partition]:
    """Return the days before one, with their jobs, that have runs to sum.

    Args:
        snapshot: The store.
        before: The day.
        least: The least number of profiles of a run that are worth a sum.
    """
    with snapshot.connect(_UNSUMMED) as reader:
        found = reader.rows(
            f"SELECT DISTINCT date, job FROM (SELECT date, job FROM ({_UNSUMMED}) WHERE date < ? "
            "GROUP BY date, job, run HAVING count(*) >= ?) ORDER BY ALL",
            [before, least],
        )
        return [Partition(*each) for each in found]


def sum_runs(store: Store, partition: Partition, *, least: int) -> int:
    """Add the sum of each run's profiles that are in none, and return their number.

    Sums are added as `ingest.add_files` adds profiles: what is interrupted adds none.

    Args:
        store: The store.
        partition: The day and job.
        least: The least number of profiles of a run that are worth a sum.

    Raises:
        OutputError: The store cannot be written.
        ProfileFormatError: The store is damaged.
    """
    _remove_doubled(store, partition)
    samples, profiles = [], []
    snapshot = store.snapshot()
    with snapshot.connect(_UNSUMMED) as reader:
        new = reader.table(
            f"FROM ({_UNSUMMED}) WHERE date = $day AND job = $job "
            f"QUALIFY count(*) OVER (PARTITION BY run) >= $least",
            {**partition._asdict(), "least": least},
        )
    for facts, found in sums_of(snapshot, new, new["run"].to_pylist()):
        samples.append(_with_key(found, facts))
        profiles.append({**facts, "samples": len(found)})
    if profiles:
        # Compaction leaves a single file as it is.
        store.append("sums", pa.concat_tables(samples).sort_by(SAMPLE_ORDER[0]))
        store.append("profiles", pa.Table.from_pylist(profiles, schema=SCHEMAS["profiles"]))
    return sum(len(facts["members"]) for facts in profiles)


def _remove_doubled(store: Store, partition: Partition) -> None:
    """Remove sums of profiles that are in another one, of a command that ran at the same time."""
    with store.snapshot().connect(_DOUBLED) as reader:
        found = [id for (id,) in reader.rows(_DOUBLED, partition._asdict())]
    if found:
        delete(store, "profiles", f"{partition.condition} AND {is_among('profile_id', found)}")


def _with_key(rows: pa.Table, facts: dict[str, Any]) -> pa.Table:
    schema = SCHEMAS["sums"]
    for name in ("date", "job", "profile_id", "batch"):
        rows = rows.append_column(name, pa.repeat(pa.scalar(facts[name]), len(rows)))
    return rows.select(schema.names).cast(schema)


def sum_id(members: Iterable[str]) -> str:
    """Return the id of the sum of profiles with these ids."""
    return hashlib.blake2b("".join(sorted(members)).encode(), digest_size=16).hexdigest()


def sums_of(
    snapshot: Snapshot, profiles: pa.Table, groups: Sequence[Hashable], *, quantiles: bool = True
) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """Yield the sum of each group of profiles: its row of ``profiles``, and its samples.

    The samples have no key, and are in the order of their rows.

    Args:
        snapshot: The store.
        profiles: Rows of ``profiles``.
        groups: What the profiles of one group have in common, for each row.
        quantiles: Whether the sums have the quantiles of their calls.
    """
    if not len(profiles):
        return
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    parts = pa.array([numbers[group] for group in groups], pa.int32())
    numbered = profiles.append_column("part", parts)
    members = numbered.select(["date", "job", "profile_id", "batch", "part"])
    samples = sum(profiles["samples"].to_pylist())
    with open_workers() as workers:
        count = min(workers.tasks, 1 + samples // _SAMPLES_OF_TASK)
        count = max(count, -(-samples // _SAMPLES_AT_ONCE))
        sums = partial(_sums, snapshot, members, quantiles=quantiles)
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
    with snapshot.connect(_FOUND, Partition.of_rows(members)) as reader:
        reader.register("members", members)
        first, last = hashes
        reader.execute(_FOUND.format(quantiles=quantiles, first=first, last=last))
        reader.register("calls", merged(reader.table(_CALLS), _KEYS))
        return reader.table(_SUMS)


def _sum_row(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of the sum of profiles: the first one, without what others differ in."""
    rows = sorted(rows, key=lambda row: (row["rank"] is None, row["rank"], row["profile_id"]))
    members = sorted(row["profile_id"] for row in rows)
    start = min(row["time_unix_nano"] for row in rows)
    durations = [row["duration_nano"] for row in rows if row["duration_nano"] is not None]
    facts = facts_of(rows[0])
    common = {
        name: value if all(row[name] == value for row in rows) else None
        for name, value in rows[0].items()
    }
    return {
        **common,
        **ProfileKey(start, rows[0]["job"], sum_id(members), new_batch()).columns(),
        "time_unix_nano": start,
        "duration_nano": max(durations, default=None),
        "partial": any(row["partial"] for row in rows),
        "nodes": max(row["nodes"] for row in rows),
        "members": members,
        "dropped": _added(rows, "dropped"),
        "totals": _added(rows, "totals"),
        "integer_metrics": rows[0]["integer_metrics"],
        "devices": max((row["devices"] for row in rows), key=len),
        "variants": [],
        "device_use": "[]",
        "attributes": json.dumps({k: v for k, v in facts.items() if k not in _OF_PROCESS}),
        "source": f"{len(rows)} profiles",
    }


def facts_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the provenance in a row of ``profiles``.

    Raises:
        ProfileFormatError: It is not that of a profile.
    """
    source = f"the profile {row['profile_id']} of the store"
    found = decoded(lambda: json.loads(row["attributes"]), source)
    if not isinstance(found, dict):
        raise corrupt(source, "its provenance is not a map")
    return plain_map(found, source)


def _added(rows: Sequence[dict[str, Any]], name: str) -> list[tuple[str, Any]]:
    values: Counter[str] = Counter()
    for row in rows:
        values.update(dict(row[name]))
    return list(values.items())


_UNSUMMED = "FROM all_profiles ANTI JOIN summed USING (date, job, profile_id) WHERE members IS NULL"
# Of sums with a profile in common those that are not the first, while their profiles are there.
_DOUBLED = """
SELECT DISTINCT sum_id FROM summed SEMI JOIN all_profiles USING (date, job, profile_id)
WHERE date = $day AND job = $job
QUALIFY sum_id != min(sum_id) OVER (PARTITION BY profile_id)"""
_FOUND = """
CREATE TEMP TABLE found AS
SELECT part, node, stack_hash, device, coalesce(code_hash, '') AS code, sample_type, sample_unit,
    aggregation, value, text, count, min, max, CASE WHEN {quantiles} THEN sketch END AS sketch,
    below
FROM all_samples JOIN members USING (date, job, profile_id, batch)
WHERE stack_hash BETWEEN ({first})::BIGINT AND {last}"""
_OTHERS = f"""
SELECT {", ".join(_KEYS)}, min(node) AS node, min(device) AS device,
    CASE WHEN aggregation != 'pty' THEN sum(value ORDER BY value)
        WHEN min(value) = max(value) THEN min(value) END AS value,
    CASE WHEN min(text) = max(text) THEN min(text) END AS text,
    CASE WHEN count(below) > 0 THEN {{
        'value': sum(below.value ORDER BY below.value),
        'count': CASE WHEN count(*) FILTER (is_called_below) > 0 AND sum(count) > 0
            THEN coalesce(sum(below.count), 0)::BIGINT ELSE sum(below.count)::BIGINT END,
        'min': CASE WHEN count(below.min) = count(*) FILTER (is_called_below)
            THEN min(below.min) END,
        'max': CASE WHEN count(below.max) = count(*) FILTER (is_called_below)
            THEN max(below.max) END}} END AS below
FROM (SELECT *, {CALLED_BELOW} AS is_called_below FROM found) GROUP BY {", ".join(_KEYS)}"""
# Rows that have values only below them have no calls.
_CALLS = f"""
SELECT {", ".join(_KEYS)}, count, min, max, sketch FROM found
WHERE value IS NOT NULL OR text IS NOT NULL"""
_SUMS = f"""
SELECT *, min(node) OVER (PARTITION BY part, stack_hash, code) AS first_node
FROM ({_OTHERS}) LEFT JOIN calls USING ({", ".join(_KEYS)})"""
# Properties that differ have no sum.
_NUMBERED = """
SELECT part, (dense_rank() OVER (PARTITION BY part ORDER BY first_node, stack_hash, code))::INT
    AS node, stack_hash, device, NULL::INT AS variant, nullif(code, '') AS code_hash, sample_type,
    sample_unit, aggregation, value, text, count, min, max, sketch, below
FROM shared WHERE value IS NOT NULL OR text IS NOT NULL OR below IS NOT NULL
ORDER BY part, node, sample_type, sample_unit, aggregation"""
