"""Ranges nest by time, and work stands where its launch was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.formats.path_tree import Reading
from proton_bench.formats.timeline.launched_work import AMBIGUOUS, UNMATCHED, place_work
from proton_bench.formats.timeline.nesting import place_ranges
from proton_bench.formats.timeline.ranges import UNTIMED, Timeline, Work
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile


def timeline(*ranges: tuple[str, int, int], thread: int = 0) -> Timeline:
    """Return a timeline with ranges of one thread, in microseconds."""
    found = Timeline(Reading("x"), rounding_ns=1000)
    for name, start, end in ranges:
        found.add_range(thread, name, FrameKind.OP, start_ns=start * 1000, end_ns=end * 1000)
    return found


def add_kernel(found: Timeline, correlation: int, *, process: int = 0, duration: int = 10) -> None:
    name = found.tree.strings.index("k")
    found.add_work(Work(process, correlation, name, FrameKind.KERNEL, 10**6, duration))


def placed(found: Timeline) -> Profile:
    place_work(found, place_ranges(found))
    return found.tree.build(found.reading)


def paths(profile: Profile) -> set[str]:
    return {"/".join(profile.path(row)) for row in range(1, len(profile))}


def test_ranges_stand_below_those_that_hold_them_in_any_order_of_the_file() -> None:
    profile = placed(timeline(("c", 5, 6), ("b", 2, 8), ("a", 0, 10), ("d", 8, 9), ("e", 10, 11)))

    assert paths(profile) == {"a", "a/b", "a/b/c", "a/d", "e"}


def test_of_ranges_that_are_alike_the_first_is_the_outer_one() -> None:
    assert paths(placed(timeline(("a", 0, 5), ("b", 0, 5)))) == {"a", "a/b"}


def test_threads_do_not_hold_one_another() -> None:
    found = timeline(("a", 0, 10))
    found.add_range(1, "b", FrameKind.OP, start_ns=2000, end_ns=3000)

    assert paths(placed(found)) == {"a", "b"}


def test_overlapping_ranges_stand_side_by_side_and_are_counted() -> None:
    found = timeline(("a", 0, 20), ("b", 1, 10), ("c", 5, 15), ("d", 12, 14))

    profile = placed(found)

    assert paths(profile) == {"a", "a/b", "a/c", "a/c/d"}
    assert found.overlapping == 1


def test_a_range_that_ends_a_microsecond_late_still_nests() -> None:
    found = timeline(("a", 0, 10), ("b", 5, 11))

    assert paths(placed(found)) == {"a", "a/b"}
    assert found.overlapping == 0


def test_equal_paths_are_one_row_with_the_sum_of_their_times() -> None:
    profile = placed(timeline(("a", 0, 2), ("a", 3, 6)))

    assert len(profile) == 2
    assert profile.column("wall (ns)").get(1) == 5000


def test_work_stands_below_the_innermost_range_of_its_launch() -> None:
    found = timeline(("a", 0, 10), ("b", 2, 4))
    for correlation, at in ((1, 3000), (2, 4000), (3, 0), (4, 10_000)):
        found.add_launch(0, correlation, 0, start_ns=at)
        add_kernel(found, correlation)

    profile = placed(found)

    assert paths(profile) == {"a", "a/b", "a/b/k", "a/k", "k"}
    assert profile.dropped == {}
    assert profile.inclusive("count")[0] == 4


def test_all_work_of_one_launch_stands_at_it() -> None:
    found = timeline(("replay", 0, 10))
    found.add_launch(0, 5, 0, start_ns=1000)
    for _ in range(3):
        add_kernel(found, 5)

    profile = placed(found)

    assert profile.path(2) == ("replay", "k")
    assert profile.column("count").get(2) == 3
    assert profile.column("launch_latency_sum (ns)").get(2) == 10**6 - 1000
    assert profile.column("launch_latency_count").get(2) == 1


@pytest.mark.parametrize("correlation", [-1, 9])
def test_work_without_a_launch_is_counted_and_kept_under_root(correlation: int) -> None:
    found = timeline(("a", 0, 10))
    found.add_launch(0, 1, 0, start_ns=1000)
    add_kernel(found, correlation)

    profile = placed(found)

    assert paths(profile) == {"a", "k"}
    assert profile.dropped == {UNMATCHED: 1}


def test_launches_that_share_an_id_make_their_work_ambiguous() -> None:
    found = timeline(("a", 0, 10), ("b", 20, 30))
    for at in (1000, 21_000):
        found.add_launch(0, 1, 0, start_ns=at)
    add_kernel(found, 1)

    profile = placed(found)

    assert paths(profile) == {"a", "b", "k"}
    assert profile.dropped == {AMBIGUOUS: 1}


def test_launches_that_share_id_and_path_are_not_ambiguous() -> None:
    found = timeline(("a", 0, 10))
    for at in (1000, 2000):
        found.add_launch(0, 1, 0, start_ns=at)
    add_kernel(found, 1)

    assert paths(placed(found)) == {"a", "a/k"}


def test_ids_of_other_processes_do_not_count() -> None:
    found = timeline(("a", 0, 10))
    found.add_launch(1, 1, 0, start_ns=1000)
    add_kernel(found, 1, process=2)

    assert placed(found).dropped == {UNMATCHED: 1}


def test_impossible_times_are_counted_and_left_out() -> None:
    found = timeline(("a", 5, 4))
    add_kernel(found, 1, duration=-1)

    profile = placed(found)

    assert len(profile) == 1
    assert sum(profile.dropped.values()) == 2


@pytest.mark.parametrize("years", [2, 37])
def test_what_lasts_for_years_is_left_out(years: int) -> None:
    length = years * 365 * 86_400 * 10**9
    found = timeline(("a", 5, 40))
    found.add_range(0, "b", FrameKind.OP, start_ns=7000, end_ns=7000 + length)
    add_kernel(found, 1, duration=length)

    profile = placed(found)

    assert paths(profile) == {"a"}
    assert sum(profile.dropped.values()) == 2


def test_own_time_leaves_out_what_is_right_below() -> None:
    found = timeline(("a", 0, 10), ("b", 2, 4), ("c", 5, 6))

    place_ranges(found, own="cycles")
    profile = found.tree.build(found.reading)

    assert profile.inclusive("cycles").tolist() == [10_000, 10_000, 2000, 1000]


def test_ranges_are_the_work_where_no_device_worked() -> None:
    found = timeline(("a", 0, 10), ("b", 2, 4), ("c", 3, 4), ("b", 6, 9))

    profile = placed(found)

    rows = {profile.path(row): row for row in range(1, len(profile))}
    own = {path[-1]: profile.column("time (ns)").get(row) for path, row in rows.items()}
    calls = {path[-1]: profile.column("count").get(row) for path, row in rows.items()}
    assert own == {"a": 5000, "b": 4000, "c": 1000}
    assert calls == {"a": 1, "b": 2, "c": 1}
    assert {profile.device(row) for row in rows.values()} == {Device("CPU", 0)}


def test_time_of_ranges_that_overlap_is_counted_once() -> None:
    profile = placed(timeline(("a", 0, 20), ("b", 2, 12), ("c", 8, 16)))

    assert profile.inclusive("time (ns)")[0] == 20_000


def test_ranges_have_no_work_of_their_own_where_a_device_worked() -> None:
    found = timeline(("a", 0, 10))
    add_kernel(found, 1, duration=70)

    assert placed(found).inclusive("time (ns)").tolist() == [70, 0, 70]


@pytest.mark.parametrize(
    "at", [(0, 0), (-3, -3), (-(10**7), -(10**7) + 40), (0, 86_400 * 10**9), (-9, 5 * 10**14)]
)
def test_what_could_not_be_timed_is_left_out_and_counted(at: tuple[int, int]) -> None:
    day = 86_400 * 10**9
    found = Timeline(Reading("x"))
    name = found.tree.strings.index("k")
    found.add_range(0, "first", FrameKind.OP, start_ns=at[0], end_ns=at[1])
    found.name_range(31)
    found.add_range(0, "op", FrameKind.OP, start_ns=day, end_ns=day + 50)
    found.name_range(32)
    found.add_launch(0, 8, 0, start_ns=at[0], duration_ns=at[1] - at[0])
    for correlation, since, length in ((8, day + 90, 5), (-1, at[0], at[1] - at[0])):
        work = Work(0, correlation, name, FrameKind.KERNEL, since, length, range_id=32)
        found.add_work(work)

    profile = placed(found)

    assert paths(profile) == {"op", "k"}
    assert profile.dropped == {UNTIMED: 3, UNMATCHED: 1}
    assert profile.inclusive("time (ns)")[0] == 5
    assert "launch_latency_count" not in profile.columns


@pytest.mark.parametrize(
    ("far", "is_launched"), [(-2 * 10**9, True), (2**43, True), (-(2**43), False)]
)
@pytest.mark.parametrize("offset", [0, -(10**10)])
def test_work_that_begins_far_from_its_launch_is_left_out(
    offset: int, far: int, is_launched: bool
) -> None:
    """The clocks may differ by any constant."""
    found = timeline(("a", 1, 40))
    name = found.tree.strings.index("k")
    for number, since in enumerate((9_000, 11_000, 14_000, 14_000 + far)):
        correlation = number + 1 if is_launched or number < 3 else -1
        found.add_launch(0, number + 1, 0, start_ns=2000 + 1000 * number)
        found.add_work(Work(0, correlation, name, FrameKind.KERNEL, since + offset, 700))

    profile = placed(found)

    assert profile.dropped == {UNTIMED: 1}
    assert profile.inclusive("count")[0] == 3


def test_a_kernel_before_its_launch_has_no_latency() -> None:
    found = timeline(("a", 1, 40))
    name = found.tree.strings.index("k")
    for number, since in enumerate((1500, 5000)):
        found.add_launch(0, number + 1, 0, start_ns=2000)
        found.add_work(Work(0, number + 1, name, FrameKind.KERNEL, since, 700))

    profile = placed(found)

    assert profile.inclusive("count")[0] == 2
    assert profile.inclusive("launch_latency_sum (ns)")[0] == 3000
    assert profile.inclusive("launch_latency_count")[0] == 1


RANGES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 40), st.integers(1, 40)))


@given(ranges=RANGES, launches=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 40))))
def test_nothing_is_lost_however_ranges_lie(
    ranges: list[tuple[str, int, int]], launches: list[tuple[int, int]]
) -> None:
    found = timeline(*ranges)
    for correlation, at in launches:
        found.add_launch(0, correlation, 0, start_ns=at * 1000)
    for correlation in range(5):
        add_kernel(found, correlation, duration=7)

    profile = placed(found)

    good = [end - start for _, start, end in ranges if start <= end]
    assert profile.inclusive("time (ns)")[0] == 35
    assert profile.inclusive("count")[0] == 5
    if good:
        assert profile.column("wall (ns)").values.sum() == 1000 * sum(good)


@given(ranges=RANGES, at=st.integers(0, 40))
def test_a_launch_is_held_by_every_range_above_it(
    ranges: list[tuple[str, int, int]], at: int
) -> None:
    numbered = [(f"{index}", start, end) for index, (_, start, end) in enumerate(ranges)]
    found = timeline(*numbered)
    found.add_launch(0, 1, 0, start_ns=at * 1000)
    add_kernel(found, 1)

    profile = placed(found)

    row = next(row for row in range(len(profile)) if profile.name(row) == "k")
    for name in profile.path(row)[:-1]:
        _, start, end = numbered[int(name)]
        assert start <= at <= end + 1  # less than the rounding of old traces
