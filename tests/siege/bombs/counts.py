"""Declared lengths and counts, and elements that cost more than the bytes they take."""

from __future__ import annotations

import gzip
import json
from typing import Any

import msgspec
import numpy as np
from siege.bombs.kinds import (
    FIRST,
    column,
    edited,
    grown,
    kind_of,
    long_list,
    packet,
    siblings,
    traced,
    zipped,
)

from proton_bench.formats.export.json_file import JsonFile
from proton_bench.formats.native.file import NativeFile
from proton_bench.formats.protobuf import Message, varint

kind = kind_of("counts")
MOST = b"\xff\xff\xff\xff"
EIGHT, FOUR = "<i8", "<i4"


@kind(".proton")
def extension_of_any_length() -> bytes:
    return edited(lambda document: document.update(more=msgspec.Raw(b"\xc9" + MOST + b"\x05" * 9)))


@kind(".proton", is_quick=True)
def bytes_of_any_length() -> bytes:
    return edited(lambda document: document.update(more=msgspec.Raw(b"\xc6" + MOST + b"\x05" * 9)))


@kind(".proton")
def map_of_any_length() -> bytes:
    return edited(lambda document: document.update(provenance=msgspec.Raw(b"\xdf" + MOST)))


@kind(".hatchet_msgpack")
def children_of_any_number() -> bytes:
    return (
        b"\x92\x83\xa5frame\x81\xa4name\xa1R\xa7metrics\x80\xa8children\xdd" + MOST + b"\xc0" * 99
    )


@kind(".hatchet_msgpack")
def lists_in_lists_of_any_number() -> bytes:
    head = b"\x92\x83\xa5frame\x81\xa4name\xa1R\xa7metrics\x81\xa1m"
    return head + (b"\xdd" + MOST) * 1_500_000


@kind(".hatchet_msgpack")
def extensions_for_values() -> bytes:
    many = b"\xdd" + (4_000_000).to_bytes(4, "big") + b"\xc7\x00\x05" * 4_000_000
    return b"\x92\x82\xa5frame\x81\xa4name\xa1R\xa7metrics\x81\xa1m" + many[:9_000_000] + b"\x80"


@kind(".proton", is_quick=True)
def rows_that_nobody_has() -> bytes:
    return edited(lambda document: document.update(rows=2**31 - 1))


@kind(".proton")
def columns_of_any_size() -> bytes:
    huge = {"dtype": FOUR, "codec": "zlib", "size": 2**62, "bytes": bytes(4 << 20)}
    return edited(lambda document: document.update(parents=huge, frames=huge))


@kind(".proton")
def vectors_of_any_length() -> bytes:
    """Return a metric of vectors that say they hold 2^60 numbers."""

    def change(document: dict[str, Any]) -> None:
        metric = dict(document["metrics"][0], dtype="vec<i8", values=column(np.zeros(4, EIGHT)))
        metric["offsets"] = column(np.array([0, 0, 2**60], dtype=EIGHT))
        document["metrics"] = [metric]

    return edited(change)


@kind(".proton")
def one_long_vector() -> bytes:
    def change(document: dict[str, Any]) -> None:
        count = 15_000_000
        metric = dict(document["metrics"][0], dtype="vec<i8")
        metric["values"] = column(np.zeros(count, dtype=EIGHT))
        metric["offsets"] = column(np.array([0, 0, count], dtype=EIGHT))
        document["metrics"] = [metric]

    return edited(change)


def distribution(**more: Any) -> bytes:
    """Return a file with one distribution of one row."""
    entry: dict[str, Any] = {"metric": "time (ns)", "gamma": 1.02, "value_error": 0.0}
    one = {"rows": 1, "n": 2**62, "zero_count": 0, "bucket_count": 2**62, "bucket_steps": 0}
    for key, value in one.items():
        entry[key] = np.array([value], FOUR if key in ("rows", "bucket_steps") else EIGHT).tobytes()
    for key in ("sum", "min", "max", "sum_ln", "sum_ln2"):
        entry[key] = np.array([5.0]).tobytes()
    entry["samples"] = b""
    entry["sample_offsets"] = bytes(8)
    entry["bucket_offsets"] = np.array([0, 1], dtype=FOUR).tobytes()
    entry["collapses"] = b"\0"
    entry.update(more)
    packed = zipped(msgspec.msgpack.encode([entry]))
    return grown(np.array([-1, 0], dtype=FOUR), distributions=packed)


