"""Timelines that Python's parser and browsers' tools read, though they are not quite JSON."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from fakes.kineto import call, host, kernel, trace

from proton_bench.formats.registry import decode_profile
from proton_bench.model.profile import Profile

BASE = 1_759_341_000_000_000_000  # as in `fakes.kineto.head`
TEXTS = [
    (rb"half \udbff pair", "half \ufffd pair"),
    (rb"\udfff\ud83d\ude80", "\ufffd\U0001f680"),
    (rb"\\ud800", "\\ud800"),
    (rb"D:\work\zip.py \u09", r"D:\work\zip.py \u09"),
    (b"tab\there\x01\nline", "tab\there\x01\nline"),
    (b"na\xefve \xc3\xa9", "na\\xefve \u00e9"),
    (rb"kept \" \n \u00e9 \d", 'kept " \n \u00e9 \\d'),
]
EXTERNAL = {"External id": 9}
NUMBERS = ["NaN", "Infinity", "-Infinity", "1e777", "-4.5E+309", "7" * 400, "8" * 6000, str(2**64)]


def events(name: str = "inner", **arguments: Any) -> tuple[dict[str, Any], ...]:
    inner = host("cpu_op", name, 17, 40, args=arguments)
    return host("cpu_op", "outer", 3, 80), inner, call(6, 25), kernel(6, 70, 9)


def names(profile: Profile) -> list[str]:
    return [profile.name(row) for row in range(1, len(profile))]


@pytest.mark.parametrize(("raw", "name"), TEXTS)
def test_texts_are_read_as_what_they_stand_for(raw: bytes, name: str) -> None:
    content = trace(events("MARK")).replace(b"MARK", raw)

    profile = decode_profile(content, "x.json")

    assert names(profile) == ["outer", name, "gemm"]
    assert profile.inclusive("time (ns)")[0] == 9000
    assert profile.dropped == {}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("gap", ["", " ", "\n" + " " * (1 << 20)])
def test_numbers_that_readers_do_not_use_may_be_anything(number: str, gap: str) -> None:
    content = trace(events(load="MARK")).replace(b'"MARK"', (gap + number).encode())

    profile = decode_profile(content, "x.json")

    assert names(profile) == ["outer", "inner", "gemm"]
    assert profile.dropped == {}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("key", ["ts", "dur"])
def test_an_event_with_a_time_that_is_none_is_left_out(number: str, key: str) -> None:
    time = {"ts": b"17", "dur": b"40"}[key]
    before = b'"%s": %s' % (key.encode(), time)
    content = trace(events()).replace(before, b'"%s": %s' % (key.encode(), number.encode()))

    profile = decode_profile(content, "x.json")

    assert names(profile) == ["outer", "gemm"]
    assert sum(profile.dropped.values()) == 1


@pytest.mark.parametrize("number", NUMBERS)
def test_facts_beside_the_events_that_are_no_numbers_are_unknown(number: str) -> None:
    content = trace(events()).replace(str(BASE).encode(), number.encode())

    profile = decode_profile(content, "x.json")

    assert "base_time_ns" not in profile.provenance
    assert names(profile) == ["outer", "inner", "gemm"]


@pytest.mark.parametrize("number", NUMBERS[:-1])
def test_a_metric_that_is_not_finite_is_no_value(number: str) -> None:
    args = {"call_stack": ["ROOT", "s"], "metrics": {"load": "MARK", "flops": 4}}
    event = {"ph": "X", "cat": "scope", "name": "s", "ts": 1, "dur": 2, "args": args}
    content = json.dumps({"displayTimeUnit": "us", "traceEvents": [event]})

    profile = decode_profile(content.replace('"MARK"', number).encode(), "x.chrome_trace")

    assert profile.column("flops").get(1) == 4
    assert "load" not in profile.columns


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("is_list", [False, True])
def test_a_byte_order_mark_is_no_part_of_a_timeline(pack: Any, is_list: bool) -> None:
    content = trace(events())
    if is_list:
        content = json.dumps(events()).encode()
    profile = decode_profile(pack(b"\xef\xbb\xbf" + content), "x.json")

    assert names(profile) == ["outer", "inner", "gemm"]


def test_times_beside_other_numbers_keep_their_nanoseconds() -> None:
    """Floats of unix time in microseconds are off by up to 250 ns."""
    start = "1690000987654321.375"
    event = '{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":1,"ts":%s,"dur":%s,"args":%s}'
    op = event % ("op", start, "10.001", '{"rate":-Infinity}')
    inner = event % ("in", "1690000987654324.375", "7.001", "{}")

    profile = decode_profile(f'{{"traceEvents":[{op},{inner}]}}'.encode(), "x.json")

    assert profile.column("time (ns)").to_list() == [None, 3000, 7001]


@pytest.mark.parametrize("id", [2**63, 2**70, -5])
def test_an_id_that_no_launch_can_have_is_unknown(id: int) -> None:
    profile = decode_profile(trace((*events(), kernel(id, 90, 4, "late", **EXTERNAL))), "x.json")

    assert names(profile) == ["outer", "inner", "gemm", "late"]
    assert sum(profile.dropped.values()) == 1
