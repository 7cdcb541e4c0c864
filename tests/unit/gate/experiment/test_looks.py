from __future__ import annotations

import pytest

from proton_bench.gate.experiment.looks import looks
from proton_bench.gate.statistics.power import RECOMMENDED_PAIRS


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
