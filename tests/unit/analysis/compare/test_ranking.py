from __future__ import annotations

import numpy as np
import pytest
from fakes.runs import GPU, Launched, profiles, run_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import (
    CompareOptions,
    Comparison,
    Split,
    compare,
    mean_difference,
    split,
)
from proton_bench.analysis.compare.ranking import Ranking, Threshold, rank
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.names import NameFilter
from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.words.diff import notes

BASE = (("s/a", 10_000, 1, "a"), ("s/b", 50_000, 1, "b"), ("t/c", 40_000, 1, "c"))


NEW = (("s/a", 10_002, 1, "a"), ("s/b", 55_000, 1, "b"), ("t/c", 60_000, 1, "c"))


def compared(
    base: tuple[Launched, ...] = BASE, new: tuple[Launched, ...] = NEW, metric: str = "time"
) -> Comparison:
    return compare([run_of(*base)], [run_of(*new)], CompareOptions(metric))


def shown(
    comparison: Comparison, threshold: str | None = None, depth: int = 100
) -> tuple[list[str], Ranking]:
    parsed = None if threshold is None else Threshold.parse(threshold)
    ranking = rank(comparison, parsed, depth)
    return [comparison.tree.name(row) for row in ranking.rows], ranking


def test_largest_changes_come_first_below_each_row() -> None:
    names, ranking = shown(compared(), "0")

    assert names == ["ROOT", "t", "c", "s", "b", "a"]
    assert ranking.depths == (0, 1, 2, 1, 2, 2)
    assert (ranking.small, ranking.deep) == (0, 0)


def test_by_default_what_hardly_changed_is_left_out_and_summed() -> None:
    names, ranking = shown(compared())

    assert names == ["ROOT", "c", "s", "b"]
    assert (ranking.small, ranking.small_change) == (1, 2.0)


def test_rows_without_values_are_not_counted_as_left_out() -> None:
    def run(time: int) -> Run:
        builder = ProfileBuilder()
        builder.add(0, "a", FrameKind.SCOPE, metrics={"time (ns)": time, "count": 1})
        builder.add(0, "b", FrameKind.SCOPE, metrics={"time (ns)": 1})
        builder.add(0, "c", FrameKind.SCOPE, metrics={"count": 1})
        return Run(builder.build(), "x")

    comparison = compare([run(1000)], [run(2000)], CompareOptions())

    names, ranking = shown(comparison)
    assert (names, ranking.small) == (["ROOT", "a"], 1)
    assert len(shown(comparison, "0")[0]) == 4


def test_by_default_what_explains_little_of_a_large_change_is_left_out() -> None:
    base = (("a", 10_000, 1, "a"), ("b", 5000, 1, "b"), ("c", 5000, 1, "c"))
    new = (("a", 20_000, 1, "a"), ("b", 5150, 1, "b"), ("c", 5250, 1, "c"))

    names, ranking = shown(compared(base, new))

    assert names == ["ROOT", "a", "c"]
    assert (ranking.small, ranking.small_change) == (1, 150.0)


@pytest.mark.parametrize(
    ("metric", "threshold", "names"),
    [
        ("time", "6000", ["ROOT", "t", "c"]),
        ("time/us", "6", ["ROOT", "t", "c"]),
        ("time", "5%", ["ROOT", "t", "c"]),
        ("avg_time/us", "11", ["ROOT", "t", "c"]),
    ],
)
def test_thresholds_are_values_or_shares(metric: str, threshold: str, names: list[str]) -> None:
    assert shown(compared(metric=metric), threshold)[0] == names


def test_changes_that_cancel_above_keep_their_rows() -> None:
    base = (("s/a", 100, 1, "a"), ("s/b", 200, 1, "b"), ("x", 1000, 1, "x"))
    new = (("s/a", 200, 1, "a"), ("s/b", 100, 1, "b"), ("x", 1000, 1, "x"))

    assert shown(compared(base, new))[0] == ["ROOT", "s", "a", "b"]


