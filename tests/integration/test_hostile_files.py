"""Small files that would decode to a lot: every command refuses or reads them, soon and small.

Each command runs in a child of its own, which the system ends beyond some seconds of processor time
and some memory.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import sqlite3
import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from proton_bench.cli import main
from proton_bench.formats.protobuf import Message, varint
from proton_bench.profile import FrameKind, ProfileBuilder

SECONDS = 5  # the bar is 2 on a machine that is not shared
MEMORY = 500 << 20
PAGE = 512
KILLED = "killed by the system"

Kind = Callable[[], bytes]
KINDS: dict[str, Kind] = {}


def kind(suffix: str) -> Callable[[Kind], Kind]:
    """Register what makes the content of one kind of attack."""

    def register(make: Kind) -> Kind:
        KINDS[make.__name__ + suffix] = make
        return make

    return register


def packet(content: bytes) -> bytes:
    return b"\x0a" + varint(len(content)) + content


def packed(size: int) -> bytes:
    return zlib.compress(bytes(size), 9)


# -- Perfetto ------------------------------------------------------------------------------------
FIRST = packet(bytes(Message().number(8, 1).number(10, 1)))


@kind(".pftrace")
def compressed_in_compressed() -> bytes:
    inner = Message().packed(50, zlib.compress(packet(b"") * 1_000_000, 9))
    outer = Message().packed(50, zlib.compress(packet(bytes(inner)) * 1000, 9))
    return FIRST + packet(bytes(outer)) * 2


@kind(".pftrace")
def many_compressed() -> bytes:
    inner = bytes(Message().packed(50, zlib.compress(packet(b"") * 8_000_000, 9)))
    return FIRST + packet(inner) * 10


@kind(".pftrace")
def empty_packets() -> bytes:
    return gzip.compress(FIRST + packet(b"") * 16_000_000)


@kind(".pftrace")
def empty_packets_packed_twice() -> bytes:
    return gzip.compress(gzip.compress(FIRST + packet(b"") * 16_000_000))


@kind(".pftrace")
def interned_texts() -> bytes:
    texts = b"".join(
        bytes(Message().message(2, Message().number(1, 1 + number))) for number in range(30_000)
    )
    return gzip.compress(FIRST + packet(bytes(Message().number(10, 1).packed(12, texts))) * 8)


@kind(".pftrace")
def fields_of_nothing() -> bytes:
    return gzip.compress(FIRST + packet(b"\x18\x00" * 16_000_000))


@kind(".pftrace")
def slices_without_end() -> bytes:
    events = (
        packet(
            bytes(
                Message()
                .number(8, 5)
                .number(10, 1)
                .message(11, Message().number(9, 1).number(11, track).text(23, "x"))
            )
        )
        for track in range(1, 20_000)
    )
    return gzip.compress(FIRST + b"".join(events))


@kind(".pftrace")
def one_large_text() -> bytes:
    return gzip.compress(FIRST + packet(bytes(Message().text(14, " " * (30 << 20)))) * 5)


# -- Chrome --------------------------------------------------------------------------------------
def traced(events: bytes) -> bytes:
    return gzip.compress(b'{"schemaVersion":1,"deviceProperties":[],"traceEvents":[' + events)


@kind(".json.gz")
def events_of_nothing() -> bytes:
    return traced(b'{"ph":"i"},' * 5_000_000 + b'{"ph":"i"}]}')


@kind(".json.gz")
def blanks() -> bytes:
    return traced(b" " * (1 << 28) + b"]}")


@kind(".json.gz")
def lists_in_an_event() -> bytes:
    return traced(b'{"ph":"X","args":{"a":[' + b"[]," * 10_000_000 + b"[]]}}]}")


@kind(".json.gz")
def lists_beside_the_events() -> bytes:
    return traced(b'],"more":[' + b"[]," * 10_000_000 + b"[]]}")


@kind(".json.gz")
def ranges_in_ranges() -> bytes:
    depth = 40_000
    return traced(
        b",".join(
            b'{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":%d,"dur":%d}'
            % (each, 2 * (depth - each))
            for each in range(depth)
        )
        + b"]}"
    )


@kind(".json.gz")
def damaged_gzip() -> bytes:
    content = bytearray(traced(bytes(range(32, 127)) * 100_000))
    content[len(content) // 2 :] = os.urandom(len(content) - len(content) // 2)
    return bytes(content)


# -- hatchet -------------------------------------------------------------------------------------
@kind(".hatchet")
def deep_tree() -> bytes:
    return nested(5000)


@kind(".hatchet")
def very_deep_tree() -> bytes:
    return nested(15_000)


@kind(".hatchet")
def lines_in_lines() -> bytes:
    return nested(8_000, "f.py:1@f", {"num_samples": 1})


def nested(depth: int, name: str = "n", metrics: dict[str, Any] | None = None) -> bytes:
    opened = b'{"frame":{"name":%s},"metrics":%s,"children":[' % (
        json.dumps(name).encode(),
        json.dumps(metrics or {"time (ns)": 1}).encode(),
    )
    root = b'[{"frame":{"name":"ROOT"},"metrics":{"time (ns)":0},"children":['
    return root + opened * depth + b"]}" * depth + b"]}]"


@kind(".hatchet")
def one_metric_for_each_row() -> bytes:
    return b'[{"frame":{"name":"ROOT"},"metrics":{},"children":[%s]}]' % b",".join(
        b'{"frame":{"name":"n"},"metrics":{"m%d":1}}' % each for each in range(17_000)
    )


@kind(".hatchet")
def lists_for_a_value() -> bytes:
    return b'[{"frame":{"name":"R"},"metrics":{"m":[' + b"[]," * 3_000_000 + b"[]]}}]"


@kind(".hatchet_msgpack")
def packed_lists_for_a_value() -> bytes:
    many = b"\xdd" + (9_000_000).to_bytes(4, "big") + b"\x90" * 9_000_000
    return b"\x92\x82\xa5frame\x81\xa4name\xa1R\xa7metrics\x81\xa1m" + many + b"\x80"


@kind(".hatchet")
def mangled_names() -> bytes:
    names = ["_Z" + "1fI" + "S_" * 60 + "E", mangled(25), "_Z" + "N" * 3000, "_Z1f" + "P" * 100_000]
    return b'[{"frame":{"name":"ROOT"},"metrics":{"time (ns)":0},"children":[%s]}]' % b",".join(
        b'{"frame":{"name":%s},"metrics":{"time (ns)":1}}' % json.dumps(each).encode()
        for each in names
    )


def mangled(levels: int) -> str:
    """Return a name whose every level holds the one below twice."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "_Z1f1AIiiE" + "".join(f"S_IS{d}_S{d}_E" for d in digits[:levels])


