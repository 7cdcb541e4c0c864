"""Sides take turns at going first, and no two runs share their files."""

from __future__ import annotations

from proton_bench.experiment.slot import BASE, NEW, Stage, in_turn, pairs


def test_pairs_come_in_the_order_abba() -> None:
    slots = pairs(Stage.SCREENING, 3)

    assert [slot.arm for slot in slots] == [BASE, NEW, NEW, BASE, BASE, NEW]
    assert [slot.base_first for slot in slots[::2]] == [True, False, True]
    assert [slot.pair for slot in slots] == [0, 0, 1, 1, 2, 2]


def test_names_of_files_differ_and_sort_by_pair() -> None:
    slots = [*pairs(Stage.WARM_UP, 1), *pairs(Stage.CONFIRMING, 12), *in_turn(Stage.ALONE, NEW, 3)]

    assert len({slot.name for slot in slots}) == len(slots)
    assert slots[-1].name == "alone-003-new"
