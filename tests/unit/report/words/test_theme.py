from __future__ import annotations

import io

import numpy as np
import pytest

from proton_bench.report.words.edge import BANDS, bands_of
from proton_bench.support.console import open_console


def test_bands_are_shares_of_the_largest_value() -> None:
    values = np.array([100.0, 90.0, 89.0, 50.0, 30.0, 10.0, 9.0, 0.0])

    assert bands_of(values, 100.0) == [0, 0, 1, 2, 3, 4, 5, 5]


def test_sign_does_not_matter() -> None:
    assert bands_of(np.array([-100, 5]), 100.0) == [0, 5]


def test_without_a_largest_value_everything_is_in_the_last_band() -> None:
    assert bands_of(np.zeros(3), 0.0) == [len(BANDS) - 1] * 3


def test_a_sum_that_overflowed_is_the_largest_value() -> None:
    assert bands_of(np.array([np.inf, 1e308, np.nan]), np.inf) == [0, 5, 5]


def test_console_reads_no_markup_and_writes_no_colours_to_a_file() -> None:
    file = io.StringIO()

    open_console(file).print("[red]x[/red] :smile: 12")

    assert file.getvalue() == "[red]x[/red] :smile: 12\n"


def test_no_color_wins_over_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert open_console(io.StringIO()).color_system is not None

    monkeypatch.setenv("NO_COLOR", "1")
    assert open_console(io.StringIO()).color_system is None


def test_characters_that_the_output_cannot_encode_are_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")

    open_console(stream).print("\u03b1")

    assert raw.getvalue() == b"\\u03b1\n"


class ClosedPipe(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_broken_pipe_is_left_to_the_command_line() -> None:
    with pytest.raises(BrokenPipeError):
        open_console(ClosedPipe()).print("x")
