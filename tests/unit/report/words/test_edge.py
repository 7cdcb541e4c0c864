from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from proton_bench.report.words.edge import (
    edge_of,
    fitting,
    fitting_name,
    fitting_path,
    prose,
)


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
