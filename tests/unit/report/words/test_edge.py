from __future__ import annotations

import io

import numpy as np
import pytest
from fakes.histories import stepped
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from proton_bench.analysis.choices import FrameFormat
from proton_bench.report.words.columns import sparkline
from proton_bench.report.words.edge import (
    BANDS,
    bands_of,
    edge_of,
    fitting,
    fitting_name,
    fitting_path,
    format_name,
    prose,
    sources_text,
)
from proton_bench.support.console import open_console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def console(file: io.StringIO, width: int = 40) -> Console:
    return Console(file=file, width=width, color_system=None)


def test_only_a_terminal_has_an_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")

    for file, expected in ((Terminal(), 40), (io.StringIO(), None)):
        where = console(file)
        assert edge_of(where, where.options) == expected


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/a/long/folder/file.py:12@forward", "file.py:12@forward"),
        ("a/long/folder/file.py:12 forward", "file.py:12 forward"),
        ("a/long/folder/file.py 12 forward", "a/long…py 12 forward"),
    ],
)
def test_folders_of_frames_go_before_anything_is_cut(name: str, shown: str) -> None:
    assert fitting_name(name, 20) == shown
    assert fitting_name(name, 80) == name


def test_prose_is_folded_between_words_and_keeps_its_indent() -> None:
    where = console(Terminal())

    folded = prose(where, "  time/ms: of the row and all rows below it", None, edge=30)

    assert [segment.text for segment in folded] == [
        "  time/ms: of the row and\n",
        "    all rows below it\n",
    ]


@given(st.text("ab \u6f22[/]", min_size=1, max_size=200), st.integers(12, 90))
def test_no_line_of_prose_crosses_the_edge_and_no_word_is_lost(text: str, edge: int) -> None:
    folded = [segment.text for segment in prose(console(Terminal()), text, None, edge=edge)]

    assert all(cell_len(line.rstrip("\n").rstrip()) <= edge for line in folded)
    assert "".join("".join(folded).split()) == "".join(text.split())


@given(st.text("ab\u6f22", max_size=60), st.integers(4, 50))
def test_names_are_cut_to_their_room(name: str, room: int) -> None:
    shown = fitting(name, room)

    assert cell_len(shown) <= room
    assert shown == name or (shown.endswith("…") and name.startswith(shown[:-1]))


@given(st.text("ab\u6f22", max_size=60), st.integers(8, 50))
def test_names_of_rows_keep_their_beginning_and_their_end(name: str, room: int) -> None:
    shown = fitting_name(name, room)

    assert cell_len(shown) <= room
    if shown != name:
        first, last = shown.split("…")
        assert name.startswith(first)
        assert name.endswith(last)
        assert cell_len(last) >= cell_len(first)


@pytest.mark.parametrize("room", [7, 2, 1, 0, -3])
def test_without_room_for_both_ends_the_beginning_stays(room: int) -> None:
    shown = fitting_name("a long name", room)

    assert len(shown) <= max(room, 0)
    assert shown == "" or "a long name".startswith(shown[:-1])


@pytest.mark.parametrize(
    ("room", "shown"), [(20, "one › two › three"), (14, "… › three"), (8, "three"), (4, "thr…")]
)
def test_the_last_name_of_a_path_stays_and_others_leave_a_mark_if_there_is_room(
    room: int, shown: str
) -> None:
    assert fitting_path(["one", "two", "three"], room) == shown


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([1.0, 1.0, 2.0, 2.0], "▁▁██"),
        ([2.0, 1.0], "█▁"),
        ([5.0], "▅"),
        ([1.0, 1.0], "▅▅"),
    ],
)
def test_a_sparkline_has_a_bar_for_each_point(values: list[float], bars: str) -> None:
    assert sparkline(np.array(values)) == bars


def test_a_sparkline_of_noise_does_not_fill_the_height() -> None:
    bars = sparkline(np.exp(stepped(24, noise=0.002)))

    assert set(bars) <= set("▃▄▅▆")


def test_a_long_series_fits_and_keeps_its_step_in_place() -> None:
    values = np.exp(stepped(100, (50, 0.5)))

    line = sparkline(values, width=20)

    assert line == "▁" * 10 + "█" * 10
    assert sparkline(values, width=20, ascii_only=True) == "_" * 10 + "#" * 10


FRAME = "/home/me/projects/example.py/test.py:12@foo"


OLD_FRAME = "/home/me/projects/example.py/test.py:foo@12"


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (FrameFormat.FULL, FRAME),
        (FrameFormat.FILE_FUNCTION_LINE, "test.py:12@foo"),
        (FrameFormat.FUNCTION_LINE, "12@foo"),
        (FrameFormat.FILE_FUNCTION, "test.py@foo"),
    ],
)
def test_python_frame_is_shortened(style: FrameFormat, expected: str) -> None:
    assert format_name(FRAME, style) == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (FrameFormat.FULL, OLD_FRAME),
        (FrameFormat.FILE_FUNCTION_LINE, "test.py:foo@12"),
        (FrameFormat.FUNCTION_LINE, "foo@12"),
        (FrameFormat.FILE_FUNCTION, "test.py:foo"),
    ],
)
def test_older_spelling_is_shortened_too(style: FrameFormat, expected: str) -> None:
    assert format_name(OLD_FRAME, style) == expected


@pytest.mark.parametrize("style", FrameFormat)
@pytest.mark.parametrize("name", ["aten::mm", "a/b", "user@host", "void f<a::b>(c*)", ""])
def test_other_names_are_shown_whole(name: str, style: FrameFormat) -> None:
    assert format_name(name, style) == name


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        (["a/b/0.proton"], "a/b/0.proton"),
        (["a/b/0.proton", "a/b/1.proton"], "0.proton, 1.proton in a/b"),
        (["a/0.proton", "b/0.proton"], "a/0.proton, b/0.proton"),
        (["0.proton", "1.proton"], "0.proton, 1.proton"),
        ([f"a/{run}.proton" for run in range(5)], "0.proton, 1.proton, 2.proton and 2 more in a"),
        (["a\x1b/0", "a\x1b/1\n"], r"0, 1\n in a\x1b"),
    ],
)
def test_a_folder_that_runs_share_is_named_once(sources: list[str], text: str) -> None:
    assert sources_text(sources) == text


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
