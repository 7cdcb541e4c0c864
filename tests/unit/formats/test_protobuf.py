from __future__ import annotations

import pytest
from fakes.flames import fields, packed
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.formats.protobuf import Message, read_fields, varint


@pytest.mark.parametrize(
    ("number", "content"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (-1, "ff" * 9 + "01")],
)
def test_numbers_have_seven_bits_to_a_byte(number: int, content: str) -> None:
    assert varint(number).hex() == content


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1), st.text(), st.integers(1, 2**62))
def test_fields_come_back(numbers: list[int], text: str, number: int) -> None:
    inner = Message().text(2, text)

    content = bytes(Message().number(1, number).numbers(20, numbers).message(3, inner))

    found = dict(fields(content))
    assert (found[1], packed(found[20])) == (number, numbers)
    assert dict(fields(found[3]))[2].decode() == text


def test_zeros_and_nothing_are_left_out_and_empty_texts_are_not() -> None:
    assert bytes(Message().number(1, 0).numbers(2, [])) == b""
    assert bytes(Message().text(6, "")) == b"\x32\x00"


@pytest.mark.parametrize("number", [1, 127, 128, 2**14 - 1, 2**14, 2**63, 2**64 - 1])
def test_numbers_of_every_length_are_read(number: int) -> None:
    assert read_fields(bytes(Message().number(1, number))) == [(1, number)]