def joined(comparison: Comparison, threshold: str | None = None) -> list[tuple[int, str]]:
    _, ranking = shown(comparison, threshold)
    tree, lines = comparison.tree, zip(ranking.rows, ranking.above, ranking.depths, strict=True)
    return [
        (depth, "/".join(map(tree.name, (*above, row)))) for row, above, depth in list(lines)[1:]
    ]


def test_by_default_rows_with_the_values_of_the_only_row_below_stand_in_its_line() -> None:
    base = (("s/t/u/a", 1000, 1, "a"), ("s/t/b", 700, 1, "b"), ("s/t/b", 9, 1, "b"))
    new = (("s/t/u/a", 2000, 1, "a"), ("s/t/b", 200, 1, "b"), ("s/t/b", 9, 1, "b"))

    assert joined(compared(base, new)) == [(1, "s/t"), (2, "u/a"), (2, "b")]
    assert [depth for depth, _ in joined(compared(base, new), "0")] == [1, 2, 3, 4, 3]


@pytest.mark.parametrize(("others", "is_joined"), [(50, True), (60, False)])
def test_rows_stand_in_one_line_only_if_no_value_differs_much(others: int, is_joined: bool) -> None:
    base = (("s/a", 1000, 1, "a"), ("s/b", others, 1, "b"))
    new = (("s/a", 2000, 1, "a"), ("s/b", others, 1, "b"))

    lines = joined(compared(base, new))

    assert lines == ([(1, "s/a")] if is_joined else [(1, "s"), (2, "a")])


def test_rows_stand_in_one_line_only_if_launches_explain_both_alike() -> None:
    base = (("s/a", 1000, 1, "a"), ("s/b", 50, 1, "b"))
    new = (("s/a", 2000, 1, "a"), ("s/b", 50, 100, "b"))

    assert joined(compared(base, new)) == [(1, "s"), (2, "a")]


@given(profiles(), profiles())
def test_rows_with_notes_of_their_own_keep_their_line(base: Profile, new: Profile) -> None:
    comparison = compare([Run(base, "a")], [Run(new, "b")], CompareOptions())
    ranking = rank(comparison, None, 100)
    parents = comparison.tree.parents.tolist()
    depth_of = {}

    for row, above, depth in zip(ranking.rows, ranking.above, ranking.depths, strict=True):
        path = (*above, row)
        assert [parents[each] for each in path[1:]] == list(above)
        depth_of |= dict.fromkeys(path, depth)
        assert depth == depth_of.get(parents[path[0]], -1) + 1
        said = notes(comparison, row)
        assert all(notes(comparison, each) in {(), said[:1]} for each in above)
        if any(notes(comparison, each) for each in above):
            assert said[0] in {"NEW", "REMOVED"}
            assert notes(comparison, above[0]) == said[:1]


def test_a_kernel_keeps_its_line_above_the_only_part_of_it() -> None:
    def run(time: int) -> Run:
        builder = ProfileBuilder()
        kernel = builder.add(0, "k", FrameKind.KERNEL, device=GPU, variant=Variant(code_hash="c"))
        builder.add(kernel, "load", FrameKind.SCOPE, metrics={"time (ns)": time})
        return Run(builder.build(), "x")

    comparison = compare([run(1000)], [run(2000)], CompareOptions())

    assert joined(comparison) == [(1, "k"), (2, "load")]


def test_a_row_of_a_device_keeps_its_line_above_one_of_none() -> None:
    def run(time: int) -> Run:
        builder = ProfileBuilder()
        kernel = builder.add(0, "k", FrameKind.KERNEL, device=GPU)
        builder.add(kernel, "load", FrameKind.SCOPE, metrics={"time (ns)": time})
        return Run(builder.build(), "x")

    comparison = compare([run(1000)], [run(2000)], CompareOptions())

    assert joined(comparison) == [(1, "k"), (2, "load")]


def test_moved_rows_count_with_their_size() -> None:
    base = (("s/a", 500, 1, "a"), ("x", 500, 1, "x"))

    names, _ = shown(compared(base, (("t/a", 500, 1, "a"), ("x", 500, 1, "x"))))

    assert names == ["ROOT", "t", "a"]


