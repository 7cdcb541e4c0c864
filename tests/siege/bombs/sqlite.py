"""Databases that are not exports: their pages, schemas and neighbours lie."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from fakes import nsys
from siege.bombs.kinds import kind_of

kind = kind_of("sqlite")
COLUMNS = "start, end, eventType, globalTid, text"
PAGE = 1024
KERNEL = nsys.KERNEL
KERNELS = "start, end, correlationId, deviceId, globalPid, demangledName, shortName"
TREE, INDEX_TREE, LEAF, INDEX_LEAF = 5, 2, 13, 10
CHAINED = 4  # bytes of a page that lead to the next one of a chain


def script(*lines: str, page: int = PAGE) -> bytes:
    """Return the database that these lines make."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(f"PRAGMA page_size = {page};" + ";".join(lines) + ";")
            connection.commit()
        return path.read_bytes()


def numbers(count: int) -> str:
    return f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {count})"


def ranges(count: int = 2000, text: str = "'x'") -> str:
    return (
        f"CREATE TABLE NVTX_EVENTS ({COLUMNS}); INSERT INTO NVTX_EVENTS {numbers(count)} "
        f"SELECT i, i + 1, 59, 1, {text} FROM n"
    )


def as_schema(made: str, wanted: str) -> str:
    """Return the lines that put other text into the schema."""
    return (
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = "
        f"replace(sql, '{made}', '{wanted}'); PRAGMA writable_schema = OFF"
    )


def into_schema(what: str, count: int, sql: str) -> str:
    """Return the lines that put ``count`` entries into the schema; ``i`` is their number."""
    root = "rootpage" if what == "table" else "0"
    return (
        f"PRAGMA writable_schema = ON; INSERT INTO sqlite_master {numbers(count)} SELECT '{what}', "
        f"'t' || i, m.tbl_name, {root}, '{sql}' FROM n, (SELECT * FROM sqlite_master LIMIT 1) AS m"
    )


@kind(".sqlite", is_quick=True)
def view_without_end() -> bytes:
    return script(
        f"CREATE VIEW NVTX_EVENTS ({COLUMNS}) AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
        "SELECT i + 1 FROM n) SELECT i, i + 1, 59, 1, hex(zeroblob(100000)) FROM n",
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value)",
    )


@kind(".sqlite")
def full_text_table() -> bytes:
    return script(
        f"CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5({COLUMNS})",
        f"INSERT INTO NVTX_EVENTS {numbers(20_000)} SELECT i, i + 1, 59, 1, 'a b c' FROM n",
    )


@kind(".sqlite")
def generated_texts() -> bytes:
    return script(
        "CREATE TABLE NVTX_EVENTS (start INTEGER PRIMARY KEY, end AS (start + 1), "
        "eventType AS (59), globalTid AS (1), text AS (hex(zeroblob(250000)) || start))",
        f"INSERT INTO NVTX_EVENTS {numbers(100_000)} SELECT i FROM n",
    )


@kind(".sqlite")
def generated_patterns() -> bytes:
    stars = "%a" * 40
    return script(
        "CREATE TABLE NVTX_EVENTS (start INTEGER PRIMARY KEY, end AS (start + 1), eventType AS "
        f"(59), globalTid AS (printf('%.*c', 90000, 'a') LIKE '{stars}b'), text TEXT)",
        f"INSERT INTO NVTX_EVENTS {numbers(50_000)} SELECT i, 'x' FROM n",
    )


def shared(content: bytes, inner: int, levels: int, cells: int = 60) -> bytes:
    """Return the database with its first inner page of a kind above a chain of others like it.

    Each leads to the next one by all its cells.
    """
    pages, count = bytearray(content), len(content) // PAGE
    kinds = [pages[number * PAGE] for number in range(count)]
    table, below = kinds.index(inner, 1), LEAF if inner == TREE else INDEX_LEAF
    leaf = kinds.index(below, 1)
    free = [number for number in range(1, count) if number not in (table, leaf)][:levels]
    width = 5 if inner == TREE else 7
    for number, lower in zip([table, *free], [*free, leaf], strict=True):
        page, start = bytearray(PAGE), PAGE - width * cells
        page[0] = inner
        page[3:5], page[5:7] = cells.to_bytes(2, "big"), start.to_bytes(2, "big")
        page[8:12] = (lower + 1).to_bytes(4, "big")
        for cell in range(cells):
            at = start + width * cell
            page[12 + 2 * cell : 14 + 2 * cell] = at.to_bytes(2, "big")
            rest = bytes([cell]) if inner == TREE else b"\x02\x02\x01"
            page[at : at + width] = (lower + 1).to_bytes(4, "big") + rest
        pages[number * PAGE : (number + 1) * PAGE] = page
    return bytes(pages)


