from __future__ import annotations

import pytest
from fakes.outcomes import outcome, row, undecided

from proton_bench.gate.experiment import MOST_PAIRS, looks
from proton_bench.gate.statistics.decision import RECOMMENDED_PAIRS
from proton_bench.gate.verdict.result import GateRow, SuiteVerdict, Verdict, sum_up

SLOWER = row(Verdict.REGRESSED, "slow")
LARGE = row(share=0.96)
HOPELESS = undecided("hopeless", pairs_needed=-1)


@pytest.mark.parametrize("most", [4, 5, 6, 7, 10, 24, 200])
def test_the_looks_share_the_false_alarms_of_one(most: int) -> None:
    found = looks(most)

    failing = [look.part for look in found if look.pairs >= RECOMMENDED_PAIRS]
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
    first, *_, last = (look for look in looks(most) if look.pairs >= RECOMMENDED_PAIRS)

    assert first.part == pytest.approx(RECOMMENDED_PAIRS / most)
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
