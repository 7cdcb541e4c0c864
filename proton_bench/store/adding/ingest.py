"""Adds files of any known format to a store: one commit for each table, whatever their number."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import numpy as np

from proton_bench.analysis.run import files_of
from proton_bench.errors import OutputError, ProtonError, UsageError
from proton_bench.formats.base import corrupt
from proton_bench.formats.registry import read_profile, streamed_format_of
from proton_bench.model.origin import Origin
from proton_bench.model.profile import Profile
from proton_bench.plugin.others import register_plugin_formats
from proton_bench.store.checks import check_profile
from proton_bench.store.engines import deltalake_fs, pyarrow_parquet
from proton_bench.store.engines import deltalake_transaction as transaction
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.retention import read_policy
from proton_bench.store.rows import (
    ProfileKey,
    age_hours,
    new_batch,
    new_stacks,
    profile_row,
    sample_rows,
    stack_hashes,
)
from proton_bench.store.schema import PARTITIONS, SCHEMAS
from proton_bench.store.store import (
    MEASURED,
    ROW_GROUP_ROWS,
    WRITER_HOURS,
    Partition,
    Store,
    refused,
)
from proton_bench.support.inputs import open_file, unreadable
from proton_bench.support.text import visible

# Rows that wait in memory until they become files, one for each day and job.
_MOST_WAITING = 2 * ROW_GROUP_ROWS
_IN_LIST = ".list."
# Columns whose numbers rise in small steps.
_RISING = (f"sketch.index{_IN_LIST}element",)


class NewFiles:
    """New files of a table with partitions. `Store.commit` makes their rows count.

    Args:
        store: The store.
        table: Name of the table.
    """

    def __init__(self, store: Store, table: str) -> None:
        self._store, self._table = store, table
        fields = [each for each in SCHEMAS[table] if each.name not in PARTITIONS[table]]
        self._columns = [each.name for each in fields]
        leaves = [path for each in fields for path in _leaves(each.name, each.type)]
        # Bounds of the buckets of sketches would skip nothing.
        self._bounded = [path for path in leaves if _IN_LIST not in path]
        self._repeating = [path for path in leaves if path not in (*MEASURED, *_RISING)]
        self._waiting: defaultdict[Partition, list[pa.Table]] = defaultdict(list)
        self._rows = 0
        self._written: list[transaction.AddAction] = []

    def add(self, partition: Partition, rows: pa.Table) -> None:
        """Add rows of a day and job.

        Raises:
            OutputError: A file cannot be written.
        """
        if not len(rows):
            return
        self._waiting[partition].append(rows)
        self._rows += len(rows)
        if self._rows >= _MOST_WAITING:
            self._write()

    def finish(self) -> list[transaction.AddAction]:
        """Write what still waits, and return all files.

        Raises:
            OutputError: A file cannot be written.
        """
        self._write()
        return self._written

    def _write(self) -> None:
        with refused(f"add to the table {self._table} of {self._store.uri}"):
            folder = self._store.place(self._table)
            handler = deltalake_fs.DeltaStorageHandler(folder, self._store.settings())
            for partition, tables in self._waiting.items():
                rows = pa.concat_tables(tables).select(self._columns)
                self._written.append(self._file_of(partition, rows, pa.fs.PyFileSystem(handler)))
        self._waiting.clear()
        self._rows = 0

    def _file_of(self, partition: Partition, rows: pa.Table, folder: Any) -> transaction.AddAction:
        values = dict(zip(PARTITIONS[self._table], map(str, partition), strict=True))
        below = "/".join(f"{name}={quote(value, safe='')}" for name, value in values.items())
        path = f"{below}/part-{uuid4()}.zstd.parquet"
        facts: list[Any] = []
        with folder.open_output_stream(path) as file:
            pyarrow_parquet.write_table(
                rows,
                file,
                row_group_size=ROW_GROUP_ROWS,
                compression="zstd",
                use_dictionary=self._repeating,
                column_encoding=dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
                write_statistics=self._bounded,
                metadata_collector=facts,
            )
            size = file.tell()
        return transaction.AddAction(
            path,
            size,
            values,
            modification_time=time.time_ns() // 1_000_000,
            data_change=True,
            stats=_statistics(facts[0]),
        )


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the columns of a Parquet file that a column of a type becomes."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield f"{path}{_IN_LIST}element" if pa.types.is_list(kind) else path


def _statistics(file: Any) -> str:
    """Return what the log of a table says of the columns of a file, which readers skip files by."""
    found: dict[str, Any] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for place in range(file.num_columns):
        groups = [file.row_group(each).column(place) for each in range(file.num_row_groups)]
        path = groups[0].path_in_schema
        known = [group.statistics for group in groups if group.statistics is not None]
        if len(known) < len(groups):
            continue
        _put(found["nullCount"], path, sum(each.null_count for each in known))
        ranges = [each for each in known if each.num_values]
        if ranges and all(each.has_min_max for each in ranges):
            _put(found["minValues"], path, min(each.min for each in ranges))
            _put(found["maxValues"], path, max(each.max for each in ranges))
    return json.dumps({"numRecords": file.num_rows, **found})


def _put(values: dict[str, Any], path: str, value: Any) -> None:
    """Put the value of a column into those of a table, unless JSON has no such number."""
    if isinstance(value, float) and not math.isfinite(value):
        return
    *above, name = path.split(".")
    for each in above:
        values = values.setdefault(each, {})
    values[name] = value


# How many files a process reads at a time, and the least number for which others are started.
_LEAST_OF_CHUNK, _MOST_OF_CHUNK, _FILES_OF_POOL = 32, 64, 128
_ID_BYTES, _PIECE_BYTES = 16, 1 << 20
# A sparse file of any size takes no space.
_MOST_FILE_BYTES = 1 << 34
# The name of a folder has at most 255 bytes, and each byte of a job can take three.
_MOST_NAME_BYTES = 80
# Tables that this process writes.
_OTHERS = ("stacks", "timelines", "profiles")
_KNOWN = """
SELECT profile_id FROM all_profiles WHERE job = $job
UNION SELECT profile_id FROM summed WHERE job = $job"""
# Where an empty column is not NULL.
_LEFT_OUT = {"attributes": "{}", "source": ""}
_NO_JOB = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Labels:
    """What files are added as.

    Attributes:
        job: Name of the job: what is compared over time, such as one benchmark or one training.
        run: Name of the execution of the job that the files are of; None names each after the
            folder of the file.
    """

    job: str = "default"
    run: str | None = None

    def __post_init__(self) -> None:
        for what, text in (("job", self.job), ("run", self.run or "")):
            if not text.isprintable() or len(text.encode("utf-8", "replace")) > _MOST_NAME_BYTES:
                raise UsageError(
                    f"{text[:80]!a} cannot be the name of a {what}: use printable characters, at "
                    f"most {_MOST_NAME_BYTES} bytes of them"
                )
        if not self.job:
            raise UsageError("a job needs a name")
        if "~" in self.job:
            # Such files are not found when they are merged, which would end all compaction.
            raise UsageError(f"{self.job!a} cannot be the name of a job: leave ~ out of it")
        if self.job == _NO_JOB:
            raise UsageError(f"{_NO_JOB} cannot be the name of a job: for tables it means none")


@dataclass(slots=True)
class Added:
    """What became of files.

    Attributes:
        new: Ids of the added profiles.
        known: Files whose profile the job had already, or that were named twice.
        failed: Files that could not be read, with the reason.
    """

    new: list[str] = field(default_factory=list)
    known: list[Path] = field(default_factory=list)
    failed: dict[Path, str] = field(default_factory=dict)


def find_files(places: Iterable[Path]) -> list[Path]:
    """Return files, and for folders the recordings in them and in all folders below.

    Of one run in several formats the most complete file counts.
    """
    found: list[Path] = []
    for place in places:
        if not place.is_dir():
            found.append(place)
            continue
        for folder, below, _ in os.walk(place):
            below.sort()
            found += files_of(Path(folder))
    return found


def add_files(store: Store, files: Sequence[Path], labels: Labels, *, processes: int = 1) -> Added:
    """Add the profiles of files to a store.

    A profile that the job has already is not added again, so that this can be repeated. A writer
    that is killed adds nothing.

    Args:
        store: The store.
        files: Files of any known format.
        labels: What they are added as.
        processes: Number of processes that read files.

    Raises:
        UsageError: The policy of the store is wrong.
        OutputError: The store cannot be written; nothing was added.
        ProfileFormatError: The store is damaged.
    """
    added = Added()
    processes = processes if len(files) >= _FILES_OF_POOL else 1
    with _mapping(processes) as mapped:
        items = list(_new_files(store, files, added, job=labels.job).items())
        if items:
            # Several chunks for each process, so that none waits long for another.
            size = min(max(len(items) // (4 * processes), _LEAST_OF_CHUNK), _MOST_OF_CHUNK)
            chunks = [items[at : at + size] for at in range(0, len(items), size)]
            batch, left_out = new_batch(), read_policy(store).leave_out
            read = partial(_read_chunk, store, labels, batch=batch, left_out=left_out)
            _write(store, mapped(read, chunks), added, batch=batch)
    return added


def _new_files(store: Store, files: Sequence[Path], added: Added, *, job: str) -> dict[str, Path]:
    """Return the files that the job has not, by their ids."""
    found: dict[str, Path] = {}
    for file in files:
        try:
            with open_file(file) as stream:
                id = _digest_of(stream)
        except (OSError, ValueError) as error:
            added.failed[file] = str(unreadable(file, error, "profile"))
            continue
        if found.setdefault(id, file) is not file:
            added.known.append(file)
    if found:
        known = _known_ids(store, job)
        added.known += [found.pop(id) for id in list(found) if id in known]
    return found


def _digest_of(stream: IO[bytes]) -> str:
    if (size := os.fstat(stream.fileno()).st_size) > _MOST_FILE_BYTES:
        raise ValueError(f"it has {size} bytes, more than {_MOST_FILE_BYTES}")
    digest = hashlib.blake2b(digest_size=_ID_BYTES)
    while piece := stream.read(_PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest()


def _known_ids(store: Store, job: str) -> set[str]:
    """Return the ids of the job's profiles, also of those that only their sum is left of."""
    with store.snapshot().connect(_KNOWN) as reader:
        return {id for (id,) in reader.rows(_KNOWN, {"job": job})}


