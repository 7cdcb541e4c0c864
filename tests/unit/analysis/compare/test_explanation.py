from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes.runs import Launched, run_of
from fakes.suites import TESTS, suite

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.benchmark_calls import BenchmarkCalls
from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.explanation import Explanation, Kind, explain
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.run import Run
from proton_bench.model.profile import Profile


def explained(base: list[Launched], new: list[Launched], metric: str = "time") -> Explanation:
    found = explain(compare([run_of(*base)], [run_of(*new)], CompareOptions(metric)))
    assert found is not None
    return found


def test_the_row_that_changed_most_is_the_cause() -> None:
    found = explained(
        [("s/a", 100, 10, ""), ("s/b", 900, 1, "")], [("s/a", 196, 14, ""), ("s/b", 904, 1, "")]
    )

    (cause,) = found.causes
    assert (cause.kind, cause.share, cause.places) == (Kind.ROW, 0.96, 1)
    assert cause.per_launch == pytest.approx(0.4)
    assert cause.new_count - cause.base_count == 4


def test_a_kernel_that_changed_in_many_places_is_the_cause() -> None:
    (cause,) = explained(
        [(f"layer{i}/softmax", 10, 1, "") for i in range(8)],
        [(f"layer{i}/softmax", 20, 1, "") for i in range(8)],
    ).causes

    assert (cause.kind, cause.share, cause.places) == (Kind.KERNEL, 1.0, 8)


def test_the_deepest_scope_that_holds_most_of_it_is_the_cause() -> None:
    kernels = [(f"model/layer/k{i}", 10 + i, 1, f"c{i}") for i in range(9)]

    (cause,) = explained(
        kernels, [(path, 2 * time, 1, code) for path, time, _, code in kernels]
    ).causes

    assert (cause.kind, cause.share) == (Kind.BELOW, 1.0)


def test_changes_that_nearly_cancel_are_both_named() -> None:
    found = explained(
        [("a", 1000, 1, "a"), ("b", 2000, 1, "b")], [("a", 2000, 1, "a"), ("b", 1010, 1, "b")]
    )

    assert found.cancels
    assert [cause.change for cause in found.causes] == [1000.0, -990.0]


def test_what_is_new_or_gone_says_so() -> None:
    (new,) = explained([("a", 5, 1, "")], [("a", 5, 1, ""), ("b", 50, 3, "")]).causes
    (gone,) = explained([("a", 5, 1, ""), ("b", 50, 3, "")], [("a", 5, 1, "")]).causes

    assert (new.state, gone.state) == (RowState.NEW, RowState.REMOVED)
    assert new.per_launch is None


def test_nothing_explains_no_change() -> None:
    assert explained([("a", 5, 1, "")], [("a", 5, 1, "")]).causes == ()


def test_what_does_not_add_up_has_no_causes() -> None:
    run = run_of(("a", 5, 1, ""))

    assert explain(compare([run], [run], CompareOptions("avg_time/us"))) is None


def compared(base: Profile, *new: Profile, metric: str | None = None) -> Comparison:
    runs = [Run(each, f"new{place}.proton") for place, each in enumerate(new)]
    return compare([Run(base, "base.proton")], runs, CompareOptions(metric))


def row_at(comparison: Comparison, *path: str) -> int:
    return next(
        row for row in range(len(comparison)) if comparison.tree.path(row)[-len(path) :] == path
    )


@pytest.mark.parametrize("metric", ["time (ns)", "count", "wall (ns)", "avg_time/us", "time/%"])
def test_another_calibration_of_the_same_suite_changes_nothing(metric: str) -> None:
    comparison = compared(suite(10, 4), suite(40, 8), metric=metric)

    values = comparison.inclusive
    assert values.base_valid.tolist() == values.new_valid.tolist()
    assert not values.change.any()
    assert values.base.any()
    if values.split is not None:
        assert not values.split.launches.any()
        assert not values.split.latency.any()


def test_numbers_that_do_not_divide_change_nothing_worth_a_word() -> None:
    comparison = compared(suite(10, 4), suite(37, 1))

    assert comparison.inclusive.change == pytest.approx(np.zeros(len(comparison)), abs=1e-6)


