from __future__ import annotations

import math

import pytest

from proton_bench.support.units import (
    Unit,
    count_text,
    duration_text,
    number_texts,
    percent_text,
    share_text,
)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (12, "12 ns"),
        (1234, "1.234 us"),
        (204800, "204.8 us"),
        (-1_500_000, "-1.5 ms"),
        (12_345_678_901, "12.35 s"),
        (5e12, "5000 s"),
    ],
)
def test_duration_has_four_digits_and_the_unit_that_fits(nanoseconds: float, text: str) -> None:
    assert duration_text(nanoseconds) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1536, "1.5 KiB"), (64 * 2**20, "64 MiB"), (3 * 2**40, "3 TiB")]
)
def test_size_has_a_binary_unit(size: float, text: str) -> None:
    assert Unit.of_sizes([size]).text(size) == text


def test_values_that_are_compared_have_the_unit_of_the_largest() -> None:
    unit = Unit.of_times([900e3, 1.2e6, None])

    assert [unit.text(900e3), unit.text(1.2e6)] == ["0.9 ms", "1.2 ms"]
    assert unit.text(12.34, signed=True) == "+0.00001234 ms"


def test_columns_have_one_unit_and_as_many_decimals() -> None:
    unit = Unit.of_times([2_500_000, 1_000])

    assert (unit.name, unit.texts([2_500_000, 1_000, None])) == ("ms", ["2.500", "0.001", "-"])
    assert unit.texts([1_000, 0, -1_000], signed=True) == ["+0.001", "0.000", "-0.001"]


def test_small_values_of_a_column_show_two_digits() -> None:
    unit = Unit.of_times([2e9, 1_234_567.0])

    assert unit.texts([2e9, 1_234_567.0, 1_234.0, 12.0]) == [
        "2.000",
        "0.0012",
        "0.0000012",
        "0.000000012",
    ]


def test_what_rounding_left_of_nothing_is_written_as_nothing() -> None:
    assert Unit.of_times([2.5e6]).texts([1e-7]) == ["0.000"]


def test_whole_numbers_stay_whole() -> None:
    assert Unit.of_times([900]).texts([5, -5], signed=True) == ["+5", "-5"]


def test_count_agrees_with_its_noun() -> None:
    assert count_text(1, "row") == "1 row"
    assert count_text(12345, "row") == "12 345 rows"
    assert count_text(2, "row is", "rows are") == "2 rows are"
    assert count_text(1.0, "row") == "1 row"
    assert [count_text(each, "call") for each in (0.125, 6.5, 1234.5)] == [
        *("0.125 calls", "6.5 calls"),
        "1 234 calls",
    ]


def test_integers_are_written_whole() -> None:
    assert number_texts([1, None, 2**60 + 1]) == ["1", "-", str(2**60 + 1)]


def test_numbers_of_a_column_have_equal_decimals() -> None:
    assert number_texts([12.3456, 0.5, None]) == ["12.346", "0.500", "-"]


def test_small_columns_get_more_decimals() -> None:
    assert number_texts([0.0002048, 0.0]) == ["0.0002048", "0.0000000"]


@pytest.mark.parametrize("largest", [2.68554687e14, 3.2e-9])
def test_huge_and_tiny_columns_use_exponents(largest: float) -> None:
    assert number_texts([largest]) == [f"{largest:.4g}"]


def test_nan_and_infinity_are_written_as_such() -> None:
    assert number_texts([math.nan, math.inf, 0.0, None]) == ["nan", "inf", "0.000", "-"]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.123, "+12.3 %"),
        (-0.5, "-50.0 %"),
        (2.5, "+250 %"),
        (0.0, "0 %"),
        (0.0004, "+0.04 %"),
        (float("nan"), "-"),
    ],
)
def test_changes_are_percent_with_a_sign(share: float, text: str) -> None:
    assert percent_text(share) == text


@pytest.mark.parametrize(
    ("part", "whole", "decimals", "text"),
    [
        (1280012, 1280012, 1, "100 %"),
        (sum([0.7, 0.1, 0.1, 0.1]), 1, 1, "100 %"),
        (0.997, 1, None, ">99 %"),
        (1.0, 8.0, 1, "12.5 %"),
        (8.0, 8.0, 1, "100 %"),
        (8.0, 8.0, 0, "100 %"),
        (12.0, 8.0, 1, "150 %"),
        (float("inf"), 1.0, 1, "inf %"),
        (0.0, 8.0, 1, "0 %"),
        (0.001, 8.0, 1, "<0.1 %"),
        (0.05, 8.0, 0, "<1 %"),
        (7.95, 8.0, 0, ">99 %"),
        (7.999, 8.0, 1, ">99.9 %"),
        (0.00031, 1.0, None, "0.031 %"),
        (0.154, 1.0, None, "15 %"),
        (-0.029, 1.0, 1, "2.9 %"),
        (1.0, 0.0, 1, "-"),
        (float("nan"), 1.0, 1, "-"),
    ],
)
def test_parts_of_a_whole_have_no_sign(
    part: float, whole: float, decimals: int | None, text: str
) -> None:
    assert share_text(part, whole, decimals=decimals) == text
