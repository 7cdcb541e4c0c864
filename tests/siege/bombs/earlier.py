"""The kinds that were found first, sorted by what reads them."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
from siege.bombs.kinds import (
    EARLIER,
    FIRST,
    edited,
    kind_of,
    long_list,
    mangled,
    nested,
    packet,
    traced,
    zipped,
)

from proton_bench.formats.export.json_file import JsonFile
from proton_bench.formats.protobuf import Message
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind

PAGE = 512
kind = kind_of(EARLIER)


# -- Perfetto ------------------------------------------------------------------------------------
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


@kind(".pftrace")
def noise_before_empty_packets() -> bytes:
    noise = packet(bytes(Message().number(10, 1).packed(14, os.urandom(2 << 20))))
    return gzip.compress(FIRST + noise + packet(b"") * 16_000_000)


@kind(".pftrace")
def noise_before_slices() -> bytes:
    event = Message().number(9, 1).number(11, 1).text(23, "x")
    begin = packet(bytes(Message().number(8, 5).number(10, 1).message(11, event)))
    end = packet(bytes(Message().number(8, 6).number(10, 1).message(11, Message().number(9, 2))))
    noise = packet(bytes(Message().number(10, 1).packed(14, os.urandom(2 << 20))))
    return gzip.compress(FIRST + noise + (begin + end) * 2_000_000)


@kind(".pftrace")
def sequences_of_nothing() -> bytes:
    return FIRST + b"".join(packet(bytes(Message().number(10, n))) for n in range(1, 800_000))


@kind(".pftrace")
def tracks_of_nothing() -> bytes:
    return FIRST + b"".join(
        packet(bytes(Message().number(10, 1).message(60, Message().number(1, number))))
        for number in range(1, 500_000)
    )


# -- Chrome --------------------------------------------------------------------------------------
@kind(".json.gz")
def events_of_nothing() -> bytes:
    return traced(b'{"ph":"i"},' * 5_000_000 + b'{"ph":"i"}]}')


@kind(".json.gz")
def noise_before_events_of_nothing() -> bytes:
    return traced(
        b'{"name":"%s"}' % os.urandom(2 << 20).hex().encode() + b",{}" * 9_000_000 + b"]}"
    )


@kind(".json.gz")
def one_long_value() -> bytes:
    return traced(b'{"name":"%s"}]}' % os.urandom(6 << 20).hex().encode())


@kind(".json.gz")
def devices_of_nothing() -> bytes:
    return traced(
        b",".join(
            b'{"ph":"X","cat":"kernel","name":"n","pid":%d,"tid":7,"ts":%d,"dur":9,'
            b'"args":{"device":%d,"stream":7,"correlation":5}}' % (n, n, n)
            for n in range(20_000)
        )
        + b"]}"
    )


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


@kind(".hatchet")
def one_metric_for_each_row() -> bytes:
    return b'[{"frame":{"name":"ROOT"},"metrics":{},"children":[%s]}]' % b",".join(
        b'{"frame":{"name":"n"},"metrics":{"m%d":1}}' % each for each in range(17_000)
    )


@kind(".hatchet")
def metrics_of_nothing() -> bytes:
    many = b",".join(b'"m%d":1' % number for number in range(300_000))
    return b'[{"frame":{"name":"ROOT"},"metrics":{%s}}]' % many


@kind(".hatchet")
def many_devices() -> bytes:
    many = b",".join(b'"%d":{"arch":"9"}' % number for number in range(100_000))
    return b'[{"frame":{"name":"ROOT"},"metrics":{}},{"CUDA":{%s}}]' % many


@kind(".hatchet")
def deeper_than_any_program() -> bytes:
    return nested(100_000)


@kind(".hatchet")
def many_mangled_names() -> bytes:
    name = mangled(30)
    return b'[{"frame":{"name":"ROOT"},"metrics":{"time (ns)":0},"children":[%s]}]' % b",".join(
        b'{"frame":{"name":"%s%d"},"metrics":{"time (ns)":1}}' % (name.encode(), number)
        for number in range(5000)
    )


@kind(".hatchet")
def long_mangled_names() -> bytes:
    name = "_Z1f" + "1A" * 1000 + "S_" * 7
    return b'[{"frame":{"name":"ROOT"},"metrics":{"time (ns)":0},"children":[%s]}]' % b",".join(
        b'{"frame":{"name":"%s%d"},"metrics":{"time (ns)":1}}' % (name.encode(), number)
        for number in range(1000)
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


# -- .proton and .json ---------------------------------------------------------------------------
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


@kind(".proton")
def reasons_of_nothing() -> bytes:
    many = {f"r{number}": 1 for number in range(300_000)}
    return edited(lambda document: document.update(dropped=many))


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


@kind(".sqlite")
def shared_pages() -> bytes:
    """Return a database each of whose inner pages leads to the next one many times."""
    with TemporaryDirectory() as folder:
        pages = bytearray(database(Path(folder, "a.sqlite")))
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
