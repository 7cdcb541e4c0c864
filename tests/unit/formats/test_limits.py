"""Limits on what may come out of a file."""

from __future__ import annotations

import pytest

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats import limits
from proton_bench.formats.limits import Limits, reading, take_bytes, take_items, take_table

MIB = 1 << 20


@pytest.mark.parametrize("size", [0, MIB])
def test_what_may_come_out_grows_with_the_file(size: int) -> None:
    with reading(size, "x"):
        take_bytes(128 * MIB + 100 * size)
        take_items(1_000_000 + 4 * size)
    with reading(size, "x"), pytest.raises(ProfileFormatError):
        take_bytes(128 * MIB + 100 * size + 1)
    with reading(size, "x"), pytest.raises(ProfileFormatError):
        take_items(1_000_000 + 4 * size + 1)


def test_parts_of_a_file_share_its_limits() -> None:
    with reading(0, "x"), reading(100 * MIB, "a part"):
        take_bytes(100 * MIB)
        with pytest.raises(ProfileFormatError):
            take_bytes(100 * MIB)


@pytest.mark.parametrize(("rows", "columns"), [(2, 30_000), (200_000, 200), (2_000_000, 1)])
def test_large_tables_of_small_files_are_refused(rows: int, columns: int) -> None:
    with reading(1000, "x"), pytest.raises(ProfileFormatError):
        take_table(rows, columns)


def test_a_file_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_FREE_S", -1.0)
    with reading(0, "x"), pytest.raises(ProfileFormatError):
        take_items(1)


def test_nothing_is_limited_outside_of_a_file() -> None:
    take_items(10**12)

    with reading(0, "x") as limits:
        take_items(1_000_000)  # as many as before
        assert not limits.is_late


@pytest.mark.parametrize("factor", ["0", "-1", "nan", "much"])
def test_a_factor_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, factor: str) -> None:
    monkeypatch.setenv("PROTON_BENCH_DECODE_LIMIT", factor)
    with pytest.raises(UsageError):
        Limits(0, "x")
