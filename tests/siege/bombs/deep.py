"""Trees as deep as the file allows, for everything that walks paths."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import numpy as np
from fakes import nsys
from siege.bombs.kinds import FIRST, grown, kind_of, packet, siblings, traced
from siege.bombs.sqlite import KERNEL, KERNELS, numbers, script

from proton_bench.formats.export.json_file import JsonFile
from proton_bench.formats.native.file import NativeFile
from proton_bench.formats.protobuf import Message
from proton_bench.model.frame import FrameKind

kind = kind_of("depth")
LEVEL = b'{"frame":{"name":"n"},"metrics":{"time (ns)":1},"children":['


def line(depth: int) -> np.ndarray:
    """Return the parents of rows that each stand below the one before."""
    return np.arange(-1, depth, dtype="<i4")


@kind(".proton", is_quick=True)
def chain_of_kernels() -> bytes:
    return grown(line(100_000))


@kind(".proton")
def chain_of_names() -> bytes:
    depth = 60_000
    texts = ["ROOT", *(f"level {number}" for number in range(depth))]
    kinds = np.full(depth + 1, FrameKind.SCOPE)
    return grown(line(depth), texts, frames=np.arange(depth + 1), kinds=kinds)


@kind(".proton")
def chain_of_lines() -> bytes:
    depth = 40_000
    texts = ["ROOT", *(f"/a/b.py:{number}@f" for number in range(depth))]
    kinds = np.full(depth + 1, FrameKind.LINE)
    kinds[: depth // 2] = FrameKind.PYTHON
    kinds[depth // 2] = FrameKind.KERNEL
    return grown(line(depth), texts, frames=np.arange(depth + 1), kinds=kinds)


@kind(".proton", is_quick=True)
def comb() -> bytes:
    """Return a chain whose every level also has a kernel of its own right below it."""
    depth = 25_000
    parents = np.empty(2 * depth + 1, dtype="<i4")
    parents[0] = -1
    parents[1::2] = np.maximum(np.arange(depth) * 2 - 1, 0)
    parents[2::2] = np.arange(depth) * 2 + 1
    kinds = np.full(len(parents), FrameKind.SCOPE)
    kinds[2::2] = FrameKind.KERNEL
    texts = ["ROOT", "scope", *(f"kernel {number}" for number in range(depth))]
    frames = np.ones(len(parents), dtype="<i4")
    frames[2::2] = np.arange(depth) + 2
    return grown(parents, texts, frames=frames, kinds=kinds)


@kind(".proton")
def bush_at_the_end_of_a_chain() -> bytes:
    depth, leaves = 20_000, 20_000
    parents = np.concatenate([line(depth), np.full(leaves, depth, dtype="<i4")])
    kinds = np.full(len(parents), FrameKind.SCOPE)
    kinds[depth + 1 :] = FrameKind.KERNEL
    texts = ["ROOT", "scope", *(f"kernel {number}" for number in range(leaves))]
    frames = np.ones(len(parents), dtype="<i4")
    frames[depth + 1 :] = np.arange(leaves) + 2
    return grown(parents, texts, frames=frames, kinds=kinds)


@kind(".json")
def chain_in_columns() -> bytes:
    return JsonFile().encode(NativeFile().decode(grown(line(60_000)), "a.proton"))


@kind(".hatchet")
def chain_of_nodes() -> bytes:
    depth = 30_000
    return siblings([LEVEL * depth + b"]}" * depth])


@kind(".hatchet")
def two_chains_of_nodes() -> bytes:
    depth = 9_000
    one = LEVEL * depth + b"]}" * depth
    return siblings([one, one.replace(b'"n"', b'"m"')])


@kind(".hatchet_msgpack", is_quick=True)
def chain_of_packed_nodes() -> bytes:
    depth = 60_000
    level = b"\x83\xa5frame\x81\xa4name\xa1n\xa7metrics\x81\xa9time (ns)\x01\xa8children\x91"
    last = level[:-1] + b"\x90"
    return b"\x92" + level * depth + last + b"\x80"


@kind(".json.gz")
def operators_in_operators() -> bytes:
    depth = 30_000
    return traced(
        b",".join(
            b'{"ph":"X","cat":"cpu_op","name":"n%d","pid":1,"tid":1,"ts":%d,"dur":%d}'
            % (each, each, 2 * (depth - each))
            for each in range(depth)
        )
        + b"]}"
    )


def session(events: Iterator[bytes]) -> bytes:
    """Return a timeline of ours."""
    head = b'{"displayTimeUnit":"ns","baseTimeNanoseconds":1,"process_id":7,"traceEvents":['
    return head + b",".join(events) + b'],"proton_bench":{}}'


@kind(".chrome_trace")
def deep_call_paths() -> bytes:
    path = json.dumps([f"n{number}" for number in range(20_000)]).encode()
    return session(
        b'{"ph":"X","cat":"scope","name":"n","pid":7,"tid":1,"ts":%d,"dur":1,'
        b'"args":{"call_stack":%s}}' % (number, path.replace(b'"n0"', b'"m%d"' % number))
        for number in range(20)
    )


@kind(".chrome_trace")
def call_paths_that_grow() -> bytes:
    return session(
        b'{"ph":"X","cat":"scope","name":"n","pid":7,"tid":1,"ts":%d,"dur":1,'
        b'"args":{"call_stack":["s%s"]}}' % (number, b'","s' * number)
        for number in range(1700)
    )


@kind(".pftrace")
def deep_call_path_of_packets() -> bytes:
    events = []
    for number in range(20):
        encoded = json.dumps(["ROOT", f"m{number}", *("n" for _ in range(30_000))])
        annotation = Message().text(10, "call_stack").text(6, encoded)
        event = Message().number(9, 1).number(11, 1).text(23, "x").message(4, annotation)
        begin = Message().number(8, 5).number(10, 1).message(11, event)
        end = Message().number(8, 6).number(10, 1).message(11, Message().number(9, 2).number(11, 1))
        events.append(packet(begin) + packet(end))
    return FIRST + b"".join(events)


@kind(".sqlite")
def ranges_in_ranges_of_threads() -> bytes:
    return script(
        f"CREATE TABLE NVTX_EVENTS ({nsys.MODERN['NVTX_EVENTS']})",
        f"INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, text) {numbers(40_000)} "
        "SELECT i, 100000 - i, 59, 1, 'n' || i FROM n",
        f"CREATE TABLE {KERNEL} ({KERNELS})",
        f"INSERT INTO {KERNEL} VALUES (1, 2, 3, 0, 1, 1, 1)",
        page=8192,
    )


@kind(".proton")
def chain_with_variants() -> bytes:
    depth = 30_000
    variants = [{"code_hash": f"{number:x}"} for number in range(1000)]
    rows = np.arange(depth + 1, dtype="<i4") % 1000
    encoded = {"dtype": "<i4", "codec": "raw", "size": rows.nbytes, "bytes": rows.tobytes()}
    raw = msgspec.Raw(msgspec.msgpack.encode(variants))
    return grown(line(depth), variants=raw, variant=encoded)
