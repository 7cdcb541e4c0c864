"""SQL over profiles, on DuckDB: read-only, without files and without the network."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from proton_bench.analysis.query.relations import (
    TABLES,
    LabelledRun,
    Relation,
    relations,
    wide_columns,
)
from proton_bench.errors import MissingExtraError, UsageError
from proton_bench.model.profile import Profile

# No file, no network, no extension, no variable of the calling Python code.
CLOSED = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
}
# PIVOT without a list of values is read as several statements, as is COPY of one.
_READING = frozenset({"SELECT", "MULTI"})
_COPY = re.compile(r"\bcopy\b", re.IGNORECASE)
# In DuckDB's parse tree of a statement; texts in it have their quotes escaped.
_NAMED = re.compile(r'"table_name":"(\w+)"')
_BY_TEXT = '"function_name":"query'
_MAX_MESSAGE = 500
_NO_TABLE = "Catalog Error: Table with name"


@dataclass(frozen=True, slots=True, eq=False)
class QueryResult:
    """The result of a query.

    Attributes:
        columns: Their names; two may be the same.
        types: Type of each column in the query language.
        rows: Their values as Python objects, None for NULL.
        has_more: Whether there were more lines than the limit.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    has_more: bool = False


def label_runs(
    profiles: Sequence[tuple[str, Profile]], suffixes: Sequence[str]
) -> list[LabelledRun]:
    """Name each profile after its file, with as much of the path as needed to be unique.

    Args:
        profiles: File and profile of each run.
        suffixes: Suffixes to remove from labels.
    """
    files = [file for file, _ in profiles]
    stems = [_stem(Path(file).name, suffixes) for file in files]
    for labels in (stems, [Path(file).name for file in files], files):
        if len(set(labels)) == len(labels):
            break
    else:
        labels = [f"{file} #{number}" for number, file in enumerate(files, 1)]
    printable = [label.encode("utf-8", "backslashreplace").decode() for label in labels]
    return [
        LabelledRun(label, os.fspath(file), profile)
        for label, (file, profile) in zip(printable, profiles, strict=True)
    ]


def _stem(name: str, suffixes: Sequence[str]) -> str:
    found = max((s for s in suffixes if name.endswith(s)), key=len, default="")
    return name.removesuffix(found) or name


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that only reads.

    Attributes:
        text: The statement.
        tables: The tables of `TABLES` that it may need.
    """

    text: str
    tables: tuple[str, ...]


def parsed(sql: str, others: Sequence[str] = ()) -> Statement:
    """Return a statement, which is parsed only: nothing in it is opened or looked up.

    Args:
        sql: One reading statement.
        others: Tables that there are beside `TABLES`, which errors name too.

    Raises:
        UsageError: The statement is malformed, or writes.
        MissingExtraError: DuckDB is not installed.
    """
    duckdb = _import_duckdb()
    with clear_errors(), duckdb.connect(":memory:", config=dict(CLOSED)) as connection:
        sql.encode()
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(
                f"a query is one SQL statement, not {len(statements)}: {sql[:80]!r}; tables are "
                + ", ".join((*others, *TABLES))
            )
        kind = statements[0].type.name
        if kind not in _READING or (kind == "MULTI" and _COPY.search(sql)):
            raise UsageError(f"a query can only read; {kind} is refused: write SELECT ...")
        return Statement(sql, _needed(connection, sql))


def _needed(connection: Any, sql: str) -> tuple[str, ...]:
    """Return the tables of `TABLES` that a statement names, or may name in a text."""
    duckdb = _import_duckdb()
    try:
        (tree,) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    except duckdb.Error:  # without DuckDB's extension for JSON
        tree = ""
    if _BY_TEXT in tree:
        return tuple(TABLES)
    # There is no tree of what is read as several statements.
    words = re.findall(r"\w+", sql) if '"error":false' not in tree else _NAMED.findall(tree)
    named = {word.casefold() for word in words}
    return tuple(table for table in TABLES if table in named)


def query(runs: Sequence[LabelledRun], sql: str, limit: int | None = None) -> QueryResult:
    """Return the result of one SQL statement over `TABLES` of the runs.

    Args:
        runs: The runs in the tables.
        sql: One reading statement. It cannot change anything or access files and the network.
        limit: Most lines to return; None returns all.

    Raises:
        UsageError: The statement is malformed, has unknown names, writes, or fails.
        MissingExtraError: DuckDB is not installed.
    """
    statement = parsed(sql)
    with _import_duckdb().connect(":memory:", config=dict(CLOSED)) as connection:
        connection.execute("SET enable_progress_bar = false")
        return query_on(connection, runs, statement, limit=limit)


def query_on(
    connection: Any,
    runs: Sequence[LabelledRun],
    statement: Statement,
    *,
    limit: int | None = None,
    tables: Sequence[str] = (),
) -> QueryResult:
    """Return the result of one SQL statement over `TABLES` and the tables of a connection.

    Args:
        connection: A DuckDB connection that is closed to files and network; its settings are fixed
            then.
        runs: The runs in the tables.
        statement: The statement.
        limit: Most lines to return; None returns all.
        tables: The tables of the connection, which errors name too.

    Raises:
        UsageError: The statement has unknown names, or fails.
    """
    with clear_errors((*tables, *TABLES)):
        wide = _create_tables(connection, runs)
        connection.execute("SET lock_configuration = true")
        _fill(connection, runs, statement.tables, wide=wide)
        connection.execute("BEGIN TRANSACTION READ ONLY")
        return _interruptible(
            connection, lambda: _result(connection.execute(statement.text), limit)
        )


def _result(found: Any, limit: int | None) -> QueryResult:
    rows = found.fetchall() if limit is None else found.fetchmany(limit + 1)
    return QueryResult(
        columns=tuple(each[0] for each in found.description),
        types=tuple(str(each[1]) for each in found.description),
        rows=rows if limit is None else rows[:limit],
        has_more=limit is not None and len(rows) > limit,
    )


def _interruptible(connection: Any, work: Callable[[], QueryResult]) -> QueryResult:
    """Run in a separate thread, because DuckDB does not see Ctrl-C on the main thread."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _import_duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError(
            f"SQL queries need DuckDB, which cannot be imported ({error}): pip install duckdb"
        ) from error
    return duckdb


