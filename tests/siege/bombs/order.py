"""Events that readers could visit again and again, or that fit nothing."""

from __future__ import annotations

import gzip
from collections.abc import Iterable

from siege.bombs.deep import session
from siege.bombs.kinds import kind_of, packet, siblings, traced
from siege.bombs.references import CLEARED, begun, described, ended, event
from siege.bombs.sqlite import KERNEL, KERNELS, numbers, script

from proton_bench.formats.protobuf import Message

kind = kind_of("order")
OPERATOR = b'{"ph":"X","cat":"cpu_op","name":"n%d","pid":1,"tid":1,"ts":%d,"dur":%d}'


def kineto(events: Iterable[bytes]) -> bytes:
    return traced(b",".join(events) + b"]}")


@kind(".json.gz", is_quick=True)
def stairs_of_operators() -> bytes:
    return kineto(OPERATOR % (n % 7, n, 60_000) for n in range(60_000))


@kind(".json.gz")
def operators_that_begin_together() -> bytes:
    return kineto(OPERATOR % (n, 5, n) for n in range(60_000))


@kind(".json.gz")
def stairs_in_a_stair() -> bytes:
    return kineto(OPERATOR % (3, n, 100_000 - (n * 7919) % 50_000) for n in range(60_000))


@kind(".json.gz")
def begins_without_ends() -> bytes:
    return kineto(
        b'{"ph":"B","name":"n%d","pid":1,"tid":1,"ts":%d}' % (n, n) for n in range(90_000)
    )


@kind(".json.gz")
def ends_without_begins() -> bytes:
    return kineto(b'{"ph":"E","pid":%d,"tid":1,"ts":%d}' % (n, n) for n in range(90_000))


@kind(".json.gz")
def arrows_to_nowhere() -> bytes:
    arrow = b'{"ph":"%s","id":%d,"cat":"ac2g","name":"a","pid":1,"tid":1,"ts":%d,"bp":"e"}'
    return kineto(arrow % ((b"s", b"f", b"t")[n % 3], n // 3, n) for n in range(90_000))


@kind(".json.gz")
def asynchronous_events() -> bytes:
    each = b'{"ph":"%s","id":"0x%x","cat":"c%d","name":"a","pid":1,"tid":1,"ts":%d}'
    return kineto(each % ((b"b", b"n", b"e")[n % 3], n, n, n) for n in range(90_000))


@kind(".json.gz")
def one_correlation_id() -> bytes:
    call = b'{"ph":"X","cat":"cuda_runtime","name":"l","pid":1,"tid":%d,"ts":%d,"dur":1,'
    call += b'"args":{"correlation":5}}'
    work = b'{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":7,"ts":%d,"dur":9,'
    work += b'"args":{"device":0,"stream":7,"correlation":5}}'
    return kineto((call if n % 2 else work) % (n, n) for n in range(30_000))


@kind(".json.gz")
def one_external_id() -> bytes:
    each = b'{"ph":"X","cat":"cpu_op","name":"n%d","pid":1,"tid":1,"ts":%d,"dur":1,'
    work = each.replace(b"cpu_op", b"kernel") + b'"args":{"External id":5,"device":0}}'
    each += b'"args":{"External id":5}}'
    return kineto((each if n % 2 else work) % (n, n) for n in range(30_000))


@kind(".json.gz")
def threads_of_one_operator() -> bytes:
    each = b'{"ph":"X","cat":"cpu_op","name":"n","pid":%d,"tid":"%d","ts":5,"dur":1}'
    return kineto(each % (n, n) for n in range(30_000))


@kind(".chrome_trace", is_quick=True)
def stairs_of_a_session() -> bytes:
    each = b'{"ph":"X","cat":"cpu_op","name":"n","pid":7,"tid":1,"ts":%d,"dur":90000,'
    each += b'"args":{"call_stack":["n%d"]}}'
    return session(each % (n, n % 9) for n in range(60_000))


@kind(".chrome_trace")
def documents_of_nothing() -> bytes:
    return b'{"traceEvents":[]}' * 480_000


@kind(".chrome_trace")
def values_that_grow() -> bytes:
    text = b"x" * ((1 << 20) - 200)
    return session(b'{"ph":"M","name":"%s","args":{"name":[[[' % text + b"]]]}}" for _ in range(8))


@kind(".pftrace")
def more_slices_than_can_be_open() -> bytes:
    return gzip.compress(CLEARED + b"".join(begun(n, event(1, text="n")) for n in range(150_000)))


@kind(".pftrace")
def ends_of_other_tracks() -> bytes:
    return CLEARED + b"".join(ended(n, n) for n in range(1, 200_000))


@kind(".pftrace")
def slices_of_many_tracks() -> bytes:
    return CLEARED + b"".join(
        begun(n, event(n, text="n")) + ended(n + 1, n) for n in range(1, 60_000)
    )


@kind(".pftrace")
def events_of_earlier_tracing() -> bytes:
    old = Message().number(3, 1).number(6, 66)
    found = Message().number(9, 0).number(11, 1).text(23, "n").message(6, old)
    return gzip.compress(CLEARED + b"".join(begun(n, found) for n in range(150_000)))


@kind(".pftrace")
def tracks_that_are_their_own_parents() -> bytes:
    tracks = b"".join(described(n, "t", (n * 7) % 9000 + 1) for n in range(1, 9000))
    return CLEARED + tracks + b"".join(
        begun(n, event(n, Message().text(10, "call_stack").text(6, '["n"]'))) + ended(n + 1, n)
        for n in range(1, 9000)
    )  # fmt: skip


@kind(".pftrace")
def packets_that_begin_anew() -> bytes:
    anew = packet(Message().number(8, 1).number(10, 1).number(13, 1).number(42, 1))
    return gzip.compress(
        CLEARED + b"".join(anew + begun(n, event(1, text=f"n{n % 99}")) for n in range(100_000))
    )


@kind(".sqlite", is_quick=True)
def stairs_of_ranges() -> bytes:
    return script(
        "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text)",
        f"INSERT INTO NVTX_EVENTS {numbers(60_000)} SELECT i, i + 70000, 59, 1, 'n' || i % 9 "
        "FROM n",
        page=8192,
    )


@kind(".sqlite")
def ranges_without_end() -> bytes:
    return script(
        "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text)",
        f"INSERT INTO NVTX_EVENTS {numbers(60_000)} SELECT i, NULL, 59, i, 'n' FROM n",
        page=8192,
    )


@kind(".sqlite")
def kernels_at_one_time() -> bytes:
    return script(
        f"CREATE TABLE {KERNEL} ({KERNELS})",
        f"INSERT INTO {KERNEL} {numbers(60_000)} SELECT 5, 6, i % 3, i % 4096, i, 'n' || i % 50, "
        "1 FROM n",
        page=8192,
    )


@kind(".hatchet")
def children_of_one_name() -> bytes:
    node = b'{"frame":{"name":"n"},"metrics":{"time (ns)":%d},"children":[]}'
    return siblings(node % n for n in range(40_000))
