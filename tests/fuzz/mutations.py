"""Changes files by their structure: values of a tree, fields of a message, bytes, rows."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import zlib
from contextlib import closing
from random import Random
from typing import Any

import msgpack

from proton_bench.formats.protobuf import varint

HOSTILE = "::error::x\x1b[2J\u202e\r\n[bold]x[/red]<script>../../"
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 2**31 - 1, 2**31, -(2**31), 2**53 + 1),
    *(2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 10**30, 0.5, -0.0, 5e-324, 1e308, -1e308),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "\x00", "nan", "1e400", "-1", "\ud800"),
    *(HOSTILE, "x" * 5000, "a.py:1@" * 50, "_Z" + "N" * 300, "time (ns)", "ROOT", [], {}),
    *([[]] * 3, [0] * 300, {"": None}, {"a": {"b": {}}}, "(exc)", "count", "<autotune>"),
)
MOST_BYTES = 2 << 20


def changed(dice: Random, name: str, content: bytes) -> bytes:
    """Return the content of a file with changes that its reader may accept."""
    if dice.random() < 0.15:
        return damaged(dice, content)
    if content[:2] == b"\x1f\x8b":
        try:
            inner = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return damaged(dice, content)
        packed = gzip.compress(changed(dice, name.removesuffix(".gz"), inner), 1)
        return damaged(dice, packed) if dice.random() < 0.1 else packed
    return _CHANGES[kind_of(content, name)](dice, content)[:MOST_BYTES]


def kind_of(content: bytes, name: str) -> str:
    """Return how a file is made."""
    if content.startswith(b"SQLite format 3"):
        return "rows"
    if content.lstrip()[:1] in (b"{", b"["):
        return "json"
    if name.endswith((".toml", ".csv", ".txt")):
        return "text"
    if name.endswith((".pftrace", ".perfetto-trace")):
        return "message"
    return "msgpack"


# -- bytes -----------------------------------------------------------------------------------------
def damaged(dice: Random, content: bytes) -> bytes:
    """Return the content with some bytes changed, added, moved or missing."""
    damage = bytearray(content or b"\0")
    for _ in range(dice.choice((1, 1, 2, 4, 16))):
        at = dice.randrange(len(damage) + 1)
        length = min(dice.choice((1, 1, 2, 4, 8, 64)), len(damage))
        other = dice.randrange(len(damage) + 1)
        way = dice.randrange(5)
        if way == 0:
            damage[at : at + length] = dice.randbytes(length)
        elif way == 1:
            damage[at : at + length] = dice.choice((b"\0", b"\xff", b"\x7f", b"[", b"9")) * length
        elif way == 2:
            damage[at:at] = damage[other : other + length]
        elif way == 3:
            del damage[at : at + length]
        elif dice.random() < 0.3:
            del damage[at:]
    return bytes(damage)


# -- trees of values -------------------------------------------------------------------------------
def odd(dice: Random) -> Any:
    """Return an unusual value."""
    if dice.random() < 0.1:
        deep: Any = 1
        for level in range(dice.choice((10, 100, 900))):
            deep = [deep] if level % 2 else {"children": deep, "a": 1}
        return deep
    if dice.random() < 0.2:
        return dice.randrange(-(2**66), 2**66) >> dice.randrange(60)
    return dice.choice(ODD)


def changed_tree(dice: Random, document: Any) -> Any:
    """Change some values of a tree of lists and dicts in place; return it, or what replaces it."""
    for _ in range(dice.choice((1, 1, 2, 3, 8))):
        holder = _holder(dice, document)
        if holder is None:
            return odd(dice)
        (_change_list if isinstance(holder, list) else _change_dict)(dice, holder, document)
    return document


def _holder(dice: Random, document: Any) -> Any:
    """Return a list or dict on a random way down, as often far below as near the top."""
    below, way = document, []
    while isinstance(below, list | dict) and len(way) < 60:
        way.append(below)
        values = below if isinstance(below, list) else list(below.values())
        inner = [each for each in values[:200] if isinstance(each, list | dict)]
        if not inner:
            break
        below = dice.choice(inner)
    return dice.choice(way) if way else None


def _change_list(dice: Random, values: list[Any], document: Any) -> None:
    at = dice.randrange(len(values) + 1)
    way = dice.randrange(6)
    if way == 0 or not values:
        values.insert(at, odd(dice))
    elif way == 1:
        del values[min(at, len(values) - 1)]
    elif way == 2:
        value = values[min(at, len(values) - 1)]
        # One copy of a container: copies of copies would not fit into the memory.
        values[at:at] = [value] * (
            1 if isinstance(value, list | dict) else dice.choice((1, 3, 100))
        )
    elif way == 3:
        dice.shuffle(values)
    elif way == 4:
        values[min(at, len(values) - 1)] = _foreign(dice, document)
    else:
        values[min(at, len(values) - 1)] = _near(dice, values[min(at, len(values) - 1)])


def _change_dict(dice: Random, values: dict[Any, Any], document: Any) -> None:
    if not values:
        values[odd_key(dice)] = odd(dice)
        return
    key = dice.choice(list(values))
    way = dice.randrange(6)
    if way == 0:
        del values[key]
    elif way == 1:
        values[odd_key(dice)] = values[key]
    elif way == 2:
        values[odd_key(dice)] = odd(dice)
    elif way == 3:
        values[key] = _foreign(dice, document)
    elif way == 4:
        values[key] = values[dice.choice(list(values))]
    else:
        values[key] = _near(dice, values[key])


def odd_key(dice: Random) -> str:
    """Return a key that may have a meaning there."""
    known = ("frame", "name", "metrics", "children", "type", "ph", "ts", "dur", "pid", "tid", "cat")
    return dice.choice((*known, "", HOSTILE, "device_id", "x" * 300, "time (ns)", "__proto__"))


def _foreign(dice: Random, document: Any) -> Any:
    """Return a copy of a value from elsewhere in the tree."""
    found = _holder(dice, document)
    if found is None or dice.random() < 0.5:
        return odd(dice)
    text = repr(found)
    return odd(dice) if len(text) > 20_000 else _copied(found)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _near(dice: Random, value: Any) -> Any:
    """Return a value of the same type, or an unusual one."""
    if dice.random() < 0.4:
        return odd(dice)
    if isinstance(value, bytes):
        try:
            inner = damaged(dice, zlib.decompress(value))
        except zlib.error:
            return damaged(dice, value)
        return zlib.compress(inner, 1) if dice.random() < 0.8 else damaged(dice, value)
    if isinstance(value, str):
        cut = dice.randrange(len(value) + 1)
        return value[:cut] + dice.choice(("", HOSTILE, "(exc)", "x")) + value[cut:]
    if isinstance(value, int | float):
        return dice.choice((value + 1, value - 1, -value, value * 2, value / 2, value * 10**9))
    return odd(dice)


def changed_json(dice: Random, content: bytes) -> bytes:
    """Return JSON with other values."""
    try:
        document = json.loads(content)
        text = json.dumps(changed_tree(dice, document))
    except (ValueError, RecursionError):
        return damaged(dice, content)
    if dice.random() < 0.05:  # a number longer than any that a writer makes
        text = text.replace("1", "1" * dice.choice((30, 5000)), 1)
    return text.encode("utf-8", "surrogatepass")


def changed_msgpack(dice: Random, content: bytes) -> bytes:
    """Return MessagePack with other values."""
    try:
        document = msgpack.unpackb(content, strict_map_key=False, unicode_errors="surrogateescape")
        packed = msgpack.packb(changed_tree(dice, document), unicode_errors="surrogatepass")
    except Exception:  # noqa: BLE001 - whatever it is: it cannot be written
        return damaged(dice, content)
    return bytes(packed)


# -- messages of Protocol Buffers ------------------------------------------------------------------
def fields_of(content: bytes) -> list[tuple[int, Any]] | None:
    """Return the fields of a message as pairs of tag and value; None if it is not a message."""
    fields: list[tuple[int, Any]] = []
    at = 0
    while at < len(content):
        tag, at = _number(content, at)
        size = {1: 8, 5: 4}.get(tag & 7)
        if tag & 7 == 0:
            value: Any = None
            value, at = _number(content, at)
        elif tag & 7 == 2 or size:
            if not size:
                size, at = _number(content, at)
            value = content[at : at + size]
            if len(value) < size:
                return None
            at += size
        else:
            return None
        fields.append((tag, value))
    return fields


def _number(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(content) and shift < 70:
        value |= (content[at] & 127) << shift
        shift += 7
        at += 1
        if content[at - 1] < 128:
            break
    return value, at


def bytes_of(fields: list[tuple[int, Any]]) -> bytes:
    """Return a message."""
    parts = []
    for tag, value in fields:
        if isinstance(value, int):
            parts.append(varint(tag) + varint(value % 2**64))
        else:
            head = varint(len(value)) if tag & 7 == 2 else b""
            parts.append(varint(tag) + head + value)
    return b"".join(parts)


def changed_message(dice: Random, content: bytes) -> bytes:
    """Return a message with other fields, here or in a message within it."""
    fields = fields_of(content)
    if not fields:
        return damaged(dice, content)
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(fields))
        tag, value = fields[at]
        way = dice.randrange(8)
        if way == 0:
            del fields[at]
        elif way == 1:
            fields[at:at] = [fields[at]] * dice.choice((1, 3, 1000))
        elif way == 2:
            fields.insert(at, fields[dice.randrange(len(fields))])
        elif way == 3:
            fields[at] = (dice.randrange(1, 120) << 3 | (tag & 7), value)
        elif isinstance(value, int):
            fields[at] = (tag, dice.choice((0, 1, 2**31, 2**63, 2**64 - 1, value + 1, value * 2)))
        elif tag & 7 == 2:
            fields[at] = (tag, changed_message(dice, value))
        else:
            fields[at] = (tag, dice.randbytes(len(value)))
        if not fields:
            break
    return bytes_of(fields)


# -- rows and texts --------------------------------------------------------------------------------
def changed_rows(dice: Random, content: bytes) -> bytes:
    """Return a database with other rows, columns or tables."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.deserialize(content)
            for _ in range(dice.choice((1, 1, 2, 5))):
                _change_table(dice, connection)
            connection.commit()
            return connection.serialize()
        except (sqlite3.Error, OverflowError, UnicodeError):
            return damaged(dice, content)