@contextmanager
def clear_errors(tables: Sequence[str] = ()) -> Iterator[None]:
    """Turn DuckDB's errors into ours, of one line.

    Args:
        tables: Tables that there are, which the error about another one names.

    Raises:
        UsageError: The query failed.
    """
    duckdb = _import_duckdb()
    try:
        yield
    except UnicodeEncodeError as error:
        raise UsageError(f"the query is not UTF-8: {error.object[:80]!a}") from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        message = _one_line(str(error))
        if tables and message.startswith(_NO_TABLE):
            message += f"; tables are {', '.join(tables)}"
        raise UsageError(f"the query fails: {message}") from error


def _one_line(message: str) -> str:
    """Return a message of DuckDB without its copy of the statement."""
    text = message.split("\n\nLINE ")[0]
    text = " ".join(text.replace("!\n", "; ").split())
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}..."


# -- tables --------------------------------------------------------------------------------------
def _create_tables(connection: Any, runs: Sequence[LabelledRun]) -> list[str]:
    """Create every table, empty, and return the columns that metrics add to ``nodes``."""
    wide = wide_columns([run.profile for run in runs])
    for table, columns in TABLES.items():
        _create(connection, table, {**columns, **wide} if table == "nodes" else columns)
    return list(wide)


def _create(connection: Any, table: str, columns: Mapping[str, str]) -> None:
    listed = ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns.items())
    connection.execute(f"CREATE TABLE {table} ({listed})")


def _fill(
    connection: Any, runs: Sequence[LabelledRun], tables: Sequence[str], *, wide: Sequence[str]
) -> None:
    for run in runs:
        for relation in relations(run, tables, wide):
            _insert(connection, relation)


def _insert(connection: Any, relation: Relation) -> None:
    if not len(relation):
        return
    names = ", ".join(map(_quoted, (*relation.constants, *relation.columns)))
    # Arrays get generated names, because names of metrics may be anything.
    arrays = {f"c{place}": array for place, array in enumerate(relation.columns.values())}
    chosen = {name: name for name in arrays}
    for name, array in list(arrays.items()):
        # DuckDB takes a NaN of numpy for NULL.
        if array.dtype.kind == "f" and bool(np.isnan(array).any()):
            arrays[f"{name}_is_nan"] = np.isnan(array)
            chosen[name] = f"CASE WHEN {name}_is_nan THEN 'NaN' ELSE {name} END"
    values = ", ".join(("?",) * len(relation.constants) + tuple(chosen.values()))
    connection.register("incoming", arrays)
    connection.execute(
        f"INSERT INTO {relation.table} ({names}) SELECT {values} FROM incoming",
        list(relation.constants.values()),
    )
    connection.unregister("incoming")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
