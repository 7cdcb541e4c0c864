"""SQLite exports of Nsight Systems: opening them safely, and their tables and columns.

Empty tables are missing, and columns differ between versions, so the schema is read first.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proton_bench.formats.base import corrupt
from proton_bench.formats.limits import Limits, reading, take_items
from proton_bench.support.inputs import open_file

__all__ = ["NsysTables", "opened_content", "opened_file"]

_ROWS = 1 << 8  # read at once; each may hold a text of the greatest length
_MOST_TEXT = 1 << 20
_STEPS = 100_000  # of SQLite's machine between two looks at the clock: a millisecond or two
_HEADER = 100
_DIGITS = 4
_VERSIONED = re.compile(r"(.+?)_?[vV]([0-9]{1,4})", re.DOTALL)
_ADVICE = "the file is damaged; export it again with nsys"


class NsysTables:
    """The tables of an export, by the names of tables and columns in the file.

    A table may have a version in its name (``NVTX_EVENTS_V2``): it is found by the name without.

    Attributes:
        source: Name of the file, for messages.
    """

    def __init__(self, connection: sqlite3.Connection, source: str) -> None:
        self.source = source
        self._connection = connection
        self._columns: dict[str, frozenset[str]] = {}
        self._texts: dict[int, str | None] = {}
        self._has_all_texts = False
        # Views and virtual tables could compute endlessly; nsys writes only plain tables.
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' "
            "AND typeof(name) = 'text'"
        )
        self._tables: dict[str, str] = {}  # the name in the file of each
        self._names = [name for (name,) in found]
        for name in sorted(self._names, key=_version):
            match = _VERSIONED.fullmatch(name)
            self._tables[match[1] if match else name] = name

    def __contains__(self, table: str) -> bool:
        return table in self._tables

    def unread(self, known: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield tables that are called like one of these and not read, and their rows."""
        for name in self._names:
            if name.startswith(tuple(known)) and name not in self._tables.values():
                (count,) = self._connection.execute(f"SELECT count(*) FROM {_quoted(name)}")
                yield name, count[0]

    def has(self, table: str, column: str) -> bool:
        """Return whether there is such a column."""
        return column in self._columns_of(table)

    def _columns_of(self, table: str) -> frozenset[str]:
        if table not in self._columns:
            found = self._described(table) if table in self._tables else []
            self._columns[table] = frozenset(column[1] for column in found)
        return self._columns[table]

    def _described(self, table: str) -> list[tuple[Any, ...]]:
        """Return number, name, type, and so on, of each column."""
        name = _quoted(self._tables[table])
        return self._connection.execute(f"PRAGMA table_info({name})").fetchall()

    def rows(
        self, table: str, wanted: Sequence[str], optional: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the wanted and then the optional columns of every row.

        Args:
            table: Its name; no rows if there is no such table.
            wanted: Columns that must exist.
            optional: Columns that may be missing, with their default.

        Raises:
            ProfileFormatError: A wanted column is missing.
        """
        if table not in self._tables:
            return
        known = self._columns_of(table)
        missing = [name for name in wanted if name not in known]
        if missing:
            raise corrupt(
                self.source,
                f"table {self._tables[table]} has no column {', '.join(missing)}",
                "this version of nsys is not known; export it with another one",
            )
        chosen = [_quoted(name) for name in wanted]
        chosen += [
            _quoted(name) if name in known else _literal(value)
            for name, value in (optional or {}).items()
        ]
        name = _quoted(self._tables[table])
        cursor = self._connection.execute(f"SELECT {', '.join(chosen)} FROM {name}")
        while rows := cursor.fetchmany(_ROWS):
            take_items(len(rows))
            yield from rows

    def text(self, number: Any) -> str | None:
        """Return the text with this number in the table of texts, or None."""
        if type(number) is not int:
            return None
        if number not in self._texts and not self._has_all_texts:
            self._texts[number] = self._find_text(number)
        return self._texts.get(number)

    def _find_text(self, number: int) -> str | None:
        if not self.has("StringIds", "id") or not self.has("StringIds", "value"):
            return None
        if not any(column[1] == "id" and column[5] == 1 for column in self._described("StringIds")):
            # Without a key each query would scan all of them.
            for known, text in self.rows("StringIds", ("id", "value")):
                if type(known) is int and isinstance(text, str):
                    self._texts.setdefault(known, text)
            self._has_all_texts = True
            return self._texts.get(number)
        question = f"SELECT value FROM {_quoted(self._tables['StringIds'])} WHERE id = ?"
        found = self._connection.execute(question, (number,)).fetchone()
        return found[0] if found is not None and isinstance(found[0], str) else None


def _version(table: str) -> int:
    """Return what sorts versions of one table: the one without a version is the last."""
    match = _VERSIONED.fullmatch(table)
    return int(match[2]) if match else 10**_DIGITS


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    return "NULL" if value is None else str(int(value))


@contextmanager
def opened_file(path: Path, source: str) -> Iterator[NsysTables]:
    """Open a file for reading; nothing is written beside it.

    Raises:
        ProfileFormatError: It is not a database, or damaged.
    """
    with open_file(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        _check_size(stream.read(_HEADER), size, source)
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with _tables(lambda: sqlite3.connect(address, uri=True), size, source) as found:
        yield found


@contextmanager
def opened_content(content: bytes, source: str) -> Iterator[NsysTables]:
    """Open the content of a file.

    Raises:
        ProfileFormatError: It is not a database, or damaged.
    """
    _check_size(content[:_HEADER], len(content), source)

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:")
        connection.deserialize(content)
        return connection

    with _tables(connect, len(content), source) as found:
        yield found


def _check_size(header: bytes, size: int, source: str) -> None:
    """Raise unless all pages exist: SQLite notices only missing pages that it needs."""
    if len(header) < _HEADER:
        raise corrupt(source, "SQLite: the file is too short", _ADVICE)
    page_bytes = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    is_counted = header[24:28] == header[92:96]
    if is_counted and size < pages * (65536 if page_bytes == 1 else page_bytes):
        raise corrupt(source, "SQLite: the file was truncated", _ADVICE)


@contextmanager
def _tables(
    connect: Callable[[], sqlite3.Connection], size: int, source: str
) -> Iterator[NsysTables]:
    connection: sqlite3.Connection | None = None
    try:
        with reading(size, source) as limits:
            connection = connect()
            yield _opened(connection, limits)
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        limits.check_time()  # which is what interrupts a question
        raise corrupt(source, f"SQLite: {str(error)[:200]}", _ADVICE) from None
    finally:
        if connection is not None:
            connection.close()


def _opened(connection: sqlite3.Connection, limits: Limits) -> NsysTables:
    """Return the tables of a database, whose pages may be shared or circular."""

    def text(content: bytes) -> str:
        limits.take_bytes(len(content))
        return content.decode(errors="backslashreplace")

    connection.text_factory = text
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_TEXT)
    connection.set_progress_handler(lambda: limits.is_late, _STEPS)
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {pragma}")
    return NsysTables(connection, limits.source)