@kind(".proton", is_quick=True)
def distribution_of_every_launch_there_was() -> bytes:
    return distribution()


@kind(".proton")
def distribution_of_far_buckets() -> bytes:
    count = 1_000_000
    return distribution(
        bucket_steps=np.full(count, 2000, dtype=FOUR).tobytes(),
        bucket_count=np.ones(count, dtype=EIGHT).tobytes(),
        bucket_offsets=np.array([0, count], dtype=FOUR).tobytes(),
        n=np.array([count], dtype=EIGHT).tobytes(),
    )


@kind(".proton")
def distribution_of_many_samples() -> bytes:
    count = 9_000_000
    return distribution(
        samples=np.ones(count, dtype="<f4").tobytes(),
        sample_offsets=np.array([0, count], dtype=FOUR).tobytes(),
        n=np.array([count], dtype=EIGHT).tobytes(),
    )


@kind(".proton")
def devices_in_use() -> bytes:
    use = {"scope": None, "device": 0, "busy_ns": 1, "waiting_ns": 0, "launches": 2**62}
    use["latency_buckets"] = [0] * 3_000_000
    raw = msgspec.Raw(msgspec.msgpack.encode([use]))
    return edited(lambda document: document.update(device_use=raw))


@kind(".proton")
def devices_by_the_million() -> bytes:
    raw = long_list(b"\x82\xa4kind\xa1C\xa5index\x01", 500_000)
    return edited(lambda document: document.update(devices=raw))


@kind(".pftrace", is_quick=True)
def packet_of_any_length() -> bytes:
    return FIRST + b"\x0a" + varint(2**63) + bytes(4 << 20)


@kind(".pftrace")
def packed_numbers_of_any_length() -> bytes:
    event = Message().number(9, 1).number(11, 1).text(23, "x").numbers(36, range(900_000))
    begin = Message().number(8, 5).number(10, 1).message(11, event)
    return FIRST + packet(begin) + packet(Message().number(8, 6).number(10, 1))


@kind(".pftrace")
def annotations_of_nothing() -> bytes:
    event = Message().number(9, 1).number(11, 1).text(23, "x")
    content = bytes(event) + bytes(Message().message(4, Message())) * 4_000_000
    begin = Message().number(8, 5).number(10, 1).packed(11, content)
    return FIRST + packet(begin)


@kind(".pftrace")
def annotations_in_annotations() -> bytes:
    annotated = Message().text(10, "k").number(3, 1)
    for _ in range(5000):
        annotated = Message().message(12, annotated)
    event = Message().number(9, 1).number(11, 1).text(23, "x").message(4, annotated)
    begin = packet(Message().number(8, 5).number(10, 1).message(11, event))
    return FIRST + begin * (9_000_000 // len(begin))


@kind(".hatchet")
def number_of_a_million_digits() -> bytes:
    node = b'{"frame":{"name":"n"},"metrics":{"time (ns)":%s},"children":[]}'
    return siblings([node % (b"1" * 9_000_000)])


@kind(".json.gz")
def times_of_many_digits() -> bytes:
    return traced(
        b",".join(
            b'{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":%s,"dur":1e-999999999}'
            % (b"1" * 40_000 + b"%d" % number)
            for number in range(3000)
        )
        + b"]}"
    )


@kind(".json")
def integers_beyond_any_column() -> bytes:
    document = json.loads(JsonFile().encode(NativeFile().decode(edited(len), "a.proton")))
    document["provenance"] = {"a": [10**300] * 25_000}
    return json.dumps(document).encode()


@kind(".json", is_quick=True)
def rows_without_columns() -> bytes:
    document = json.loads(JsonFile().encode(NativeFile().decode(edited(len), "a.proton")))
    document.update(rows=10**18)
    return json.dumps(document).encode()


@kind(".hatchet")
def vector_of_many_numbers() -> bytes:
    node = b'{"frame":{"name":"n"},"metrics":{"v":[%s1]},"children":[]}'
    return siblings([node % (b"1," * 4_000_000)])


@kind(".pftrace")
def clocks_of_nothing() -> bytes:
    clock = bytes(Message().message(1, Message().number(1, 64).number(2, 5)))
    snapshot = packet(Message().number(10, 1).packed(6, clock * 60))
    return gzip.compress(FIRST + snapshot * 300_000)
