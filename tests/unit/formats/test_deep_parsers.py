"""The parsers without recursion agree with the fast ones."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.deep_json import parse_json
from proton_bench.formats.deep_msgpack import parse_msgpack

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def same(fields: dict[str, Any]) -> dict[str, Any]:
    return fields


@given(value=values, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_json_is_read_like_the_standard_library(value: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert parse_json(text, same, "x") == value


@given(value=values)
def test_msgpack_is_read_like_the_reference(value: Any) -> None:
    assert parse_msgpack(msgpack.packb(value), same, "x") == value


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "[", "]", "{", "}", "[1", "[1,]", "[,1]", "{1:2}", '{"a"}', '{"a":}', '{"a":1,}',
        '{"a" 1}', '{"a":1 "b":2}', "[1 2]", "1 2", "[}", "{]", '"a', '"\n"', "nul", "01x", "NaN",
        "-", "1.", "[1]]", '{[]:1}', ":", ",", '{"a"::1}', '{"a":1,,}', "'a'", "9" * 5000,
    ],
)  # fmt: skip
def test_malformed_json_is_refused(text: str) -> None:
    with pytest.raises(ProfileFormatError, match="x: "):
        parse_json(text, same, "x")


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x91", b"\x81\x01", b"\x81\x01\x02", b"\xc1", b"\xc7\x01\x05a", b"\xd9",
        b"\xd9\x05a", b"\xcb\0\0", b"\xdc\x00", b"\xa1\xff", b"\x01\x02", b"\xdd\xff\xff\xff\xff",
    ],
)  # fmt: skip
def test_malformed_msgpack_is_refused(content: bytes) -> None:
    with pytest.raises(ProfileFormatError, match="x: "):
        parse_msgpack(content, same, "x")


def depth_of(value: Any) -> int:
    depth = 0
    while value:
        value, depth = value[0], depth + 1
    return depth


def test_depth_is_not_limited() -> None:
    levels = 50_000

    read_json = parse_json("[" * levels + "]" * levels, same, "x")
    read_msgpack = parse_msgpack(b"\x91" * (levels - 1) + b"\x90", same, "x")

    assert depth_of(read_json) == depth_of(read_msgpack) == levels - 1
