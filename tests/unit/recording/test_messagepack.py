"""The small encoder for provenance, checked against a full implementation."""

from __future__ import annotations

import msgspec
import pytest

from proton_bench.recording.session.recording import encode_facts


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        127,
        128,
        -1,
        2**63 - 1,
        -(2**63),
        2**64 - 1,
        1.5,
        "",
        "kernel",
        "ß" * 40,
        [],
        [1, [2, "x"]],
        list(range(20)),
        {},
        {"a": {"b": [None, 1.5]}},
        {str(key): key for key in range(20)},
    ],
)
def test_value_is_read_back_equal(value: object) -> None:
    assert msgspec.msgpack.decode(encode_facts(value)) == value


def test_lone_surrogate_is_escaped() -> None:
    assert msgspec.msgpack.decode(encode_facts("a\udc80b")) == "a\\udc80b"


def test_huge_integer_becomes_a_float() -> None:
    assert msgspec.msgpack.decode(encode_facts(2**70)) == float(2**70)


def test_other_objects_become_their_text() -> None:
    assert msgspec.msgpack.decode(encode_facts({1: ValueError("no")})) == {"1": "no"}
