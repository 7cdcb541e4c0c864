"""Sides take turns at going first, and no two runs share their files."""

from __future__ import annotations

from proton_bench.gate.slot import BASE, NEW, Stage, in_turn, missing, pairs


def test_chance_decides_which_side_of_a_pair_runs_first() -> None:
    drawn = {
        tuple(slot.base_first for slot in pairs(Stage.PAIR, 8, f"seed {at}")[::2])
        for at in range(300)
    }

    assert len(drawn) > 60
    for turns in drawn:
        assert len(set(turns[:4])) == 2
        assert not any(turns[period:6] == turns[: 6 - period] for period in (1, 2, 3))
    assert {sum(turns[6:]) for turns in drawn} == {0, 1, 2}


def test_the_order_of_pairs_repeats_and_does_not_depend_on_their_number() -> None:
    slots = pairs(Stage.PAIR, 3, "20300117-101112")

    assert slots == pairs(Stage.PAIR, 12, "20300117-101112")[:6]
    assert [slot.pair for slot in slots] == [0, 0, 1, 1, 2, 2]
    for first, second in zip(slots[::2], slots[1::2], strict=True):
        assert {first.arm, second.arm} == {BASE, NEW}
        assert first.base_first is second.base_first is (first.arm == BASE)


def test_names_of_files_differ_and_sort_by_pair() -> None:
    slots = [*pairs(Stage.WARM_UP, 1), *pairs(Stage.PAIR, 12), *in_turn(Stage.ALONE, NEW, 3)]

    assert len({slot.name for slot in slots}) == len(slots)
    assert slots[-1].name == "alone-003-new"


def test_a_broken_pair_is_run_anew_so_that_its_runs_are_neighbours() -> None:
    slots = pairs(Stage.PAIR, 3)

    assert missing(slots, slots[:3]) == list(slots[2:])
    assert missing(slots, slots[:4]) == list(slots[4:])
    assert missing(slots, slots) == []


def test_runs_that_are_not_pairs_count_each_for_itself() -> None:
    warm_up, alone = pairs(Stage.WARM_UP, 1), in_turn(Stage.ALONE, NEW, 3)

    assert missing(warm_up, warm_up[:1]) == list(warm_up[1:])
    assert missing(alone, alone[1:]) == [alone[0]]
