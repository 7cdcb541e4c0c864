"""The display of running experiments."""

from __future__ import annotations

import io

import pytest
from fakes.outcomes import outcome, row, undecided

from proton_bench.gate.experiment import MOST_PAIRS, looks
from proton_bench.gate.progress import Lines, Pace, TerminalBar, open_progress
from proton_bench.gate.slot import Stage, pairs
from proton_bench.gate.statistics.decision import FEWEST_PAIRS_TO_FAIL
from proton_bench.gate.verdict.result import GateRow, SuiteVerdict, Verdict, sum_up

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


SLOWER = row(Verdict.REGRESSED, "slow")


LARGE = row(share=0.96)


HOPELESS = undecided("hopeless", pairs_needed=-1)


@pytest.mark.parametrize("most", [4, 5, 6, 7, 10, 24, 200])
def test_the_looks_share_the_false_alarms_of_one(most: int) -> None:
    found = looks(most)

    failing = [look.part for look in found if look.pairs >= FEWEST_PAIRS_TO_FAIL]
    assert sum(failing) == pytest.approx(1.0 if failing else 0.0)
    assert [look.pairs for look in found] == sorted({look.pairs for look in found})
    assert found[-1].pairs == most


def test_both_orders_occur_as_often_at_each_look_but_an_odd_last_one() -> None:
    assert [look.pairs for look in looks(9)] == [4, 6, 8, 9]


@pytest.mark.parametrize(
    ("most", "fewest", "first"), [(10, 7, 8), (10, 4, 4), (1, 4, 1), (6, 9, 6)]
)
def test_the_first_look_waits_for_enough_pairs(most: int, fewest: int, first: int) -> None:
    assert looks(most, fewest)[0].pairs == first


def test_one_look_has_all_of_it() -> None:
    assert [(look.pairs, look.part) for look in looks(6)] == [(4, 1.0), (6, 1.0)]


@pytest.mark.parametrize("most", [MOST_PAIRS, 60, 200])
def test_the_last_of_many_looks_keeps_the_share_of_its_pairs(most: int) -> None:
    first, *_, last = (look for look in looks(most) if look.pairs >= FEWEST_PAIRS_TO_FAIL)

    assert first.part == pytest.approx(FEWEST_PAIRS_TO_FAIL / most)
    assert last.part == pytest.approx(2 / most)


@pytest.mark.parametrize(
    ("rows", "goes_on"),
    [
        ([row()], False),
        ([undecided(change=0.0, pairs_needed=40)], True),  # then the gate passes
        ([undecided(change=0.0, pairs_needed=42)], False),
        ([LARGE, undecided(change=0.0, share=0.04, pairs_needed=8)], False),  # it passes anyway
        ([LARGE, undecided(change=0.02, share=0.04, pairs_needed=40)], True),
        ([HOPELESS, undecided(change=0.0, pairs_needed=20)], True),
        ([HOPELESS, undecided(change=0.0, pairs_needed=22)], False),
        ([HOPELESS, undecided(change=0.02, pairs_needed=40)], True),  # beyond half of the limit
        ([HOPELESS, undecided(change=0.02, pairs_needed=42)], False),
        ([undecided(pairs_needed=0)], False),  # more do not help
        ([undecided(pairs_needed=-1)], False),
        ([SLOWER, undecided(path=("step",), metric="total")], False),
        ([SLOWER, undecided(path=(), metric="total")], False),
        ([SLOWER, undecided(path=("step", "slow"), metric="total")], False),
        ([SLOWER, undecided(path=("other",), metric="total")], True),
        ([SLOWER, undecided(path=("step",))], True),
    ],
)
def test_pairs_are_added_as_long_as_they_may_decide_more(
    rows: list[GateRow], goes_on: bool
) -> None:
    said: list[str] = []
    result = outcome(sum_up(rows, (), ()), *rows).result

    (_, look, *_) = looks(20)

    assert look.goes_on(result, said.append) is goes_on
    assert said == (["1 check undecided after 6 pairs"] if goes_on else [])


def test_the_last_look_is_the_last() -> None:
    result = outcome(SuiteVerdict.INCONCLUSIVE, undecided()).result

    assert not looks(20)[-1].goes_on(result, print)


@pytest.mark.parametrize(
    ("rows", "goes_on"),
    [
        ([row()], False),
        ([HOPELESS], True),
        ([undecided(pairs_needed=0)], True),
        ([SLOWER, undecided(path=("step",), metric="total")], True),
        ([SLOWER], False),
    ],
)
@pytest.mark.parametrize("most", [6, 9])
def test_a_number_that_the_user_names_is_used_while_anything_is_undecided(
    most: int, rows: list[GateRow], goes_on: bool
) -> None:
    result = outcome(sum_up(rows, (), ()), *rows).result

    *before, last = looks(most, is_asked=True)

    assert {look.goes_on(result, str) for look in before} == {goes_on}
    assert not last.goes_on(result, str)
