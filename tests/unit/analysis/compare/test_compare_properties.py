"""Properties of every two profiles."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.runs import profiles
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.ranking import Threshold, rank
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.names import NameFilter, steady_name
from proton_bench.errors import UsageError
from proton_bench.model import preorder
from proton_bench.model.profile import Profile

EVERY_BY = pytest.mark.parametrize("by", list(By))


def compared(base: Profile, new: Profile, by: By = By.PATH) -> Comparison:
    return compare([Run(base, "base")], [Run(new, "new")], CompareOptions("time", by))


def times(profile: Profile) -> int:
    return int(profile.columns["time (ns)"].values.sum())


def pairs(comparison: Comparison) -> dict[tuple[frozenset[int], frozenset[int]], int]:
    """Return each row of the union by the rows of both sides that it is."""
    members: list[list[set[int]]] = [[set(), set()] for _ in range(len(comparison))]
    for side, places in enumerate(comparison.tree.places):
        for row, place in enumerate(places.tolist()):
            members[place][side].add(row)
    found = {(frozenset(old), frozenset(new)): row for row, (old, new) in enumerate(members)}
    assert len(found) == len(comparison)
    return found


@given(profiles(), profiles())
def test_every_row_of_both_sides_is_in_one_row_of_the_union(base: Profile, new: Profile) -> None:
    comparison = compared(base, new)
    tree = comparison.tree

    for profile, places, side in zip((base, new), tree.places, (tree.base, tree.new), strict=True):
        assert len(places) == len(profile)
        assert np.array_equal(np.bincount(places, minlength=len(tree)) > 0, side.present)
    assert bool((tree.base.present | tree.new.present).all())
    assert preorder.subtree_ends(tree.parents)[0] == len(tree)


@given(profiles(), profiles())
def test_only_variants_of_one_kernel_share_a_row(base: Profile, new: Profile) -> None:
    for old, now in pairs(compared(base, new)):
        for profile, rows in ((base, old), (new, now)):
            assert len({steady_name(profile.name(row)) for row in rows}) <= 1
            if len(rows) > 1 and not any(profile.variant_rows[row] >= 0 for row in rows):
                # What lies below two variants of one kernel.
                assert len({int(profile.parents[row]) for row in rows}) == len(rows)


@EVERY_BY
@given(base=profiles())
@settings(max_examples=how_many(30, 6))
def test_a_profile_does_not_differ_from_itself(by: By, base: Profile) -> None:
    comparison = compared(base, base, by)

    assert not comparison.inclusive.change.any()
    assert set(comparison.tree.states.tolist()) == {RowState.MATCHED}
    assert rank(comparison, None, 100).rows == (0,)


@EVERY_BY
@given(base=profiles(), new=profiles())
@settings(max_examples=how_many(60, 10))
def test_changes_of_rows_add_up_to_the_total(by: By, base: Profile, new: Profile) -> None:
    comparison = compared(base, new, by)
    own, inclusive = comparison.own, comparison.inclusive

    assert own is not None
    assert own.base.sum() == inclusive.base[0] == times(base)
    assert own.new.sum() == inclusive.new[0] == times(new)
    assert own.change.sum() == inclusive.change[0] == times(new) - times(base)
    below = np.bincount(
        comparison.tree.parents[1:], weights=inclusive.change[1:], minlength=len(comparison)
    )
    assert np.array_equal(own.change + below, inclusive.change)


@EVERY_BY
@given(base=profiles(), new=profiles())
@settings(max_examples=how_many(60, 10))
def test_parts_of_a_change_add_up_to_it(by: By, base: Profile, new: Profile) -> None:
    comparison = compared(base, new, by)

    for values in (comparison.inclusive, comparison.own):
        assert values is not None
        if values.split is not None:
            parts = values.split.launches + values.split.latency + values.split.rest
            assert np.array_equal(parts, values.change)


@pytest.mark.parametrize("by", [By.PATH, By.KERNEL])
@given(base=profiles(), new=profiles())
def test_exchanging_the_sides_turns_every_sign(by: By, base: Profile, new: Profile) -> None:
    there, back = compared(base, new, by), compared(new, base, by)
    turned = {RowState.NEW: RowState.REMOVED, RowState.REMOVED: RowState.NEW}

    rows = pairs(there)
    assert {(new_rows, old_rows) for old_rows, new_rows in rows} == pairs(back).keys()
    assert there.own is not None
    assert back.own is not None
    for (old_rows, new_rows), other in pairs(back).items():
        row = rows[new_rows, old_rows]
        state = RowState(there.tree.states[row])
        assert RowState(back.tree.states[other]) is turned.get(state, state)
        assert back.own.change[other] == -there.own.change[row]
        if there.own.split is not None and back.own.split is not None:
            assert back.own.split.launches[other] == -there.own.split.launches[row]
            assert back.own.split.latency[other] == -there.own.split.latency[row]


@EVERY_BY
@given(base=profiles(), new=profiles())
@settings(max_examples=how_many(30, 6))
def test_nothing_is_nan_and_nothing_is_lost(by: By, base: Profile, new: Profile) -> None:
    comparison = compared(base, new, by)
    ranking = rank(comparison, Threshold(0.0), 100)

    assert np.isfinite(comparison.inclusive.change).all()
    assert sorted(ranking.rows) == list(range(len(comparison)))


def rows_with_values(comparison: Comparison) -> int:
    values = comparison.inclusive
    return int((values.base_valid | values.new_valid).sum())


@given(profiles(), profiles())
@settings(max_examples=how_many(30, 6))
def test_what_is_left_out_is_summed(base: Profile, new: Profile) -> None:
    comparison = compared(base, new)

    ranking = rank(comparison, Threshold(700.0), 100)

    assert comparison.own is not None
    shown = comparison.own.change[list(ranking.rows)].sum()
    assert shown + ranking.small_change == comparison.inclusive.change[0]
    assert len(ranking.rows) + ranking.small == rows_with_values(comparison)


@EVERY_BY
@given(
    base=profiles(),
    new=profiles(),
    names=st.sampled_from(
        [NameFilter(), NameFilter("a"), NameFilter(exclude="b"), NameFilter(exclude="m.py")]
    ),
    threshold=st.sampled_from(["0", "100", "10%"]),
    depth=st.integers(1, 4),
)
def test_shown_and_hidden_rows_make_the_total(
    base: Profile, new: Profile, names: NameFilter, threshold: str, depth: int, by: By
) -> None:
    comparison = compared(base, new, by)
    try:
        ranking = rank(comparison, Threshold.parse(threshold), depth, names=names)
    except UsageError:  # by kernel, scope or test there may be no row of that name
        assume(condition=False)

    assert comparison.own is not None
    shown = sum(int(comparison.own.change[row]) for row in ranking.rows)
    hidden = ranking.small_change + ranking.deep_change + ranking.named_change
    assert shown + hidden == times(new) - times(base)
    rows = len(ranking.rows) + ranking.small + ranking.deep + ranking.named
    assert rows_with_values(comparison) <= rows <= len(comparison)