@kind(".sqlite")
def shared_pages_without_row_ids() -> bytes:
    made = script(
        "CREATE TABLE NVTX_EVENTS (start INTEGER PRIMARY KEY, end, eventType, globalTid, text) "
        "WITHOUT ROWID",
        f"INSERT INTO NVTX_EVENTS {numbers(20_000)} SELECT i, i + 1, 59, 1, 'xxxxxxxxx' FROM n",
    )
    return shared(made, INDEX_TREE, 12)


@kind(".sqlite")
def shared_pages_of_kernels() -> bytes:
    made = script(
        f"CREATE TABLE {KERNEL} ({KERNELS})",
        f"INSERT INTO {KERNEL} {numbers(30_000)} SELECT i, i + 1, i, 0, 1, 1, 1 FROM n",
    )
    return shared(made, TREE, 20)


@kind(".sqlite")
def shared_pages_of_texts() -> bytes:
    made = script(
        "CREATE TABLE StringIds (id, value)",
        f"INSERT INTO StringIds {numbers(9000)} SELECT i, 'a text of some length' FROM n",
        f"CREATE TABLE {KERNEL} ({KERNELS})",
        f"INSERT INTO {KERNEL} VALUES (1, 2, 3, 0, 1, 99999, 99998)",
    )
    return shared(made, TREE, 8)


