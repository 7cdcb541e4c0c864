"""The display of running experiments."""

from __future__ import annotations

import io

import pytest

from proton_bench.gate.progress import Lines, Pace, TerminalBar, open_progress
from proton_bench.gate.slot import Stage, pairs

SLOTS = pairs(Stage.PAIR, 2)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_time_left_follows_from_the_runs_so_far() -> None:
    pace = Pace()
    pace.expected = 4

    assert pace.left_s is None
    assert not pace.left_text
    pace.note(10.0)
    pace.note(20.0)
    assert pace.left_s == 30.0
    assert pace.left_text == "30 s left"


def test_early_runs_that_compile_are_forgotten() -> None:
    pace = Pace()
    pace.expected = 20
    for seconds in (600.0, *[10.0] * 8):
        pace.note(seconds)

    assert pace.left_s == 110.0
    assert pace.left_text == "1 min 50 s left"


def test_lines_name_the_run_its_side_and_the_time_left() -> None:
    stream = io.StringIO()
    with Lines(stream, "ab") as progress:
        progress.expect(2)
        for slot in SLOTS[:2]:
            progress.begin(slot)
            progress.end(slot, 3.0)
        progress.say("done")

    assert stream.getvalue().splitlines() == [
        "proton ab: run 1 of 2: pair 1, base",
        "proton ab: run 2 of 2: pair 1, new, 3 s left",
        "proton ab: done",
    ]


def test_a_limit_is_said_to_be_one_until_all_runs_are_certain() -> None:
    stream = io.StringIO()
    with Lines(stream, "ab") as progress:
        progress.limit(4)
        for slot in SLOTS:
            progress.expect(1)
            progress.begin(slot)
            progress.end(slot, 5.0)

    first, second, third, last = SLOTS
    assert stream.getvalue().splitlines() == [
        f"proton ab: run 1 of at most 4: {first.text}",
        f"proton ab: run 2 of at most 4: {second.text}, at most 15 s left",
        f"proton ab: run 3 of at most 4: {third.text}, at most 10 s left",
        f"proton ab: run 4 of 4: {last.text}, 5 s left",
    ]


def test_nothing_is_said_of_an_end_that_is_unknown() -> None:
    stream = io.StringIO()
    with Lines(stream, "bisect") as progress:
        progress.expect(1)
        progress.begin(SLOTS[0])
        progress.end(SLOTS[0], 2.0)
        progress.limit(None)
        progress.expect(1)
        progress.begin(SLOTS[1])

    assert stream.getvalue().splitlines() == [
        "proton bisect: run 1 of 1: pair 1, base",
        "proton bisect: run 2: pair 1, new",
    ]


@pytest.mark.parametrize(("stream", "kind"), [(Terminal(), TerminalBar), (io.StringIO(), Lines)])
def test_a_bar_is_for_terminals(stream: io.StringIO, kind: type) -> None:
    assert isinstance(open_progress("ab", stream), kind)


def test_the_bar_counts_runs_and_shows_texts_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with TerminalBar(stream, "ab") as progress:
        progress.expect(2)
        progress.begin(SLOTS[0])
        progress.end(SLOTS[0], 3.0)
        progress.say("[red]waiting")

    assert "1/2" in stream.getvalue()
    assert "3 s left" in stream.getvalue()
    assert "[red]waiting" in stream.getvalue()
