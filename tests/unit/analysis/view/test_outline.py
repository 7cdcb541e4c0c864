from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.view.outline import LEAST_SHARE, outlined
from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile


def profile_of(*rows: tuple[int, str, int]) -> Profile:
    """Return a profile of rows given as parent, name and time of its own."""
    builder = ProfileBuilder()
    for parent, name, time_ns in rows:
        builder.add(parent, name, metrics={"time (ns)": time_ns, "count": 1})
    return builder.build()


def tree_of(profile: Profile, *metrics: str) -> MetricTree:
    return build_tree(
        profile, metrics or ("time", "time/%", "count"), Selection(depth=1000, by_size=True)
    )


def lines_of(tree: MetricTree) -> list[tuple[int, str, float | None]]:
    values = tree.metrics[0].to_list()
    chains = tree.chains or ((),) * len(tree)
    return [
        (depth, " > ".join(tree.strings[each] for each in (*chain, frame)), value)
        for depth, chain, frame, value in zip(
            tree.depths().tolist(), chains, tree.frames.tolist(), values, strict=True
        )
    ]


def test_small_rows_share_one_line_below_their_parent() -> None:
    small = [(0, f"small {number}", 4) for number in range(5)]
    tree = tree_of(profile_of((0, "large", 980), *small))

    shown = outlined(tree, 40)

    assert lines_of(shown.tree) == [(0, "ROOT", 1000), (1, "large", 980), (1, "(5 more)", 20)]
    assert shown.hidden == 5
    assert shown.share == LEAST_SHARE


def test_small_rows_without_weight_together_have_no_line() -> None:
    shown = outlined(tree_of(profile_of((0, "large", 9990), (0, "small", 10))), 40)

    assert lines_of(shown.tree) == [(0, "ROOT", 10000), (1, "large", 9990)]
    assert shown.hidden == 1


def scopes_in_kernel() -> MetricTree:
    builder = ProfileBuilder()
    row = builder.add(0, "kernel", FrameKind.KERNEL, metrics={"time (ns)": 10})
    for name in ("load", "store"):
        builder.add(row, name, FrameKind.SCOPE, metrics={"time (ns)": 1})
    builder.add(0, "large", FrameKind.KERNEL, metrics={"time (ns)": 99_988})
    return tree_of(builder.build(), "time")


def test_scopes_have_lines_however_short_they_are() -> None:
    names = [name for _, name, _ in lines_of(outlined(scopes_in_kernel(), 40).tree)]

    assert names == ["ROOT", "large", "kernel", "load", "store"]


def test_scopes_give_way_where_lines_are_few() -> None:
    names = [name for _, name, _ in lines_of(outlined(scopes_in_kernel(), 2).tree)]

    assert names == ["ROOT", "large"]


def test_a_row_stands_in_one_line_with_the_only_row_below_it() -> None:
    tree = tree_of(profile_of((0, "a", 0), (1, "b", 1), (2, "c", 999), (0, "d", 1000)))

    assert lines_of(outlined(tree, 40).tree) == [
        (0, "ROOT", 2000),
        (1, "a > b > c", 999),
        (1, "d", 1000),
    ]


def test_a_row_with_a_value_of_its_own_keeps_its_line() -> None:
    tree = tree_of(profile_of((0, "a", 100), (1, "b", 900)))

    assert lines_of(outlined(tree, 40).tree) == [(0, "ROOT", 1000), (1, "a", 1000), (2, "b", 900)]


def test_only_what_adds_up_is_summed() -> None:
    small = [(0, f"small {number}", 4) for number in range(5)]
    tree = tree_of(profile_of((0, "large", 980), *small), "time", "avg_time/ns", "time/%")

    time, mean, share = (metric.to_list()[-1] for metric in outlined(tree, 40).tree.metrics)

    assert (time, mean, share) == (20, None, pytest.approx(2.0))


def test_a_tree_without_a_number_is_shown_whole() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics={"label": "x"})
    tree = build_tree(builder.build(), ("label",), Selection())

    assert outlined(tree, 1).tree is tree


def test_times_of_zero_leave_the_root() -> None:
    shown = outlined(tree_of(profile_of((0, "a", 0), (0, "b", 0))), 10)

    assert [name for _, name, _ in lines_of(shown.tree)] == ["ROOT"]
    assert shown.hidden == 2


@st.composite
def trees(draw: st.DrawFn) -> MetricTree:
    count = draw(st.integers(1, 40))
    rows = [
        (draw(st.integers(0, number)), f"row {number}", draw(st.integers(0, 2000)))
        for number in range(count)
    ]
    return tree_of(profile_of(*rows))


@given(trees(), st.integers(1, 30))
def test_lines_fit_the_screen_and_account_for_every_row(tree: MetricTree, height: int) -> None:
    shown = outlined(tree, height)

    assert len(shown.tree) <= max(height, 1)
    chained = sum(map(len, shown.tree.chains))
    rests = sum(name.endswith(" more)") for _, name, _ in lines_of(shown.tree))
    assert len(shown.tree) - rests + chained + shown.hidden == len(tree)
    assert (np.diff(shown.tree.depths()) <= 1).all()


@given(trees(), st.integers(1, 30))
def test_lines_below_a_line_never_add_up_to_more(tree: MetricTree, height: int) -> None:
    shown = outlined(tree, height).tree
    values = np.array(shown.metrics[0].to_list())

    below = np.bincount(shown.parents[1:], weights=values[1:], minlength=len(shown))

    assert (below <= values + 1e-9).all()


@given(trees(), st.integers(1, 30))
def test_what_has_a_line_is_larger_than_what_has_none(tree: MetricTree, height: int) -> None:
    shown = outlined(tree, height)
    values = {name for _, name, _ in lines_of(shown.tree)}
    whole = tree.metrics[0].to_list()
    names = {part for name in values for part in name.split(" > ")}

    for row in range(1, len(tree)):
        if tree.name(row) not in names:
            assert whole[row] == 0 or whole[row] <= shown.share * whole[0] * (1 + 1e-9)