# -- .proton and .json ---------------------------------------------------------------------------
def edited(change: Callable[[dict[str, Any]], None]) -> bytes:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})
    from proton_bench.formats.native_file import NativeFile

    document = msgspec.msgpack.decode(NativeFile().encode(builder.build()))
    change(document)
    return msgspec.msgpack.encode(document)


def zipped(content: bytes) -> dict[str, Any]:
    return {"codec": "zlib", "size": len(content), "bytes": zlib.compress(content, 9)}


def distributions(each: bytes, count: int) -> bytes:
    content = b"\xdd" + count.to_bytes(4, "big") + each * count
    return edited(lambda document: document.update(distributions=zipped(content)))


@kind(".proton")
def distributions_of_nothing() -> bytes:
    return distributions(b"\x80", 60_000_000)


@kind(".proton")
def many_distributions() -> bytes:
    keys = "rows n zero_count sum min max sum_ln sum_ln2 samples sample_offsets bucket_offsets"
    more = "bucket_steps bucket_count collapses"
    entry = {"metric": "m", "gamma": 1.1, **dict.fromkeys(f"{keys} {more}".split(), b"")}
    return distributions(msgspec.msgpack.encode(entry), 500_000)


@kind(".proton")
def rows_of_nothing() -> bytes:
    count = 20_000_000
    parents = np.zeros(count, dtype="<i4")
    parents[0] = -1

    def change(document: dict[str, Any]) -> None:
        zeros = bytes(4 * count)
        document.update(
            rows=count, metrics=[], parents={"dtype": "<i4", **zipped(parents.tobytes())}
        )
        document.update(frames={"dtype": "<i4", **zipped(zeros)})
        document.update(kinds={"dtype": "|u1", **zipped(zeros[:count])})

    return edited(change)


def long_list(element: bytes, count: int) -> msgspec.Raw:
    return msgspec.Raw(b"\xdd" + count.to_bytes(4, "big") + element * count)


@kind(".proton")
def variants_of_nothing() -> bytes:
    return edited(lambda document: document.update(variants=long_list(b"\x80", 9_000_000)))


@kind(".proton")
def maps_in_provenance() -> bytes:
    many = long_list(b"\x80", 9_000_000)
    return edited(lambda document: document.update(provenance={"a": many}))


@kind(".proton")
def maps_in_what_is_unknown() -> bytes:
    return edited(lambda document: document.update(more=long_list(b"\x80", 9_000_000)))


@kind(".proton")
def texts_of_nothing() -> bytes:
    return edited(lambda document: document.update(strings=long_list(b"\xa1x", 4_000_000)))


@kind(".json")
def lists_in_a_column() -> bytes:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})
    from proton_bench.formats.json_file import JsonFile

    text = JsonFile().encode(builder.build())
    return text.replace(b'"provenance":{', b'"provenance":{"a":[' + b"[]," * 3_000_000 + b"[]],")


# -- SQLite --------------------------------------------------------------------------------------
def database(path: Path) -> bytes:
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text)")
        connection.executemany(
            "INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 1, ?)",
            [(each, each + 1, "x" * 40) for each in range(2000)],
        )
    connection.close()
    return path.read_bytes()