def test_by_default_small_parts_of_a_new_row_are_left_out_and_large_ones_stay() -> None:
    parts = tuple((f"n/block{n}/k{n}", 1000, 1, "") for n in range(9))
    base = (("x", 5000, 1, "x"),)

    names, ranking = shown(compared(base, (*base, *parts, ("n/large/op/k", 9000, 1, ""))))

    assert names == ["ROOT", "n", "k"]
    assert (ranking.small, ranking.small_change) == (9 + 9 + 1, 9000.0)
    assert len(shown(compared(base, (*base, *parts)), "0.1%")[0]) == 2 + 9 + 9


def test_a_small_part_of_a_new_row_is_shown_if_its_name_is_asked_for() -> None:
    parts = tuple((f"n/k{n}", 1000, 1, "") for n in range(9))

    comparison = compared((("x", 5000, 1, "x"),), (("x", 5000, 1, "x"), *parts))
    ranking = rank(comparison, None, 100, names=NameFilter("k3"))

    assert [comparison.tree.name(row) for row in ranking.rows] == ["ROOT", "n", "k3"]


def test_a_row_that_moved_below_a_new_one_counts_with_its_size() -> None:
    base = (("s/a", 600, 1, "a"), ("x", 9000, 1, "x"))
    new = (("n/b/a", 600, 1, "a"), ("n/c", 8000, 1, "c"), ("x", 9000, 1, "x"))

    assert shown(compared(base, new))[0] == ["ROOT", "n", "c", "b", "a"]


def test_deeper_rows_are_counted() -> None:
    names, ranking = shown(compared(), "0", depth=2)

    assert names == ["ROOT", "t", "s"]
    assert ranking.deep == 3


def filtered(names: NameFilter, threshold: str = "0", by: By = By.PATH) -> Ranking:
    comparison = compare([run_of(*BASE)], [run_of(*NEW)], CompareOptions("time", by))
    return rank(comparison, Threshold.parse(threshold), 100, names=names)


def test_rows_are_filtered_by_name_and_what_they_changed_is_summed() -> None:
    excluded = filtered(NameFilter(exclude="c"))
    included = filtered(NameFilter(include="[ac]$"))

    assert (len(excluded.rows), excluded.named, excluded.named_change) == (5, 1, 20_000.0)
    assert (len(included.rows), included.named, included.named_change) == (5, 1, 5_000.0)


def test_filtered_rows_do_not_hold_up_the_rows_above_them() -> None:
    base, new = (
        (("s/a", 100, 1, "a"), ("s/b", 200, 1, "b")),
        (("s/a", 200, 1, "a"), ("s/b", 100, 1, "b")),
    )
    comparison = compared(base, new)

    ranking = rank(comparison, Threshold.parse("50"), 100, names=NameFilter(exclude="a|b"))

    assert ranking.rows == (0,)
    assert (ranking.small, ranking.named) == (1, 2)


def test_filters_see_what_a_row_stands_for() -> None:
    ranking = filtered(NameFilter(include="s"), by=By.SCOPE)

    assert (len(ranking.rows), ranking.named_change) == (2, 20_000.0)


def test_filters_see_the_names_of_both_sides() -> None:
    base, new = (
        (("s/old", 500, 1, "h"), ("x", 5, 1, "x")),
        (("s/now", 900, 1, "h"), ("x", 5, 1, "x")),
    )

    for name in ("old", "now"):
        ranking = rank(compared(base, new), None, 100, names=NameFilter(exclude=name))
        assert ranking.named_change == 400.0


@pytest.mark.parametrize("names", [NameFilter(include="zz"), NameFilter(exclude="ROOT")])
def test_a_filter_that_leaves_nothing_is_refused(names: NameFilter) -> None:
    with pytest.raises(UsageError, match=f"{names}"):
        filtered(names)


def test_rates_that_one_side_lacks_stand_last() -> None:
    base, new = (("a", 10, 1, "a"),), (("a", 30, 2, "a"), ("z", 900, 1, ""))

    assert shown(compared(base, new, "avg_time/ns"))[0] == ["ROOT", "a", "z"]


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf%", "1 ms"])
def test_what_is_not_a_threshold_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is neither a number.* nor a share"):
        Threshold.parse(text)


