"""A store: its tables, opened, appended to, and read by DuckDB at one moment.

::

    from proton_bench.store.adding.ingest import Labels, add_files
    from proton_bench.store.store import Store

    store = Store.create("/fleet")                  # or s3://bucket/fleet; Store.open later
    add_files(store, files, Labels(job="llama", run="4711"))      # one commit for each table

    snapshot = store.snapshot()                     # does not change while others write
    with snapshot.connect() as reader:              # DuckDB, read-only and without other files
        reader.table("SELECT job, count(*) FROM profiles GROUP BY job")
    snapshot.profiles("job = 'llama' AND rank = 0") # an Arrow table with the keys of profiles

The views of a connection are ``profiles``, ``samples``, ``stacks`` and ``timelines``
(`proton_bench.store.schema`), each profile once and without what killed writers left. Conditions on
``date`` and ``job`` skip whole files, those on ``sample_type`` and ``stack_hash`` most of the rest.
`restore.read_profiles` gives stored profiles as `Profile`, `questions.path_series` a call path over
time, ranks or revisions::

    path_series(snapshot, Question("fwd/**/softmax*", by=("run", "rank"), where="job = 'llama'"))
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from proton_bench.analysis.query.sql import CLOSED, clear_errors
from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.store.checks import Reader, check_log, checked_columns, file_sizes, reading
from proton_bench.store.engines import awaited, deltalake, duckdb, open_memory, started
from proton_bench.store.engines import deltalake_transaction as transaction
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.engines import pyarrow_compute as pc
from proton_bench.store.schema import PARTITIONS, SCHEMAS, TABLES, VERSION

_T = TypeVar("_T")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://")
# A condition follows "?". A folder NAME=VALUE would be a column for DuckDB, in place of ours. The
# others are changed or refused on the way through deltalake's URLs.
_NO_FOLDER = re.compile(r"[?=%\[\]\\^|\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DESCRIPTION = re.compile(r"proton_bench store (\d{1,4})\.(\d{1,4})")
_WORD = re.compile(r"\w+")
# In errors of deltalake.
_COLOURS, _FRAMES = re.compile(r"\x1b\[[\d;]*m"), re.compile(r"\n\s*0: .*", re.DOTALL)
_MOST_REASON = 300
# In errors of tables whose log lacks a file, and of servers.
_OF_LOG, _OF_HINT = re.compile(r"[Cc]heckpoint|Parquet|delta log"), "_last_checkpoint hint"
_REJECTED = re.compile(r"lacked the necessary privileges|lacked valid authentication")
# Rows that do not count yet are kept so long: a writer takes less.
WRITER_HOURS = 24
_MOST_TRIES = 20
# Of a server that does not answer.
_PATIENCE = {"connect_timeout": "5s", "timeout": "30s", "retry_timeout": "30s"}
# How often a commit is tried again if another writer was faster.
_MOST_RETRIES = 200
# Rows whose statistics are kept together. Smaller groups skip more and compress less.
ROW_GROUP_ROWS = 64 * 1024
# How many times as many buckets as a sample the sum of a run may have.
_SUMMED = 128
# Settings of a database that is closed once its files are allowed.
_UNTIL_ALLOWED = {**CLOSED, "enable_external_access": True}
# Columns whose numbers hardly repeat, so that a dictionary of them is as large as they are.
MEASURED = ("value", "min", "max", "below.value", "below.min", "below.max")
# What samples are sorted by, so that a row group holds few stacks.
SAMPLE_ORDER = ("stack_hash",)
# The table that is written last.
_LAST = TABLES[-1]
# Rows of profiles but those that were written again.
_FIRST = """
SELECT p.* FROM {table} p ANTI JOIN again a ON p.date = a.date AND p.job = a.job
AND p.profile_id = a.profile_id AND p.batch > a.batch"""
# Of several writings of one profile the first counts. `profiles` has recorded ones and, where these
# are gone, their sums: the profiles of one sum are removed together.
_VIEWS = {
    "stored_keys": "SELECT date, job, profile_id, batch, members FROM stored_profiles",
    "again": """
        WITH twice AS (
            SELECT profile_id FROM stored_keys GROUP BY profile_id HAVING count(*) > 1)
        SELECT date, job, profile_id, min(batch) AS batch
        FROM stored_keys SEMI JOIN twice USING (profile_id) GROUP BY ALL HAVING count(*) > 1""",
    "all_profiles": _FIRST.format(table="stored_profiles"),
    "every_sum": f"SELECT * FROM ({_FIRST.format(table='stored_keys')}) WHERE members IS NOT NULL",
    "summed": """
        SELECT date, job, profile_id AS sum_id, unnest(members) AS profile_id FROM every_sum""",
    "alone": """
        SELECT s.date, s.job, s.profile_id, s.batch FROM every_sum s ANTI JOIN stored_keys p
        ON s.date = p.date AND s.job = p.job AND s.members[1] = p.profile_id""",
    "profiles": """
        FROM all_profiles WHERE members IS NULL UNION ALL
        FROM all_profiles SEMI JOIN alone USING (date, job, profile_id, batch)""",
    "all_samples": "FROM stored_samples UNION ALL BY NAME FROM stored_sums",
    "samples": "FROM all_samples SEMI JOIN profiles USING (date, job, profile_id, batch)",
    "timelines": "FROM stored_timelines SEMI JOIN profiles USING (date, job, profile_id, batch)",
    "stacks": "SELECT DISTINCT ON (stack_hash) * FROM stored_stacks",
}
# Those that others read several times are computed when a connection is opened.
_COMPUTED = ("stored_keys", "again")
# Those that users ask; samples of sums are among the others.
QUERIED = tuple(table for table in TABLES if table in _VIEWS)


@dataclass(frozen=True, slots=True)
class Store:
    """A store in a folder or at a URL.

    Attributes:
        uri: Its folder, absolute, or its URL.
        options: Settings of the object store, as deltalake takes them; beside them those of the
            environment count, such as ``AWS_ENDPOINT_URL``.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, place: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Store:
        """Return the store at a place, whether it exists or not.

        Raises:
            UsageError: No store can be in such a folder.
        """
        text = os.fspath(place)
        if _is_url(text):
            return cls(text.rstrip("/"), options or {})
        folder = os.path.abspath(text)
        if found := _NO_FOLDER.search(folder):
            raise UsageError(
                f"a store cannot be in {folder!a}: choose a path without {found[0]!a} in it"
            )
        return cls(folder, options or {})

    @classmethod
    def create(
        cls, place: str | os.PathLike[str], options: Mapping[str, str] | None = None
    ) -> Store:
        """Return the store at a place, which is made if there is none.

        Raises:
            UsageError: No store can be in such a folder.
            OutputError: A table cannot be written.
            ProfileFormatError: The store is damaged, or of a version that this release cannot use.
        """
        store = cls.at(place, options)
        with refused(f"create {store.uri}"):
            place, settings = store.place(_LAST), store.settings()
            is_there = awaited(lambda: deltalake.DeltaTable.is_deltatable(place, settings))
        if is_there:
            store.snapshot()
            return store
        for table in TABLES:
            with refused(f"create {store.uri}"):
                deltalake.DeltaTable.create(
                    store.place(table),
                    schema=SCHEMAS[table],
                    mode="ignore",
                    partition_by=PARTITIONS[table],
                    description=f"proton_bench store {VERSION[0]}.{VERSION[1]}",
                    storage_options=store.settings(),
                )
        return store

    @classmethod
    def open(cls, place: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Store:
        """Return the store at a place.

        Raises:
            UsageError: There is none.
            ProfileFormatError: It is damaged, or of a version that this release cannot use.
        """
        store = cls.at(place, options)
        store.table("profiles")
        return store

    @property
    def is_remote(self) -> bool:
        """Whether it is at a URL, so that only Arrow can read its files."""
        return _is_url(self.uri)

    def place(self, table: str) -> str:
        """Return the folder or URL of a table."""
        return f"{self.uri}/{table}"

    def table(self, name: str, version: int | None = None) -> deltalake.DeltaTable:
        """Return a version of a table, by default the newest.

        Raises:
            UsageError: The store does not exist, or the server rejects the credentials.
            ProfileFormatError: It is damaged, or of a version that this release cannot use.
        """
        place, settings = self.place(name), self.settings()
        if not self.is_remote:
            check_log(place)
        try:
            found = awaited(lambda: deltalake.DeltaTable(place, version, settings))
        except deltalake.exceptions.TableNotFoundError:
            if name == _LAST:
                raise UsageError(
                    f"there is no store at {self.uri!a}: make one with `proton store init`"
                ) from None
            raise ProfileFormatError(
                f"the store {self.uri!a} is damaged: its table {name} is missing; copy it back"
            ) from None
        except (deltalake.exceptions.DeltaError, OSError, ValueError) as error:
            reason = reason_of(error)
            if self.is_remote and _REJECTED.search(str(error)):
                raise UsageError(
                    f"the server of {self.uri!a} rejects the credentials ({reason}): set those of "
                    "the vendor's tools, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                ) from error
            advice = "; copy its _delta_log back" if _OF_LOG.search(reason) else ""
            if _OF_HINT in reason:
                advice += ", or remove _last_checkpoint in it if all other files are there"
            raise ProfileFormatError(
                f"the table {name} of the store {self.uri!a} cannot be opened: {reason}{advice}"
            ) from error
        match = _DESCRIPTION.fullmatch(found.metadata().description or "")
        if match is None or int(match[1]) != VERSION[0]:
            raise ProfileFormatError(
                f"{self.uri!a} is not a store of version {VERSION[0]}: update proton_bench, or "
                "name another place"
            )
        return found

    def append(self, table: str, rows: pa.Table) -> None:
        """Append rows to a table in one commit; other writers may do so at the same time.

        Raises:
            OutputError: The table cannot be written; no row was added.
        """
        if not len(rows):
            return
        properties = writer_properties(table)
        with refused(f"add to the table {table} of {self.uri}"):
            _again(
                lambda: deltalake.write_deltalake(
                    self.place(table),
                    rows,
                    mode="append",
                    # A table of an earlier version gets the columns that it lacks.
                    schema_mode="merge",
                    writer_properties=properties,
                    commit_properties=deltalake.CommitProperties(max_commit_retries=_MOST_RETRIES),
                    storage_options=self.settings(),
                )
            )

    def commit(self, name: str, files: Sequence[transaction.AddAction]) -> None:
        """Make the rows of `files.NewFiles` count, in one commit as `append` does.

        Raises:
            OutputError: The table cannot be written; no row was added.
        """
        if not files:
            return
        fields = deltalake.Schema.from_arrow(SCHEMAS[name]).fields

        def write() -> None:
            table = self.table(name)
            known = {field.name for field in table.schema().fields}
            if lacking := [field for field in fields if field.name not in known]:
                table.alter.add_columns(lacking)
            table.create_write_transaction(
                list(files),
                "append",
                table.schema(),
                PARTITIONS[name],
                commit_properties=deltalake.CommitProperties(max_commit_retries=_MOST_RETRIES),
            )

        with refused(f"add to the table {name} of {self.uri}"):
            _again(write)

    def snapshot(self, versions: Mapping[str, int] | None = None) -> Snapshot:
        """Return these versions of the tables, by default the current ones.

        Raises:
            UsageError: The store does not exist.
            ProfileFormatError: It is damaged.
        """
        known = versions or {}
        # Profiles are written last, so that what the other tables have then belongs to them.
        last = self.table(_LAST, known.get(_LAST))
        others = {
            table: started(partial(self.table, table, known.get(table)))
            for table in TABLES
            if table != _LAST
        }
        wait(others.values())  # a process must not end amid native code
        tables = {table: opened.result() for table, opened in others.items()}
        return Snapshot(self, {**tables, _LAST: last})

    def settings(self) -> dict[str, str] | None:
        """Return the settings of the object store, None for a folder."""
        return {**_PATIENCE, **self.options} if self.is_remote else None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The tables of a store at one moment.

    Attributes:
        store: The store.
        tables: A version of each table.
    """

    store: Store
    tables: Mapping[str, deltalake.DeltaTable]

    def __reduce__(self) -> Any:
        """Pickle what another process opens the same snapshot with."""
        versions = tuple((name, table.version()) for name, table in self.tables.items())
        # A store that was made anew at its place has another id.
        id = self.tables["profiles"].metadata().id
        return _opened, (self.store.uri, tuple(self.store.options.items()), versions, id)

    @contextmanager
    def connect(
        self, asked: str | None = None, partitions: Collection[Partition] | None = None
    ) -> Iterator[Reader]:
        """Open a DuckDB connection with the tables as views; it reads no other files.

        Args:
            asked: The statements that are to come: views that they do not name are not made, which
                takes as long as a small question.
            partitions: Rows of others are left out. In a folder their files are: where a condition
                leaves some out, DuckDB expects no rows of the rest either, and joins them in the
                worst way.

        Raises:
            ProfileFormatError: A file or row of the store is missing or damaged.
        """
        names = _names_in(" ".join(_VIEWS) if asked is None else asked)
        files = {
            table: self._files(table, partitions) for table in TABLES if f"stored_{table}" in names
        }
        sizes = list(chain(*files.values()))
        every = [file for file, _ in sizes]
        with open_memory(_UNTIL_ALLOWED) as connection, reading(self.store.uri, every):
            # Not the folder: it has rows that do not count.
            connection.execute("SET allowed_paths = ?", [every])
            connection.execute("SET enable_external_access = false")
            connection.execute("SET parquet_metadata_cache = true")
            reader = Reader.of(connection, [] if self.store.is_remote else sizes)
            for table, listed in files.items():
                self._register(connection, table, listed, partitions=partitions)
            for view, query in _VIEWS.items():
                if view in names:
                    kind = "TABLE" if view in _COMPUTED else "VIEW"
                    connection.execute(f"CREATE TEMP {kind} {view} AS {query}")
            yield reader

    def profiles(self, condition: str = "true") -> pa.Table:
        """Return the profiles that a condition in SQL holds for, by time, run and rank.

        Raises:
            UsageError: The condition is wrong.
            ProfileFormatError: The store is damaged.
        """
        with self.connect(f"profiles {condition}") as reader, clear_errors():
            return reader.table(
                f"SELECT * FROM profiles {where_clause(condition)} "
                "ORDER BY date, time_unix_nano, job, run, rank, profile_id"
            )

    def _files(self, table: str, partitions: Collection[Partition] | None) -> list[tuple[str, int]]:
        """Return the files of a table with their bytes, in a folder those of some partitions."""
        opened = self.tables[table]
        found: list[str] = opened.file_uris()
        if self.store.is_remote:
            facts = pa.table(opened.get_add_actions(flatten=True))
            return list(zip(found, facts["size_bytes"].to_pylist(), strict=True))
        # deltalake escapes the table's folder in these, and leaves what is below as it is.
        escaped, folder = urlsplit(opened.table_uri).path, self.store.place(table)
        files = file_sizes(folder, table, [each.removeprefix(escaped) for each in found])
        if partitions is None or not PARTITIONS[table]:
            return list(files)
        return [(file, size) for file, size in files if _partition_of(file) in partitions]

    def _register(
        self,
        connection: Any,
        table: str,
        files: Sequence[tuple[str, int]],
        *,
        partitions: Collection[Partition] | None,
    ) -> None:
        """Make the stored rows of a table known as ``stored_<table>``."""
        is_limited = partitions is not None and bool(PARTITIONS[table])
        if not files or (is_limited and not partitions):
            connection.register(f"stored_{table}", SCHEMAS[table].empty_table())
            return
        if self.store.is_remote:
            connection.register(f"remote_{table}", self.tables[table].to_pyarrow_dataset())
            limits = _limits(partitions or ()) if is_limited else "true"
            rows = f"remote_{table} WHERE {limits}"
        else:
            listed = ", ".join(quoted(file) for file, _ in files)
            kinds = _HIVE_TYPES if PARTITIONS[table] else "hive_partitioning = false"
            if table == _LAST:  # files of earlier versions lack facts that later ones have
                kinds += ", union_by_name = true"
            rows = f"read_parquet([{listed}], {kinds})"
        columns = checked_columns(table, connection.sql(f"FROM {rows}"))
        connection.execute(f"CREATE TEMP VIEW stored_{table} AS SELECT {columns} FROM {rows}")


def _partition_of(file: str) -> Partition:
    """Return what a file belongs to, from its folders."""
    day, job = (unquote(folder.partition("=")[2]) for folder in file.split("/")[-3:-1])
    return Partition(date.fromisoformat(day), job)


def _limits(partitions: Collection[Partition]) -> str:
    """Return the condition of the days and jobs of partitions, which skips files of others."""
    days = ", ".join(sorted({f"DATE '{each.day}'" for each in partitions}))
    jobs = ", ".join(sorted({quoted(each.job) for each in partitions}))
    return f"date IN ({days}) AND job IN ({jobs})"


def _names_in(sql: str) -> set[str]:
    """Return the words in statements, and in the views that they name."""
    names = set(_WORD.findall(sql.lower()))
    for view, query in reversed(_VIEWS.items()):  # those that a view names are before it
        if view in names:
            names.update(_WORD.findall(query))
    return names


@lru_cache(maxsize=1)
def _opened(
    uri: str, options: tuple[tuple[str, str], ...], versions: tuple[tuple[str, int], ...], _id: str
) -> Snapshot:
    """Return a snapshot, which a process opens once for all of its work."""
    return Store(uri, dict(options)).snapshot(dict(versions))


# Names of folders are values of partition columns.
_HIVE_TYPES = "hive_partitioning = true, hive_types = {'date': DATE, 'job': VARCHAR}"


def writer_properties(table: str) -> deltalake.WriterProperties:
    """Return how the files of a table are written."""
    plain = deltalake.ColumnProperties(dictionary_enabled=False)
    return deltalake.WriterProperties(
        compression="ZSTD",
        max_row_group_size=ROW_GROUP_ROWS // (_SUMMED if table == "sums" else 1),
        column_properties=dict.fromkeys(MEASURED, plain),
    )


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def is_among(column: str, texts: Iterable[str]) -> str:
    """Return the condition that a column has one of these texts, as deltalake takes it."""
    return f"{column} IN ({', '.join(map(quoted, texts))})"


def where_clause(condition: str) -> str:
    """Return the clause of a condition that a user wrote.

    Raises:
        UsageError: It is not one expression, so that it could become another statement.
    """
    with clear_errors():
        condition.encode()
        duckdb.SQLExpression(condition)
    return f"WHERE ({condition}\n)"  # a comment may be its end


def _is_url(place: str) -> bool:
    """Return whether a place is a URL rather than a folder."""
    return _URL.match(place) is not None


@contextmanager
def refused(action: str) -> Iterator[None]:
    """Turn errors of deltalake into one that says what was not done.

    Raises:
        OutputError: The block failed.
    """
    try:
        yield
    except (deltalake.exceptions.DeltaError, OSError) as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"cannot {action}: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """Return an error of deltalake on one line, without the frames of its native code."""
    text = _COLOURS.sub("", _FRAMES.sub("", str(error)))
    lines = (line.strip("↳ \t") for line in text.splitlines())
    reason = ": ".join(line for line in lines if line)
    return reason if len(reason) <= _MOST_REASON else f"{reason[:_MOST_REASON]}..."


# -- changes of stored rows ----------------------------------------------------------------------
class Partition(NamedTuple):
    """The rows of one day and job."""

    day: date
    job: str

    @classmethod
    def of_rows(cls, rows: pa.Table) -> set[Partition]:
        """Return those of some rows of a table."""
        # To group them would warn of buffers that a worker was sent, which are not aligned.
        keys = pc.binary_join_element_wise(rows["date"].cast(pa.string()), rows["job"], "/")
        parts = (key.partition("/") for key in pc.unique(keys).to_pylist())
        return {cls(date.fromisoformat(day), job) for day, _, job in parts}

    @property
    def condition(self) -> str:
        """The condition of these rows, as deltalake takes it."""
        return f"date = '{self.day}' AND job = {quoted(self.job)}"


def delete(store: Store, name: str, condition: str) -> int:
    """Delete the rows of a table that a condition holds for, and return their number.

    Raises:
        OutputError: The store cannot be written.
    """
    done: dict[str, Any] = change(
        store,
        name,
        lambda table: table.delete(condition, writer_properties=writer_properties(name)),
    )
    return int(done["num_deleted_rows"])


def change(store: Store, name: str, apply: Callable[[deltalake.DeltaTable], Any]) -> Any:
    """Change a table; if another writer changed the same files meanwhile, do it again.

    Args:
        store: The store.
        name: The table.
        apply: Changes the table, and returns what it did.

    Raises:
        OutputError: The store cannot be written.
    """
    with refused(f"change the table {name} of {store.uri}"):
        return _again(lambda: awaited(partial(apply, store.table(name))))


def _again(work: Callable[[], _T]) -> _T:
    """Return the result of a commit, which is made again if others changed the same meanwhile."""
    for _ in range(_MOST_TRIES):
        with suppress(deltalake.exceptions.CommitFailedError):
            return work()
    return work()