@contextmanager
def _mapping(processes: int) -> Iterator[Any]:
    """Yield a function that maps in this process, or in others that begin to start now."""
    if processes <= 1:
        yield map
        return
    # Threads of other libraries do not survive a fork; this server has none, and loads them once.
    # pyarrow loads pandas for its first array, where that is installed.
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, "pandas"])
    pool = ProcessPoolExecutor(processes, context, register_plugin_formats)
    with _out_of_reach():
        ensure_running()

    def mapped(function: Any, items: Any) -> Any:
        with _out_of_reach():
            return pool.map(function, items)

    try:
        yield mapped
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _out_of_reach() -> Iterator[None]:
    """Start processes that do not see Ctrl-C, which a terminal sends to all: this one ends them.

    Here it counts once they are started, so that all of them are known then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    for number in received:
        signal.raise_signal(number)


# -- reading -------------------------------------------------------------------------------------
class _Chunk(NamedTuple):
    """What was read of some files.

    Attributes:
        samples: Files of samples, which the process that read has written.
        rows: Rows of other tables.
        failed: Files that could not be read, with the reason.
    """

    samples: list[transaction.AddAction]
    rows: dict[str, pa.Table]
    failed: dict[Path, str]


class _Rows:
    """Rows of profiles for each table but that of samples."""

    def __init__(self) -> None:
        self._parts: dict[str, list[pa.Table]] = {name: [] for name in _OTHERS}
        self._hashes: set[int] = set()

    def add(
        self, file: Path, key: ProfileKey, profile: Profile, *, run: str, left_out: Collection[str]
    ) -> pa.Table:
        """Add the rows of a profile, or nothing, and return its samples.

        Args:
            file: The file of the profile.
            key: Its key.
            profile: The profile.
            run: Name of its run.
            left_out: Columns of ``profiles`` that stay empty.

        Raises:
            ProfileFormatError: A number or text of the profile does not fit the tables.
        """
        hashes = stack_hashes(profile)
        check_profile(profile, visible(file))
        try:
            samples = sample_rows(profile, hashes, key)
            facts = profile_row(profile, key)
            facts |= {"run": run, "source": visible(file.absolute()), "samples": len(samples)}
            facts |= {name: _LEFT_OUT.get(name) for name in left_out}
            rows = {"profiles": _table("profiles", facts)}
            timeline = streamed_format_of(file)
            if timeline is not None:
                known = {"format": timeline.name, "size_bytes": file.stat().st_size}
                rows["timelines"] = _table(
                    "timelines", {**key.columns(), "uri": facts["source"], **known}
                )
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            raise corrupt(
                visible(file), f"it does not fit the tables of a store: {error}"
            ) from None
        rows["stacks"] = new_stacks(profile, hashes, self._hashes)
        for table, found in rows.items():
            self._parts[table].append(found)
        return samples

    def joined(self) -> dict[str, pa.Table]:
        """Return all rows; many small tables would take long to pass to another process."""
        return {table: _joined(table, parts) for table, parts in self._parts.items()}


def _joined(name: str, parts: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([SCHEMAS[name].empty_table(), *parts]).combine_chunks()


def _table(name: str, row: dict[str, Any]) -> pa.Table:
    return pa.Table.from_struct_array(pa.array([row], pa.struct(list(SCHEMAS[name]))))


def _read_chunk(
    store: Store,
    labels: Labels,
    files: Iterable[tuple[str, Path]],
    *,
    batch: str,
    left_out: Collection[str],
) -> _Chunk:
    samples, rows = NewFiles(store, "samples"), _Rows()
    failed: dict[Path, str] = {}
    for id, file in files:
        run = visible(file.absolute().parent.name) if labels.run is None else labels.run
        try:
            profile = read_profile(file)
            key = ProfileKey(_start_ns(profile, file), labels.job, id, batch)
            found = rows.add(file, key, profile, run=run, left_out=left_out)
        except ProtonError as error:
            failed[file] = str(error)
        else:
            samples.add(Partition(key.date, key.job), found)
    return _Chunk(samples.finish(), rows.joined(), failed)


def _start_ns(profile: Profile, file: Path) -> int:
    """Return when a profile began, or when its file was written if it does not say so."""
    start = Origin.of(profile.provenance, file.name).start_time_ns
    return file.stat().st_mtime_ns if start is None else start


# -- writing -------------------------------------------------------------------------------------
def _write(store: Store, chunks: Iterable[_Chunk], added: Added, *, batch: str) -> None:
    """Write all chunks, one commit for each table; profiles are the last."""
    samples: list[transaction.AddAction] = []
    rows: list[dict[str, pa.Table]] = []
    for chunk in chunks:
        added.failed |= chunk.failed
        samples += chunk.samples
        rows.append(chunk.rows)
    found = {table: _joined(table, [each[table] for each in rows]) for table in _OTHERS}
    if not len(found["profiles"]):
        return
    found["stacks"] = _missing_stacks(store, found["stacks"])
    if age_hours(batch) > WRITER_HOURS / 2:  # compaction may remove the samples before they count
        raise OutputError(
            f"reading {len(found['profiles'])} profiles took more than {WRITER_HOURS // 2} hours: "
            "add fewer at a time"
        )
    store.commit("samples", samples)
    for table, each in found.items():
        store.append(table, each)
    added.new += found["profiles"]["profile_id"].to_pylist()


def _missing_stacks(store: Store, stacks: pa.Table) -> pa.Table:
    """Return the distinct stacks that are not stored yet."""
    with store.snapshot().connect("stored_stacks") as reader:
        known = reader.table("SELECT stack_hash FROM stored_stacks")["stack_hash"]
    distinct, first = np.unique(stacks["stack_hash"].to_numpy(), return_index=True)
    return stacks.take(first[~np.isin(distinct, known.to_numpy())])
