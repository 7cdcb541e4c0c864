"""Keeps a store small and fast: sums its runs, merges its files, and finds what is damaged."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proton_bench.errors import ProfileFormatError
from proton_bench.store.checks import file_sizes
from proton_bench.store.engines import deltalake
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.rows import StackTree, path_hashes
from proton_bench.store.schema import PARTITIONS, TABLES
from proton_bench.store.store import (
    SAMPLE_ORDER,
    WRITER_HOURS,
    Partition,
    Snapshot,
    Store,
    change,
    delete,
    is_among,
    quoted,
    reason_of,
    refused,
    writer_properties,
)
from proton_bench.store.sums import sum_runs, unsummed
from proton_bench.store.turn import turn
from proton_bench.support.files import remove_files

# How long a reader may take until its files are removed.
READER_HOURS = 168
_MS_PER_HOUR = 3600 * 1000
# The least number of profiles that get a sum: that of one would be the same again.
_SUMMED_TOGETHER = 2
_SORTED = ("samples", "sums")
# Files below this size are merged.
_SMALL_BYTES = 32 << 20
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did.

    Attributes:
        summed: Profiles that are in new sums.
        files_before: Files of all tables, those of new sums too, before they were merged.
        files: Files that readers open now.
        dead_rows: Removed rows that did not count: of killed writers, or written twice.
    """

    summed: int
    files_before: int
    files: int
    dead_rows: int


def compact(
    store: Store,
    *,
    writer_hours: int = WRITER_HOURS,
    reader_hours: int = READER_HOURS,
    mapped: Callable[..., Iterable[None]] = map,
) -> Compacted:
    """Sum runs, merge small files, and order samples so that a question reads few of them.

    Runs of days that are over get a sum, which answers in place of their profiles. Others may read
    and add meanwhile.

    Args:
        store: The store.
        writer_hours: The most hours that a writer takes: rows of later ones that do not count yet
            are kept.
        reader_hours: The most hours that a reader takes: files that were replaced since are kept.
        mapped: Maps the merging of files on partitions, here or in other processes.

    Raises:
        OutputError: Another process maintains the store, or it cannot be written.
        ProfileFormatError: The store is damaged.
    """
    with turn(store):
        dead_rows = _remove_dead(store, writer_hours)
        over = unsummed(store.snapshot(), datetime.now(UTC).date(), least=_SUMMED_TOGETHER)
        summed = sum(sum_runs(store, each, least=_SUMMED_TOGETHER) for each in over)
        before = _count_files(store)
        scattered = [each for table in TABLES for each in _scattered(store, table)]
        deque(mapped(partial(_merge_files, store), scattered), maxlen=0)
        for table in TABLES:
            _remove_files(store, table, reader_hours)
        return Compacted(summed, before, _count_files(store), dead_rows)


def _remove_files(store: Store, table: str, hours: int) -> None:
    """Remove files that the log of a table names as replaced so long ago."""
    opened = store.table(table)
    remove = partial(opened.vacuum, hours, enforce_retention_duration=False)
    with refused(f"remove old files of {store.uri}"):
        if store.is_remote:
            remove(dry_run=False)
        else:
            # deltalake would follow links.
            named = (f"{table}/{name}" for name in remove(dry_run=True))
            remove_files(Path(store.uri), named)


def _count_files(store: Store) -> int:
    return sum(len(store.table(table).file_uris()) for table in TABLES)


class _Place(NamedTuple):
    """A partition of a table, {} for a table without partitions."""

    table: str
    partition: dict[str, str]


def _scattered(store: Store, name: str) -> Iterator[_Place]:
    """Yield the places with files to merge: several small ones, or samples that are not sorted."""
    table = store.table(name)
    columns = table.metadata().partition_columns
    places: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for file in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        places[tuple(str(file[f"partition.{column}"]) for column in columns)].append(file)
    is_scattered = _overlap if name in _SORTED else _are_small
    for values, files in places.items():
        if is_scattered(files):
            yield _Place(name, dict(zip(columns, values, strict=True)))


def _are_small(files: Sequence[dict[str, Any]]) -> bool:
    return len([file for file in files if file["size_bytes"] < _SMALL_BYTES]) > 1


def _overlap(files: Sequence[dict[str, Any]]) -> bool:
    """Return whether files have stacks between those of others, as after adding, not sorting."""
    least, most = (f"{which}.{SAMPLE_ORDER[0]}" for which in ("min", "max"))
    ranges = sorted((file[least], file[most]) for file in files if file[least] is not None)
    return any(bool(later[0] < earlier[1]) for earlier, later in pairwise(ranges))