def shared_pages(content: bytes) -> bytes:
    """Return a database each of whose inner pages leads to the next one many times."""
    pages = bytearray(content)
    table = next(
        number
        for number in range(1, len(pages) // PAGE)
        if pages[number * PAGE] == 5  # an inner page
    )
    leaf = next(n for n in range(1, len(pages) // PAGE) if pages[n * PAGE] == 13)
    inner = [n for n in range(1, len(pages) // PAGE) if n not in (table, leaf)][:14]
    order = [table, *inner]
    for number, below in zip(order, [*inner, leaf], strict=True):
        cells = 40
        page = bytearray(PAGE)
        page[0] = 5
        page[3:5] = cells.to_bytes(2, "big")
        start = PAGE - 5 * cells
        page[5:7] = start.to_bytes(2, "big")
        page[8:12] = (below + 1).to_bytes(4, "big")
        for cell in range(cells):
            at = start + 5 * cell
            page[12 + 2 * cell : 14 + 2 * cell] = at.to_bytes(2, "big")
            page[at : at + 4] = (below + 1).to_bytes(4, "big")
            page[at + 4] = cell
        pages[number * PAGE : (number + 1) * PAGE] = page
    return bytes(pages)


# -- what is asked -------------------------------------------------------------------------------
NAMES = [*KINDS, "shared_pages.sqlite"]
# All commands read alike. What can be read is also asked for in the other ways.
READABLE = ("deep_tree.hatchet", "lines_in_lines.hatchet", "mangled_names.hatchet")
CASES = [
    *(("view", name) for name in NAMES),
    *((command, name) for command in ("merge", "gate", "report", "diff") for name in READABLE),
]


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    known: dict[str, bytes] = {}

    def content(name: str) -> bytes:
        if name not in known:
            if name == "shared_pages.sqlite":
                known[name] = shared_pages(database(tmp_path_factory.mktemp("db") / "a.sqlite"))
            else:
                known[name] = KINDS[name]()
        return known[name]

    return content


def bounded(folder: Path, *words: object) -> tuple[int | str, str]:
    """Run a command in a bounded child; return its exit code, and what it wrote to stderr."""
    errors = folder / "stderr"
    process = os.fork()
    if not process:
        code = 99
        try:
            os.chdir(folder)
            own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (own + MEMORY, own + MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            code = main([str(word) for word in words])
            sys.stderr.flush()
        except BaseException:  # noqa: BLE001 - it is told by the code and the text
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    ended = os.waitstatus_to_exitcode(status)
    return ended if ended >= 0 else KILLED, errors.read_text(errors="replace")


def words_of(command: str, file: str) -> list[str]:
    other = f"b{file}"
    return {
        "view": ["view", file, "--demangle", "full"],
        "merge": ["merge", file, other, "-o", "out.proton"],
        "gate": ["gate", file, other],
        "report": ["report", file, "-o", "out.html"],
        "diff": ["diff", file, other],
    }[command]


@pytest.mark.parametrize(("command", "name"), CASES)
def test_small_files_cost_little(
    contents: Callable[[str], bytes], tmp_path: Path, name: str, command: str
) -> None:
    (tmp_path / name).write_bytes(contents(name))

    if command in ("merge", "gate", "diff"):
        # The other side launches each kernel twice.
        other = contents(name).replace(b'{"time (ns)": 1}', b'{"time (ns)": 1, "count": 2}')
        (tmp_path / f"b{name}").write_bytes(other)

    code, text = bounded(tmp_path, *words_of(command, name))

    assert code in (0, 1, 2, 3), (code, text[-1000:])
    assert "Traceback" not in text
    assert code != 2 or len(text.splitlines()) == 1


def test_a_limit_is_named_and_can_be_raised(
    contents: Callable[[str], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = b",".join(
        [b'{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":1,"dur":2}'] * 110_000
    )
    (tmp_path / "a.json.gz").write_bytes(traced(many + b"]}"))

    code, text = bounded(tmp_path, "view", "a.json.gz")
    assert code == 2
    assert "PROTON_BENCH_DECODE_LIMIT" in text
    monkeypatch.setenv("PROTON_BENCH_DECODE_LIMIT", "20")
    assert bounded(tmp_path, "view", "a.json.gz")[0] == 0
    monkeypatch.setenv("PROTON_BENCH_DECODE_LIMIT", "much")
    code, text = bounded(tmp_path, "view", "a.json.gz")
    assert code == 2
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "content"),
    [("--policy", "share = " + "[" * 20_000), ("--noise", "[" * 20_000)],
)
def test_deeply_nested_settings_are_refused(tmp_path: Path, option: str, content: str) -> None:
    for name in ("a.hatchet", "b.hatchet"):
        (tmp_path / name).write_bytes(nested(3))
    (tmp_path / "deep").write_text(content)

    code, text = bounded(tmp_path, "gate", "a.hatchet", "b.hatchet", option, "deep")

    assert code == 2
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize("stars", ["*" * 5000, "*a" * 2500, "*?" * 2500 + "x"])
def test_selectors_do_not_search_without_end(tmp_path: Path, stars: str) -> None:
    for name in ("a.hatchet", "b.hatchet"):
        (tmp_path / name).write_bytes(nested(3, "a" * 5000))

    code, text = bounded(
        tmp_path, "gate", "a.hatchet", "b.hatchet", "--threshold", f"{stars}@median > 5%"
    )

    assert code in (0, 1, 2, 3), (code, text[-300:])
