from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench.recording.models import input_probe
from proton_bench.recording.models.input_probe import InputProbe, short_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("float32", "f32"),
        ("bfloat16", "bf16"),
        ("float8_e4m3fn", "f8e4m3fn"),
        ("int64", "i64"),
        ("uint8", "u8"),
        ("complex64", "c64"),
        ("bool", "bool"),
    ],
)
def test_types_have_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


def test_a_place_that_all_have_is_certain_and_several_are_not() -> None:
    only = input_probe._only
    assert only([{8: [], 16: []}, {16: [], 24: []}]) == 16
    assert only([{8: [], 16: []}, {8: [], 16: []}]) is None
    assert only([{8: []}, {16: []}]) is None
    assert only([]) is None


def test_tags_that_two_kinds_share_are_not_certain() -> None:
    tensor = type("Tensor", (SimpleNamespace,), {})()
    values: list[Any] = [tensor, [1], 2, True, 0.5, None]
    read = [(0, tag) for tag in (1, 14, 5, 10, 3, 0)]

    assert input_probe._tags([(values, read)]) == [1, 14, 5, 10, 3]
    assert input_probe._tags([(values, [*read[:-1], (0, 3)])]) is None
    assert input_probe._tags([(values[:-1], read[:-1])]) is None


def test_memory_that_is_not_mapped_is_empty() -> None:
    probe = InputProbe()
    words = probe._words(id(probe), 2)

    assert len(words) == 2
    assert probe._words(8, 2) == []
    assert probe._words(2**64 - 8, 2) == []


def test_a_torch_that_shows_nothing_has_no_layout() -> None:
    assert InputProbe().layout() is None
