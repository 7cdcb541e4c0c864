"""Timelines whose texts are not escaped are read as if they were."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fakes.kineto import call, host, kernel, trace

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.chrome.reader import Repaired
from proton_bench.formats.registry import decode_profile
from proton_bench.model.profile import Profile

MARK = "MARK"
EVENTS = (
    host("cpu_op", "outer", 0, 90),
    host("cpu_op", MARK, 10, 50),
    call(1, 20),
    kernel(1, 60, 7),
)


def with_name(name: bytes, events: tuple[dict[str, Any], ...] = EVENTS) -> bytes:
    """Return a trace in which a name stands as it is."""
    return trace(events).replace(MARK.encode(), name)


def names(profile: Profile) -> list[str]:
    return [profile.name(row) for row in range(1, len(profile))]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b'op("a", "b")', 'op("a", "b")'),
        (b'an "odd" one "', 'an "odd" one "'),
        (b'"', '"'),
        (b'f({"k": "v", "w": [1]})', 'f({"k": "v", "w": [1]})'),
        (b'one", "two', 'one", "two'),
        (b'{"k": "v"}', '{"k": "v"}'),
        (b'"}', '"}'),
        (b"ends with \\", "ends with \\"),
        (b'all \\p "q" \x02 \xff', 'all \\p "q" \x02 \\xff'),
    ],
)
def test_names_that_are_not_escaped_are_read(raw: bytes, name: str) -> None:
    profile = decode_profile(with_name(raw), "x.json")

    assert names(profile) == ["outer", name, "gemm"]
    assert profile.inclusive("time (ns)")[0] == 7000
    assert list(profile.dropped.values()) == [1]


def test_a_comma_before_a_bracket_is_left_out() -> None:
    content = trace(EVENTS).replace(b"\n  ],", b" ,\n  ],").replace(b"]\n", b", ]\n")

    profile = decode_profile(content, "x.json")

    assert names(profile) == ["outer", MARK, "gemm"]
    assert sum(profile.dropped.values()) > 0


def test_a_name_is_repaired_in_the_midst_of_a_long_file() -> None:
    many = tuple(host("cpu_op", f"op {number}", 100 + number, 0.5) for number in range(9000))
    content = with_name(b'say "no\\d', (*many, *EVENTS, *many))

    profile = decode_profile(content, "x.json")

    assert len(content) > 2 << 20
    assert profile.inclusive("time (ns)")[0] == 7000
    assert 'say "no\\d' in names(profile)


def test_other_texts_than_names_are_read() -> None:
    stack = {"Call stack": MARK, "External id": 5, "Kernel": "k", "Fwd thread": 0}
    events = (EVENTS[0], {**EVENTS[1], "name": "inner", "args": stack}, *EVENTS[2:])

    profile = decode_profile(with_name(b'a("b"); c:\\d\\e', events), "x.json")

    assert names(profile) == ["outer", "inner", "gemm"]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_what_is_json_stays_as_it_is(size: int) -> None:
    content = trace((*EVENTS, host("cpu_op", '\u00e9 \\ " \n \U0001f600', 5, 1)))
    repaired = Repaired(io.BytesIO(content))

    found = b"".join(iter(lambda: repaired.read(size), b""))

    assert json.loads(found) == json.loads(content)
    assert repaired.repairs == 0


def test_an_error_says_where_in_the_file_it_is() -> None:
    many = tuple(host("cpu_op", f"op {number}", 100 + number, 0.5) for number in range(9000))
    content = trace((*many, *EVENTS)).replace(b'"outer"', b"outer")

    with pytest.raises(ProfileFormatError, match=rf"byte {content.index(b'outer')}\)"):
        decode_profile(content, "x.json")