@kind(".sqlite", is_quick=True)
def schema_of_shared_pages() -> bytes:
    tables = (f"CREATE TABLE t{number} (a, b)" for number in range(200))
    made = bytearray(script(ranges(5), *tables))
    inner = shared(bytes(made), TREE, 5) if TREE in made[PAGE::PAGE] else bytes(made)
    # The schema's own page leads to one place by all its cells.
    page = bytearray(inner[:PAGE])
    lower = next(n for n in range(1, len(inner) // PAGE) if inner[n * PAGE] == LEAF) + 1
    cells = int.from_bytes(page[103:105], "big")
    for cell in range(cells):
        at = int.from_bytes(page[112 + 2 * cell : 114 + 2 * cell], "big")
        page[at : at + 4] = lower.to_bytes(4, "big")
    return bytes(page) + inner[PAGE:]


def chained(content: bytes, change: dict[int, int]) -> bytes:
    """Return the database with other pages at the ends of some pages of chains."""
    pages = bytearray(content)
    for number, after in change.items():
        pages[number * PAGE : number * PAGE + CHAINED] = after.to_bytes(CHAINED, "big")
    return bytes(pages)


def chains(content: bytes) -> list[int]:
    """Return the pages that are not trees."""
    marks = (TREE, INDEX_TREE, LEAF, INDEX_LEAF)
    return [n for n in range(1, len(content) // PAGE) if content[n * PAGE] not in marks]


@kind(".sqlite")
def text_whose_pages_go_in_circles() -> bytes:
    made = script(ranges(1), ranges(20, "hex(zeroblob(200000)) || i").split(";")[1])
    found = chains(made)
    return chained(made, dict.fromkeys(found, found[0] + 1))


@kind(".sqlite")
def texts_that_share_pages() -> bytes:
    """Return rows whose texts of 900 kB all lead to the pages of the first one."""
    made = bytearray(script(ranges(9, "hex(zeroblob(450000))"), page=PAGE))
    leaf = next(n for n in range(1, len(made) // PAGE) if made[n * PAGE] == LEAF)
    # Cells that have the same bytes share them too: all rows are the first one.
    first = made[leaf * PAGE + 8 : leaf * PAGE + 10]
    for number in range(1, len(made) // PAGE):
        if made[number * PAGE] == LEAF:
            count = (PAGE - 400) // 2
            page = made[leaf * PAGE : (leaf + 1) * PAGE]
            page[3:5] = count.to_bytes(2, "big")
            page[8 : 8 + 2 * count] = first * count
            made[number * PAGE : (number + 1) * PAGE] = page
    return bytes(made)


@kind(".sqlite")
def free_pages_in_circles() -> bytes:
    made = bytearray(
        script(ranges(9000), "CREATE TABLE t (a)", "DELETE FROM NVTX_EVENTS WHERE start > 9")
    )
    trunk = int.from_bytes(made[32:36], "big")
    at = (trunk - 1) * PAGE
    made[at : at + 8] = trunk.to_bytes(4, "big") + (200).to_bytes(4, "big")
    made[36:40] = (2**31).to_bytes(4, "big")
    return bytes(made)


@kind(".sqlite", is_quick=True)
def more_pages_than_the_file_has() -> bytes:
    made = bytearray(script(ranges(9000)))
    made[28:32] = (2**32 - 2).to_bytes(4, "big")
    return bytes(made)


@kind(
    "",
    ("view", "a.sqlite"),
    ("report", "a.sqlite", "-o", "out.html"),
    ("merge", "a.sqlite", "good.proton", "-o", "out.proton"),
)
def log_beside_the_database() -> dict[str, bytes]:
    made = bytearray(script(ranges(2000)))
    made[18:20] = b"\x02\x02"
    head = b"\x37\x7f\x06\x82" + (3007000).to_bytes(4, "big") + PAGE.to_bytes(4, "big")
    frame = (1).to_bytes(4, "big") + (2**31 - 1).to_bytes(4, "big") + bytes(16 + PAGE)
    return {"a.sqlite": bytes(made), "a.sqlite-wal": head + bytes(20) + frame * 8000}


@kind("", ("view", "a.sqlite"), ("doctor", "a.sqlite"))
def journal_beside_the_database() -> dict[str, bytes]:
    made = script(ranges(2000))
    head = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\xff\xff\xff\xff" + bytes(500)
    return {"a.sqlite": made, "a.sqlite-journal": head + bytes(8 << 20)}


@kind(".sqlite")
def blobs_for_names() -> bytes:
    return script(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value)",
        f"INSERT INTO StringIds {numbers(9)} SELECT i, zeroblob(900000) FROM n",
        f"CREATE TABLE {KERNEL} ({KERNELS})",
        f"INSERT INTO {KERNEL} {numbers(15_000)} SELECT i, i + 1, i, 0, 1, zeroblob(9), i % 9 "
        "FROM n",
    )


@kind(".sqlite")
def tables_that_compute() -> bytes:
    return script(
        ranges(5),
        "CREATE VIRTUAL TABLE META_DATA_EXPORT USING dbstat",
        "CREATE VIRTUAL TABLE TARGET_INFO_GPU USING rtree(id, name, value)",
        f"INSERT INTO TARGET_INFO_GPU {numbers(20_000)} SELECT i, i, i + 1 FROM n",
    )


@kind(".sqlite")
def orders_that_nobody_knows() -> bytes:
    made = script(
        f"CREATE TABLE NVTX_EVENTS ({COLUMNS}, PRIMARY KEY (text COLLATE NOCASE))",
        f"INSERT INTO NVTX_EVENTS {numbers(50_000)} SELECT i, i + 1, 59, 1, i FROM n",
        "CREATE INDEX j ON NVTX_EVENTS (hex(text) || hex(text))",
    )
    return re.sub(rb"COLLATE NOCASE", b"COLLATE NOBODY", made)


@kind(".sqlite")
def more_tables_than_any_export() -> bytes:
    return script(ranges(5), into_schema("table", 80_000, "CREATE TABLE t' || i || ' (a, b, c)"))


@kind(".sqlite")
def text_of_the_schema() -> bytes:
    deep = "(" * 40 + "1" + ")" * 40
    checks = ",".join(f"CHECK ({deep})" for _ in range(8000))
    return script(ranges(5), f"CREATE TABLE StringIds (id, value, {checks})", page=8192)


@kind(".sqlite")
def texts_without_an_index() -> bytes:
    return script(
        "CREATE TABLE StringIds (id, value)",
        f"INSERT INTO StringIds {numbers(60_000)} SELECT i, 'n' || i FROM n",
        f"CREATE TABLE {KERNEL} ({KERNELS})",
        f"INSERT INTO {KERNEL} {numbers(60_000)} SELECT i, i + 1, i, 0, 1, 300000 + i, -i FROM n",
        page=8192,
    )


@kind(".sqlite")
def triggers_on_every_table() -> bytes:
    made = "CREATE TRIGGER t' || i || ' AFTER INSERT ON NVTX_EVENTS BEGIN DELETE FROM t; END"
    return script(ranges(50), into_schema("trigger", 30_000, made))


@kind(".sqlite")
def schema_that_runs_in_circles() -> bytes:
    return script(
        ranges(50),
        "CREATE VIEW a AS SELECT 1",
        "CREATE VIEW b AS SELECT * FROM a",
        as_schema("SELECT 1", "SELECT * FROM b"),
    )
