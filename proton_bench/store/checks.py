"""What must hold of the files and rows of a store, whoever wrote them: checked once, when read."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.model.frame import KIND_NAMES
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.store.engines import duckdb
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.schema import PARTITIONS, SCHEMAS

MOST_DEPTH = 10_000
# Of one text of a row: a name, or the provenance as JSON.
_MOST_TEXT_BYTES = 1 << 20
# What files may hold: so much whatever their size, and so much for each of their bytes. Recordings
# have a row in some ten bytes, and 300 bytes of a row in memory.
_FREE_ROWS, _ROWS_OF_BYTE = 1_000_000, 10
_FREE_BYTES, _BYTES_OF_BYTE = 256 << 20, 200
_MOST_LOG_BYTES = 1 << 30
# Of a sketch: more buckets or wider ones hold no numbers of 64 bits.
_MOST_BUCKETS, _MOST_COLLAPSES = 1 << 16, 40
# A row of the least batch that DuckDB passes on may be large.
_ROWS_AT_ONCE = 2048
_ADVICE = "`proton store maintain` lists what is damaged; copy it back"
# In errors of DuckDB about rows.
_DAMAGED = "is damaged in a row:"
_FOLDERS = re.compile(r"date=\d{4}-\d\d-\d\d/job=[^/]+")
# What DuckDB would take for a pattern.
_FILE = re.compile(r"[^/*?\[\]{}]+\.parquet")
_NO_JOB = "job=__HIVE_DEFAULT_PARTITION__"


def _among(names: Iterable[str]) -> str:
    return "{0} IN (" + ", ".join(f"'{name}'" for name in names) + ")"


_TEXT = f"strlen({{0}}) <= {_MOST_TEXT_BYTES}"
_OPTIONAL_TEXT = f"{{0}} IS NULL OR {_TEXT}"
_AMOUNT, _INDEX, _THERE = "{0} >= 0", "{0} IS NULL OR {0} >= 0", "{0} IS NOT NULL"
# Conditions of columns. Those that files and row groups are skipped by have none, for which DuckDB
# could not skip them; a row without these belongs to no profile.
_CONDITIONS = {
    "profiles": {
        "profile_id": _TEXT,
        "batch": _TEXT,
        "time_unix_nano": _THERE,
        "run": _TEXT,
        "nodes": _AMOUNT,
        "samples": _AMOUNT,
        "partial": _THERE,
        "dropped": "{0} IS NOT NULL AND list_count(map_values({0})) = cardinality({0})",
        "members": "{0} IS NULL OR len({0}) > 0 AND list_count({0}) = len({0})",
        "integer_metrics": "list_count({0}) = len({0})",
        "totals": "{0} IS NOT NULL AND list_count(map_values({0})) = cardinality({0})",
        "devices": "list_count({0}) = len({0})",
        "variants": "list_count({0}) = len({0})",
        "device_use": _TEXT,
        "attributes": _TEXT,
        "source": _TEXT,
        **dict.fromkeys(("host", "commit", "branch", "gpu_uuid", "arch", "driver"), _OPTIONAL_TEXT),
    },
    "samples": {
        "node": _AMOUNT,
        "device": _INDEX,
        "variant": _INDEX,
        "aggregation": _among(each.value for each in Aggregation),
        "code_hash": _OPTIONAL_TEXT,
        "text": _OPTIONAL_TEXT,
        "sketch": f"{{0}} IS NULL OR {{0}}.collapses BETWEEN 0 AND {_MOST_COLLAPSES} "
        f"AND {{0}}.zero_count >= 0 AND len({{0}}.index) <= {_MOST_BUCKETS} "
        "AND list_count({0}.index) = len({0}.count) AND list_count({0}.count) = len({0}.index)",
    },
    "stacks": {
        "depth": f"{{0}} BETWEEN 0 AND {MOST_DEPTH}",
        "name": _TEXT,
        "kind": _among(KIND_NAMES),
        "file": _OPTIONAL_TEXT,
    },
    "timelines": {"uri": _TEXT, "format": _TEXT},
}
_CONDITIONS["sums"] = _CONDITIONS["samples"]


# -- files ---------------------------------------------------------------------------------------
def check_log(folder: str) -> None:
    """Check that the log of a table consists of plain files, which can be read to their end.

    Raises:
        ProfileFormatError: It does not.
    """
    log, size = os.path.join(folder, "_delta_log"), 0
    for place in (folder, log):
        if os.path.islink(place):
            raise ProfileFormatError(
                f"{place!a} is a link, which a store does not follow: copy what it leads to"
            )
    try:
        found = list(os.scandir(log))
    except OSError:
        return  # opening the table says what is wrong
    for each in found:
        state = each.stat(follow_symlinks=False)
        if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
            raise ProfileFormatError(f"{each.path!a} is not a file: copy the log back")
        size += state.st_size
    if size > _MOST_LOG_BYTES:
        raise ProfileFormatError(
            f"the log {log!a} has {size} bytes, more than {_MOST_LOG_BYTES}: copy it back"
        )


def file_sizes(folder: str, table: str, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield files that a log names, with their bytes.

    Args:
        folder: The folder of the table.
        table: Its name.
        names: What the log has, relative to the folder.

    Raises:
        ProfileFormatError: One is not a file of the table, or behind a link.
    """
    checked: set[str] = set()
    for name in names:
        above, _, last = name.rpartition("/")
        place = f"{folder}/{name}"
        wanted = _FOLDERS.fullmatch(above) if PARTITIONS[table] else not above
        if not wanted or above.endswith(_NO_JOB) or not _FILE.fullmatch(last):
            raise _unreadable(place, "cannot be a file of the table")
        if above not in checked:
            checked.add(above)
            day = above.partition("/")[0]
            if above and not _is_day(day[-10:]):
                raise _unreadable(place, "is of no day")
            if any(os.path.islink(f"{folder}/{each}") for each in (day, above)):
                raise _unreadable(place, "is behind a link")
        try:
            state = os.lstat(place)
        except OSError:
            raise _unreadable(place, "is missing") from None
        if not stat.S_ISREG(state.st_mode):
            raise _unreadable(place, "is not a file")
        yield place, state.st_size


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        return date.fromisoformat(text) is not None
    return False


