"""Small files that would decode to a lot, by their names; a few of each kind that was found."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from proton_bench.formats.native.file import NativeFile
from proton_bench.formats.protobuf import Message, varint
from proton_bench.model.arrays import Array
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind

FILES: dict[str, Callable[[], bytes]] = {}
EMPTY_MEMBER = gzip.compress(b"", 9, mtime=0)


def _file(suffix: str) -> Callable[[Callable[[], bytes]], Callable[[], bytes]]:
    """Return the decorator that registers what makes a file with this suffix."""

    def register(make: Callable[[], bytes]) -> Callable[[], bytes]:
        FILES[make.__name__ + suffix] = make
        return make

    return register


# -- Perfetto ------------------------------------------------------------------------------------
def _packet(content: bytes | Message) -> bytes:
    content = bytes(content)
    return b"\x0a" + varint(len(content)) + content


FIRST = _packet(Message().number(8, 1).number(10, 1))


@_file(".pftrace")
def compressed_in_compressed() -> bytes:
    inner = Message().packed(50, zlib.compress(_packet(b"") * 1_000_000, 9))
    outer = Message().packed(50, zlib.compress(_packet(inner) * 1000, 9))
    return FIRST + _packet(outer) * 2


@_file(".pftrace")
def empty_packets() -> bytes:
    return gzip.compress(FIRST + _packet(b"") * 16_000_000)


@_file(".pftrace")
def members_of_nothing() -> bytes:
    return gzip.compress(FIRST) + EMPTY_MEMBER * 450_000


@_file(".pftrace")
def interned_texts() -> bytes:
    texts = b"".join(
        bytes(Message().message(2, Message().number(1, 1 + number))) for number in range(30_000)
    )
    return gzip.compress(FIRST + _packet(Message().number(10, 1).packed(12, texts)) * 8)


@_file(".pftrace")
def slices_without_end() -> bytes:
    events = (Message().number(9, 1).number(11, track).text(23, "x") for track in range(1, 20_000))
    packets = (Message().number(8, 5).number(10, 1).message(11, event) for event in events)
    return gzip.compress(FIRST + b"".join(map(_packet, packets)))


# -- Chrome --------------------------------------------------------------------------------------
def traced(events: bytes) -> bytes:
    """Return a packed trace of PyTorch that begins with these events."""
    return gzip.compress(b'{"schemaVersion":1,"deviceProperties":[],"traceEvents":[' + events)


@_file(".json.gz")
def events_of_nothing() -> bytes:
    return traced(b'{"ph":"i"},' * 5_000_000 + b'{"ph":"i"}]}')


@_file(".json.gz")
def members_in_a_trace() -> bytes:
    return traced(b"") + EMPTY_MEMBER * 450_000 + gzip.compress(b"]}")


@_file(".json.gz")
def lists_in_an_event() -> bytes:
    return traced(b'{"ph":"X","args":{"a":[' + b"[]," * 10_000_000 + b"[]]}}]}")


@_file(".json.gz")
def blanks() -> bytes:
    return traced(b" " * (1 << 28) + b"]}")


@_file(".json.gz")
def ranges_in_ranges() -> bytes:
    event = b'{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":%d,"dur":%d}'
    return traced(b",".join(event % (n, 2 * (40_000 - n)) for n in range(40_000)) + b"]}")


# -- hatchet -------------------------------------------------------------------------------------
def nested(depth: int, name: str = "n", metrics: dict[str, Any] | None = None) -> bytes:
    """Return a tree of one chain."""
    opened = b'{"frame":{"name":%s},"metrics":%s,"children":[' % (
        json.dumps(name).encode(),
        json.dumps(metrics or {"time (ns)": 1}).encode(),
    )
    root = b'[{"frame":{"name":"ROOT"},"metrics":{"time (ns)":0},"children":['
    return root + opened * depth + b"]}" * depth + b"]}]"


@_file(".hatchet")
def deep_tree() -> bytes:
    return nested(15_000)


@_file(".hatchet")
def lines_in_lines() -> bytes:
    return nested(8_000, "f.py:1@f", {"num_samples": 1})


@_file(".hatchet")
def metrics_of_nothing() -> bytes:
    many = b",".join(b'"m%d":1' % number for number in range(300_000))
    return b'[{"frame":{"name":"ROOT"},"metrics":{%s}}]' % many


@_file(".hatchet")
def mangled_names() -> bytes:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    # Each level holds the one below twice.
    doubled = "_Z1f1AIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in digits[:25])
    names = ["_Z" + "1fI" + "S_" * 60 + "E", doubled, "_Z" + "N" * 3000, "_Z1f" + "P" * 100_000]
    return b'[{"frame":{"name":"ROOT"},"metrics":{"time (ns)":0},"children":[%s]}]' % b",".join(
        b'{"frame":{"name":"%s"},"metrics":{"time (ns)":1}}' % name.encode() for name in names
    )


@_file(".hatchet_msgpack")
def lists_for_a_value() -> bytes:
    many = b"\xdd" + (9_000_000).to_bytes(4, "big") + b"\x90" * 9_000_000
    return b"\x92\x82\xa5frame\x81\xa4name\xa1R\xa7metrics\x81\xa1m" + many + b"\x80"


# -- .proton -------------------------------------------------------------------------------------
def _edited(change: Callable[[dict[str, Any]], None]) -> bytes:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})
    document = msgspec.msgpack.decode(NativeFile().encode(builder.build()))
    change(document)
    return msgspec.msgpack.encode(document)


def _column(values: Array) -> dict[str, Any]:
    content = values.tobytes()
    packed = zlib.compress(content, 9)
    return {"dtype": values.dtype.str, "codec": "zlib", "size": len(content), "bytes": packed}


def _grown(parents: Sequence[int] | Array, **columns: Array) -> bytes:
    """Return a file with these rows, all kernels; the root is the first."""
    rows = len(parents)
    kinds = np.full(rows, FrameKind.KERNEL, dtype="|u1")
    kinds[0] = FrameKind.ROOT

    def change(document: dict[str, Any]) -> None:
        for metric in document["metrics"]:
            metric.update(values=_column(np.full(rows, 5, dtype="<i8")), valid=None)
        frames = np.minimum(np.arange(rows), 1).astype("<i4")
        document.update(rows=rows, strings=("ROOT", "k"), kinds=_column(kinds))
        document.update(parents=_column(np.asarray(parents, dtype="<i4")), frames=_column(frames))
        document.update({name: _column(values) for name, values in columns.items()})

    return _edited(change)


@_file(".proton")
def chain_of_kernels() -> bytes:
    return _grown(np.arange(-1, 100_000))


@_file(".proton")
def rows_of_nothing() -> bytes:
    parents = np.zeros(20_000_000, dtype="<i4")
    parents[0] = -1
    return _grown(parents)


@_file(".proton")
def rows_that_nobody_has() -> bytes:
    return _edited(lambda document: document.update(rows=2**31 - 1))


@_file(".proton")
def bytes_of_any_length() -> bytes:
    endless = msgspec.Raw(b"\xc6\xff\xff\xff\xff" + b"\x05" * 9)
    return _edited(lambda document: document.update(more=endless))


@_file(".proton")
def texts_of_nothing() -> bytes:
    many = msgspec.Raw(b"\xdd" + (4_000_000).to_bytes(4, "big") + b"\xa1x" * 4_000_000)
    return _edited(lambda document: document.update(strings=many))


# -- SQLite --------------------------------------------------------------------------------------
def _database(*lines: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(";".join(lines) + ";")
            connection.commit()
        return path.read_bytes()


_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"


@_file(".sqlite")
def view_without_end() -> bytes:
    return _database(
        f"CREATE VIEW NVTX_EVENTS (start, end, eventType, globalTid, text) AS {_NUMBERS}) "
        "SELECT i, i + 1, 59, 1, hex(zeroblob(100000)) FROM n",
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value)",
    )


@_file(".sqlite")
def more_pages_than_the_file_has() -> bytes:
    made = bytearray(
        _database(
            "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text)",
            f"INSERT INTO NVTX_EVENTS {_NUMBERS} LIMIT 9000) SELECT i, i + 1, 59, 1, 'x' FROM n",
        )
    )
    made[28:32] = (2**32 - 2).to_bytes(4, "big")
    return bytes(made)
