"""Compression in compression, and compressed streams of nothing."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any

import msgspec
from siege.bombs.kinds import FIRST, edited, kind_of, packet, traced

from proton_bench.formats.protobuf import Message

kind = kind_of("nesting")
# Of deflate: an empty stored block, and an empty last one.
BLOCK, LAST = b"\x00\x00\x00\xff\xff", b"\x01\x00\x00\xff\xff"
GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
EMPTY_MEMBER = gzip.compress(b"", 9, mtime=0)


def empty_blocks(count: int, content: bytes = b"") -> bytes:
    """Return a gzip member with ``count`` empty blocks before its content."""
    body = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = body.compress(content) + body.flush()
    end = struct.pack("<II", zlib.crc32(content), len(content))
    return GZIP_HEAD + BLOCK * count + packed + end


def inflating(packets: bytes) -> Message:
    return Message().packed(50, zlib.compress(packets, 9))


@kind(".pftrace")
def packed_three_times() -> bytes:
    return gzip.compress(gzip.compress(gzip.compress(FIRST + packet(b"") * 100_000_000)))


@kind(".pftrace")
def packets_in_a_packed_member() -> bytes:
    inner = packet(inflating(packet(b"") * 4_000_000))
    return gzip.compress(gzip.compress(FIRST + inner * 40))


@kind(".pftrace", is_quick=True)
def members_of_nothing() -> bytes:
    return gzip.compress(FIRST) + EMPTY_MEMBER * 450_000


@kind(".pftrace")
def members_of_empty_packets() -> bytes:
    return gzip.compress(FIRST) + gzip.compress(packet(b"") * 500_000) * 2000


@kind(".pftrace")
def fields_of_compressed_packets() -> bytes:
    field = bytes(inflating(packet(b"") * 1_000_000))
    return FIRST + packet(field * 1000)


@kind(".pftrace")
def blocks_of_nothing() -> bytes:
    return empty_blocks(1_800_000, FIRST)


@kind(".pftrace")
def blocks_of_nothing_in_packets() -> bytes:
    empty = b"\x78\x9c" + BLOCK * 180_000 + LAST + struct.pack(">I", 1)
    return FIRST + packet(Message().packed(50, empty)) * 10


@kind(".pftrace")
def one_text_in_compressed_packets() -> bytes:
    text = packet(Message().text(14, " " * (8 << 20)))
    return FIRST + packet(inflating(text * 3)) * 20


@kind(".json.gz")
def trace_packed_twice() -> bytes:
    return gzip.compress(traced(b'{"ph":"i"},' * 20_000_000 + b"{}]}"))


@kind(".json.gz", is_quick=True)
def trace_of_empty_members() -> bytes:
    return traced(b"") + EMPTY_MEMBER * 450_000 + gzip.compress(b"]}")


@kind(".json.gz")
def trace_of_empty_blocks() -> bytes:
    return empty_blocks(1_800_000, gzip.decompress(traced(b"]}")))


@kind(".json.gz")
def name_of_a_member_without_end() -> bytes:
    return GZIP_HEAD[:3] + b"\x08" + GZIP_HEAD[4:] + b"x" * 9_000_000


@kind(".proton")
def column_of_empty_blocks() -> bytes:
    empty = b"\x78\x9c" + BLOCK * 1_800_000
    body = zlib.compressobj(9, zlib.DEFLATED, -15)
    kinds = b"\x01\x04"
    packed = body.compress(kinds) + body.flush() + struct.pack(">I", zlib.adler32(kinds))
    whole = {"dtype": "|u1", "codec": "zlib", "size": len(kinds), "bytes": empty + packed}
    return edited(lambda document: document.update(kinds=whole))


@kind(".proton")
def columns_that_share_a_ratio() -> bytes:
    """Return a file whose many metrics would each inflate to 8 MB."""

    def change(document: dict[str, Any]) -> None:
        metric = document["metrics"][0]
        rows = 1_000_000
        packed = zlib.compress(bytes(8 * rows), 9)
        values = {"dtype": "<i8", "codec": "zlib", "size": 8 * rows, "bytes": packed}
        document["rows"] = rows
        document["parents"] = {**values, "dtype": "<i4", "size": 4 * rows}
        document["metrics"] = [{**metric, "name": f"m{n}", "values": values} for n in range(1000)]

    return edited(change)


@kind("", ("view", "run.proton", "--counters", "counters.csv.gz"))
def counters_of_blanks() -> dict[str, bytes]:
    blanks = b" " * (1 << 30)
    return {"counters.csv.gz": gzip.compress(b'"ID","Kernel Name","m"\n' + blanks, 9)}


@kind("", ("view", "run.proton", "--counters", "counters.csv.gz"))
def counters_packed_twice() -> dict[str, bytes]:
    return {"counters.csv.gz": gzip.compress(gzip.compress(bytes(1 << 30), 9), 9)}


@kind("", ("view", "run.proton", "--counters", "counters.csv.gz"))
def counters_of_empty_members() -> dict[str, bytes]:
    return {"counters.csv.gz": EMPTY_MEMBER * 450_000}


@kind(".proton")
def compressed_distributions_of_zeros() -> bytes:
    entry = {"metric": "m", "gamma": 1.1}
    keys = "rows n zero_count sum min max sum_ln sum_ln2 samples sample_offsets bucket_offsets"
    for key in (*keys.split(), "bucket_steps", "bucket_count", "collapses"):
        entry[key] = bytes(4_000_000)
    content = msgspec.msgpack.encode([entry] * 2)
    packed = {"codec": "zlib", "size": len(content), "bytes": zlib.compress(content, 9)}
    return edited(lambda document: document.update(distributions=packed))