def _unreadable(place: str, what: str) -> ProfileFormatError:
    return ProfileFormatError(f"the store's file {place!a} cannot be read: it {what}; {_ADVICE}")


# -- profiles ------------------------------------------------------------------------------------
def check_profile(profile: Profile, source: str) -> None:
    """Check that a store with a profile could be read.

    Raises:
        ProfileFormatError: It has too many levels, or a text that is too long.
    """
    if int(profile.depths().max()) > MOST_DEPTH:
        raise ProfileFormatError(f"{source}: it has more than {MOST_DEPTH} levels of call paths")
    texts = {
        "a name": profile.strings,
        "a text": [each for column in profile.columns.values() for each in column.strings],
        "its provenance": [json.dumps(profile.provenance.to_plain(), default=str)],
    }
    for what, every in texts.items():
        if max(map(len, every), default=0) > _MOST_TEXT_BYTES // 4:  # of UTF-8 for a character
            raise ProfileFormatError(
                f"{source}: {what} has more than {_MOST_TEXT_BYTES // 4} characters, which a store "
                "does not take"
            )


# -- rows ----------------------------------------------------------------------------------------
def checked_columns(table: str, relation: Any) -> str:
    """Return what to select of the files of a table, so that wrong rows are an error.

    Args:
        table: Name of the table.
        relation: Its files, as DuckDB opened them.

    Raises:
        ProfileFormatError: A column has another type.
    """
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    replaced, added = [], []
    for name, kind in _types(table).items():
        found = types.get(name, kind)
        # Lists and structures of earlier versions lack parts.
        if found != kind and kind.isalnum():
            raise ProfileFormatError(
                f"the column {name} of the table {table} has the type {found} instead of {kind}: "
                f"{_ADVICE}"
            )
        value = f'"{name}"' if name in types else f"NULL::{kind}"
        if condition := _CONDITIONS[table].get(name):
            value = (
                f"CASE WHEN {condition.format(value)} THEN {value} "
                f"ELSE error('the table {table} {_DAMAGED} {name}') END"
            )
        if name not in types:
            added.append(f', {value} AS "{name}"')
        elif condition:
            replaced.append(f'{value} AS "{name}"')
    return f"* REPLACE ({', '.join(replaced)}){''.join(added)}"