def test_a_depth_that_shows_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="a depth of 0 shows nothing"):
        rank(compared(), None, 0)


def test_kernels_stand_in_one_list() -> None:
    found = compare([run_of(*BASE)], [run_of(*NEW)], CompareOptions(by=By.KERNEL))

    assert shown(found)[1].depths == (0, 1, 1)


VALUES = st.integers(-(10**12), 10**12)


COUNTS = st.integers(0, 10**6)


def one(base: float, new: float, base_count: float, new_count: float) -> Split:
    arrays = [np.array([each]) for each in (base, new, base_count, new_count)]
    return split(arrays[0], arrays[1], base_count=arrays[2], new_count=arrays[3])


@pytest.mark.parametrize(
    ("base", "new", "parts"),
    [
        ((100, 10), (150, 15), (50, 0, 0)),
        ((100, 10), (150, 10), (0, 50, 0)),
        ((100, 10), (240, 12), (30, 110, 0)),
        ((0, 0), (70, 7), (70, 0, 0)),
        ((70, 7), (0, 0), (-70, 0, 0)),
        ((5, 0), (8, 0), (0, 0, 3)),
        ((0, 0), (0, 0), (0, 0, 0)),
    ],
)
def test_a_change_is_explained_by_launches_and_latency(
    base: tuple[int, int], new: tuple[int, int], parts: tuple[int, int, int]
) -> None:
    found = one(base[0], new[0], base[1], new[1])

    assert (found.launches[0], found.latency[0], found.rest[0]) == parts


@given(VALUES, VALUES, COUNTS, COUNTS)
def test_whole_parts_add_up_exactly_and_turn_with_the_sides(
    base: int, new: int, base_count: int, new_count: int
) -> None:
    there, back = one(base, new, base_count, new_count), one(new, base, new_count, base_count)

    assert there.launches.dtype == np.int64
    assert there.launches[0] + there.latency[0] + there.rest[0] == new - base
    assert there.launches[0] == -back.launches[0]
    assert there.latency[0] == -back.latency[0]


def test_parts_too_large_for_whole_numbers_are_rounded() -> None:
    found = one(0, 10**18, 10**6, 1)

    assert found.launches[0] == pytest.approx(-5e23, rel=1e-3)
    assert found.launches[0] + found.latency[0] == pytest.approx(10**18, abs=1e9)


def test_broken_numbers_add_up_too() -> None:
    found = one(0.1, 0.7, 3, 7)

    assert found.launches[0] + found.latency[0] == pytest.approx(0.6)
    assert found.rest[0] == 0


def test_one_run_on_each_side_gives_no_interval() -> None:
    assert mean_difference(np.array([[1.0]]), np.array([[2.0]])) is None


def test_interval_is_that_of_welchs_test() -> None:
    base, new = np.array([9.8, 10.1, 10.4]), np.array([11.0, 11.9, 10.8, 12.2])

    found = mean_difference(base[:, None], new[:, None])

    expected = stats.ttest_ind(new, base, equal_var=False).confidence_interval(0.95)
    assert found is not None
    assert found.low[0] == pytest.approx(expected.low)
    assert found.high[0] == pytest.approx(expected.high)


def test_a_single_run_is_taken_to_spread_like_the_other_side() -> None:
    new = np.array([11.0, 12.0, 13.0])

    found = mean_difference(np.array([[10.0]]), new[:, None])

    reach = stats.t.ppf(0.975, 2) * np.sqrt(1.0 + 1.0 / 3.0)
    assert found is not None
    assert [found.low[0], found.high[0]] == pytest.approx([2.0 - reach, 2.0 + reach])


def test_runs_without_spread_give_a_point() -> None:
    found = mean_difference(np.array([[10.0], [10.0]]), np.array([[12.0], [12.0]]))

    assert found is not None
    assert (found.low[0], found.high[0]) == (2.0, 2.0)