def _change_table(dice: Random, connection: sqlite3.Connection) -> None:
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
    if not tables:
        raise sqlite3.Error("there are no tables left")
    table = dice.choice(tables)
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    column = dice.choice(columns or [""])
    values = [each for each in ODD if not isinstance(each, list | dict) and each != "\ud800"]
    value = dice.choice([*values, b"\xff\0", 10**18])
    way = dice.randrange(8)
    if way == 0:
        connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
    elif way == 1:
        connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "other"')
    elif way == 2:
        connection.execute(f'DROP TABLE "{table}"')
    elif way == 3:
        connection.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}"')
    else:
        where = "" if way == 4 else " WHERE rowid % 3 = 1"
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute(f'UPDATE "{table}" SET "{column}" = ?{where}', (value,))


_TOKEN = re.compile(rb"[A-Za-z_]+|[0-9.]+|\s+|.", re.DOTALL)
_WORDS = (
    *(b"", b'"', b"'", b"[", b"]", b"{", b"}", b"=", b",", b"\n", b"nan", b"inf", b"-1", b"0"),
    *(b"1e400", b"9" * 400, b"9" * 5000, b"true", b"'''", b"\\", b"\xff", b"\0", b"2026-01-01"),
    *(b"[" * 500, b"a." * 500, HOSTILE.encode(), b"x" * 5000, b"*" * 200, b"**/", b"@", b"%"),
)


def changed_text(dice: Random, content: bytes) -> bytes:
    """Return a text with other words: of its own, or odd ones."""
    words = _TOKEN.findall(content)
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(words) + 1)
        new = dice.choice(words) if words and dice.random() < 0.4 else dice.choice(_WORDS)
        words[at : at + dice.randrange(3)] = [new]
    return b"".join(words)


_CHANGES = {
    "json": changed_json,
    "msgpack": changed_msgpack,
    "message": changed_message,
    "rows": changed_rows,
    "text": changed_text,
}