def test_a_slower_benchmark_is_slower_by_that_for_the_calls_of_the_base() -> None:
    slow = suite(40, 8, launch_ns={"test_x.py::test_b": 150})
    comparison = compared(suite(10, 4), slow)

    values, kernel = comparison.inclusive, row_at(comparison, "test_b", "call", "rounds", "mm")
    assert (values.base[kernel], values.new[kernel]) == (100 * 2 * 40, 150 * 2 * 40)
    assert values.base_count[kernel] == values.new_count[kernel] == 80
    assert values.change[row_at(comparison, "test_x.py", "test_a")] == 0
    # Nine calls of the warm-up are slower too.
    assert values.change[0] == 50 * 2 * 40 + 50 * 2 * 9
    explanation = explain(comparison)
    assert explanation is not None
    (cause,) = explanation.causes
    assert cause.per_launch == pytest.approx(0.5)
    assert cause.new_count == cause.base_count


def test_twice_the_launches_of_a_call_are_twice_the_launches() -> None:
    comparison = compared(suite(10, 4), suite(40, 8, launches=4))

    values, kernel = comparison.inclusive, row_at(comparison, "test_a", "call", "rounds", "mm")
    assert (values.base_count[kernel], values.new_count[kernel]) == (80, 160)
    assert values.split is not None
    assert values.split.latency[kernel] == 0


def test_sums_are_those_of_the_rows_below() -> None:
    comparison = compared(suite(10, 4), suite(37, 1), metric="wall (ns)")

    values = comparison.inclusive
    session, file = row_at(comparison, "session"), row_at(comparison, "session", "test_x.py")
    tests = [row_at(comparison, name) for name in ("test_a", "test_b")]
    assert values.new[session] == pytest.approx(values.new[file])
    assert values.new[file] == pytest.approx(values.new[tests].sum())


@pytest.mark.parametrize("by", [By.KERNEL, By.SCOPE, By.TEST])
def test_it_holds_for_every_breakdown(by: By) -> None:
    runs = [Run(suite(10, 4), "a"), Run(suite(40, 8), "b")]

    comparison = compare(runs[:1], runs[1:], CompareOptions("time/us", by))

    assert not comparison.inclusive.change.any()


def test_all_runs_are_scaled_to_the_first_one_that_has_the_benchmark() -> None:
    several = [suite(rounds, 8) for rounds in (5, 20, 40)]
    comparison = compared(several[0], *several[1:])

    assert not comparison.inclusive.change.any()
    assert comparison.interval is not None
    assert not comparison.interval.high.any()
    assert comparison.scaled[0] == BenchmarkCalls(TESTS[0], 40, (40,), (160, 320))


def test_what_a_benchmark_was_called_can_be_looked_at() -> None:
    comparison = compared(suite(10, 4), suite(40, 8), metric="calls")

    rounds = row_at(comparison, "test_a", "call", "rounds")
    assert (comparison.inclusive.base[rounds], comparison.inclusive.new[rounds]) == (40, 320)


def test_a_new_benchmark_and_what_is_none_are_as_they_were_recorded() -> None:
    one, both = suite(10, 4, tests=TESTS[:1]), suite(40, 8)
    comparison = compared(one, both)

    values = comparison.inclusive
    assert values.new[row_at(comparison, "test_b", "call", "rounds")] == 100 * 2 * 320
    assert [each.id for each in comparison.scaled] == [TESTS[0]]
    assert values.new[row_at(comparison, "test_a", "setup")] == 7000


def test_equally_many_calls_are_left_alone() -> None:
    assert compared(suite(10, 4), suite(10, 4)).scaled == ()


def test_a_warm_up_that_does_not_say_its_calls_is_a_total() -> None:
    def silent(profile: Profile) -> Profile:
        calls = profile.columns["calls"]
        known = calls.valid & np.array(
            [profile.name(row) == "rounds" for row in range(len(profile))]
        )
        columns = {**profile.columns, "calls": replace(calls, valid=known)}
        return replace(profile, columns=columns)

    comparison = compared(silent(suite(10, 4)), silent(suite(40, 8)))

    assert comparison.own is not None
    changed = np.flatnonzero(comparison.own.change).tolist()
    assert {comparison.tree.path(row)[-2] for row in changed} == {"warm-up"}


@pytest.mark.parametrize("lacking", ["benchmark", "calls"])
def test_profiles_that_hold_no_benchmark_are_as_they_were_recorded(lacking: str) -> None:
    profile = suite(10, 4)
    columns = {name: column for name, column in profile.columns.items() if name != lacking}

    comparison = compared(replace(profile, columns=columns), suite(40, 8), metric="time (ns)")

    assert comparison.scaled == ()
    assert comparison.inclusive.change[0] > 0