@lru_cache
def _types(table: str) -> dict[str, str]:
    with duckdb.connect(":memory:") as connection:
        found = connection.from_arrow(SCHEMAS[table].empty_table())
        return dict(zip(found.columns, map(str, found.types), strict=True))


@dataclass(frozen=True, slots=True)
class Reader:
    """The tables of a store in a database, as Arrow tables of a bounded size.

    Attributes:
        connection: The database, for statements of users.
        most_bytes: The most bytes of a result.
    """

    connection: Any
    most_bytes: int

    @classmethod
    def of(cls, connection: Any, sizes: Sequence[tuple[str, int]]) -> Reader:
        """Return the reader of these files, once their rows are counted.

        Raises:
            ProfileFormatError: They have too many.
        """
        size = sum(each for _, each in sizes)
        if sizes:
            listed = [file for file, _ in sizes]
            counted = "SELECT sum(num_rows)::HUGEINT FROM parquet_file_metadata(?)"
            ((rows,),) = connection.execute(counted, [listed]).fetchall()
            if not 0 <= rows <= _FREE_ROWS + _ROWS_OF_BYTE * size:
                raise ProfileFormatError(
                    f"files of the store have {rows} rows in {size} bytes, more than recordings "
                    f"have: {_ADVICE}"
                )
        return cls(connection, _FREE_BYTES + _BYTES_OF_BYTE * size)

    def execute(self, sql: str, parameters: Any = None) -> None:
        """Execute a statement without a result."""
        self.connection.execute(sql, parameters)

    def register(self, name: str, table: pa.Table) -> None:
        """Name a table in the database."""
        self.connection.register(name, table)

    def table(self, sql: str, parameters: Any = None) -> pa.Table:
        """Return the result of a query.

        Raises:
            ProfileFormatError: It is larger than recordings of this size are.
        """
        found = self.connection.sql(sql, params=parameters)
        open_reader = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch
        batches, size = open_reader(_ROWS_AT_ONCE), 0
        kept = []
        for batch in batches:
            size += batch.nbytes
            if size > self.most_bytes:
                raise ProfileFormatError(
                    f"rows of the store take more than {self.most_bytes >> 20} MiB, more than "
                    f"recordings in files of their size: {_ADVICE}"
                )
            kept.append(batch)
        return pa.Table.from_batches(kept, batches.schema)

    def rows(self, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """Return the result of a query as rows; names of its columns differ."""
        return [tuple(row.values()) for row in self.table(sql, parameters).to_pylist()]


@contextmanager
def reading(place: str, files: Iterable[str]) -> Iterator[None]:
    """Turn errors of DuckDB about files and rows into one that names the store.

    Args:
        place: The store.
        files: The files that are read.

    Raises:
        ProfileFormatError: A file or row of the store is damaged.
    """
    try:
        yield
    except (duckdb.Error, UsageError) as error:
        message = str(error if isinstance(error, duckdb.Error) else error.__cause__)
        file = next((each for each in files if each in message), None)
        if file is None and _DAMAGED not in message and isinstance(error, UsageError):
            raise
        reason = " ".join(message.split("\n\nLINE ")[0].split())[:300]
        what = f"its file {file!a} is damaged" if file is not None else reason
        raise ProfileFormatError(
            f"the store {place!a} cannot be read: {what}; {_ADVICE}"
        ) from error