def _merge_files(store: Store, place: _Place) -> None:
    filters = [(column, "=", value) for column, value in place.partition.items()]

    def merge(table: deltalake.DeltaTable) -> None:
        settings = {
            "partition_filters": filters or None,
            "writer_properties": writer_properties(place.table),
        }
        if place.table in _SORTED:
            table.optimize.z_order(list(SAMPLE_ORDER), **settings)
        else:
            table.optimize.compact(**settings)

    change(store, place.table, merge)


# -- dead rows -----------------------------------------------------------------------------------
def _remove_dead(store: Store, writer_hours: int) -> int:
    """Remove rows that do not count, unless their writer may still make them count."""
    latest = f"{time.time_ns() // 1_000_000 - writer_hours * _MS_PER_HOUR:012x}"
    removed = 0
    with store.snapshot().connect() as reader:
        found = {
            table: reader.rows(_DEAD.format(table=table), [latest])
            for table in TABLES
            if PARTITIONS[table]
        }
    for table, writings in found.items():
        for day, job, batch, ids in writings:
            of_batch = f"{Partition(day, job).condition} AND batch = {quoted(batch)}"
            removed += delete(store, table, f"{of_batch} AND {is_among('profile_id', ids)}")
    return removed


_DEAD = """
SELECT date, job, batch, list(DISTINCT profile_id) AS ids
FROM stored_{table} ANTI JOIN all_profiles USING (date, job, profile_id, batch)
WHERE batch < ? GROUP BY ALL"""


# -- checks --------------------------------------------------------------------------------------
def check(store: Store) -> dict[str, str]:
    """Read every file of a store, and return what is wrong with it by its place.

    Raises:
        UsageError: The store does not exist.
        ProfileFormatError: A table cannot be opened.
    """
    snapshot = store.snapshot()
    damaged = dict(_damaged_files(snapshot))
    return damaged or dict(_wrong_rows(snapshot))


def _damaged_files(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for table in TABLES:
        for fragment in snapshot.tables[table].to_pyarrow_dataset().get_fragments():
            try:
                _read(snapshot.store, table, fragment)
            except (OSError, pa.ArrowException, ProfileFormatError) as error:
                yield f"{table}/{fragment.path}", reason_of(error)


def _read(store: Store, table: str, file: Any) -> None:
    if not store.is_remote:
        deque(file_sizes(store.place(table), table, [file.path]), maxlen=0)
    deque(file.to_batches(batch_size=_ROWS_AT_ONCE), maxlen=0)


def _wrong_rows(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    with snapshot.connect() as reader:
        for id, expected, found in reader.rows(_LOST):
            yield f"profile {id}", f"it has {found} of its {expected} samples"
        for (id,) in reader.rows(_SUMMED_TWICE):
            yield f"profile {id}", "it is in two sums"
        wrong = reader.rows(_WRONG_STACKS)
        yield from ((f"stack {hash}", why) for hash, why in wrong)
        stacks = reader.table("FROM stacks")
    if len(stacks) and not wrong:
        tree = StackTree.of(stacks)
        for row in np.flatnonzero(tree.hashes != path_hashes(tree)).tolist():
            yield f"stack {tree.hashes[row]}", "its hash is not that of its names"


_LOST = """
SELECT profile_id, samples, coalesce(found, 0) AS found
FROM (SELECT * FROM all_profiles) LEFT JOIN (
    SELECT date, job, profile_id, batch, count(*) AS found FROM all_samples GROUP BY ALL)
USING (date, job, profile_id, batch)
WHERE samples != coalesce(found, 0) ORDER BY ALL"""
_SUMMED_TWICE = """
SELECT profile_id FROM summed GROUP BY date, job, profile_id HAVING count(*) > 1 ORDER BY ALL"""
_WRONG_STACKS = """
SELECT DISTINCT stack_hash, 'samples have it, but it is missing' AS why
FROM samples ANTI JOIN stacks USING (stack_hash)
UNION ALL
SELECT stack_hash, 'its parent is missing' FROM stacks
WHERE parent_hash IS NOT NULL AND parent_hash NOT IN (SELECT stack_hash FROM stacks)
UNION ALL
SELECT stack_hash, 'it is not one level below its parent' FROM stacks
JOIN (SELECT stack_hash AS parent_hash, depth AS above FROM stacks) USING (parent_hash)
WHERE depth != above + 1
UNION ALL
SELECT stack_hash, 'it is a second root' FROM stacks WHERE parent_hash IS NULL AND stack_hash != 0
UNION ALL
SELECT stack_hash, 'two call paths have it' FROM stored_stacks GROUP BY stack_hash
HAVING count(DISTINCT (name, kind, parent_hash)) > 1"""
