"""The profiler's own cost in reports of comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.runs import Launched, profile_of, run_of
from fakes.suites import suite
from rich.console import Console

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.ranking import rank
from proton_bench.analysis.run import Run
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.provenance import Provenance
from proton_bench.report.text.diff import DiffReport, diff_document, diff_markdown
from proton_bench.report.words.diff import (
    calls_line,
    certain_headline,
    cost_lines,
    cost_warning,
    headline,
    side_lines,
)

WARNING = (
    "recording cost 3 ms more in new than in base: host times (wall, cpu_time, launch latency) "
    "may differ for this reason alone"
)


def run_with(cost: int | None, source: str = "x") -> Run:
    facts: dict[str, Any] = {"start_time_ns": 1, "end_time_ns": 100_000_001}
    if cost is not None:
        facts["estimated_cost_ns"] = cost
    return Run(replace(profile_of(("a", 9, 1, "")), provenance=Provenance(facts)), source)


def compared(base: list[int | None], new: list[int | None]) -> Comparison:
    sides = [[run_with(cost) for cost in side] for side in (base, new)]
    return compare(sides[0], sides[1], CompareOptions())


def test_each_side_says_what_recording_cost() -> None:
    assert list(cost_lines(compared([1_000_000], [None]))) == [
        ("base", "own cost of the profiler: about 1 ms (its estimate), 1 % of 100 ms"),
        ("new", "own cost of the profiler: unknown, the file does not say"),
    ]


def test_several_runs_say_the_range_and_what_is_missing() -> None:
    (_, base), (_, new) = cost_lines(compared([1_000_000, 2_000_000, None], [5_000, 5_000]))

    assert base == (
        "own cost of the profiler: about 1 ms to 2 ms (its estimate), 1 to 2 % of a run; "
        "unknown for 1 run"
    )
    assert new == "own cost of the profiler: about 0.005 ms (its estimate), 0.005 % of a run"


def test_one_line_is_enough_where_nothing_is_known() -> None:
    assert list(cost_lines(compared([None], [None, None]))) == [
        ("both", "own cost of the profiler: unknown, the files do not say")
    ]


def test_a_large_difference_is_a_warning_in_every_form() -> None:
    comparison = compared([1_000_000], [4_000_000])
    ranking = rank(comparison, None, 100)
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(DiffReport(comparison, ranking), soft_wrap=True)

    document = diff_document(comparison, ranking)

    assert cost_warning(comparison) == WARNING
    assert WARNING in captured.get().splitlines()
    assert "- recording cost 3 ms more in new" in diff_markdown(comparison, ranking)
    assert document["cost_warning"] == WARNING
    assert document["base"][0]["estimated_cost_ns"] == 1_000_000


def test_a_small_difference_is_not_reported() -> None:
    assert cost_warning(compared([1_000_000], [1_200_000])) is None
    assert cost_warning(compared([1], [4])) is None


def said(base: list[Launched], new: list[Launched], metric: str = "time", by: By = By.PATH) -> str:
    return headline(compare([run_of(*base)], [run_of(*new)], CompareOptions(metric, by)))


LAYERS = [(f"layer{i}/k{i}", 10 + i, 1, f"c{i}") for i in range(3)]


@pytest.mark.parametrize(
    ("base", "new", "line"),
    [
        (
            [("layer3/softmax", 100, 10, ""), ("b", 900, 1, "")],
            [("layer3/softmax", 196, 14, ""), ("b", 927, 1, "")],
            "+12.3 % (+123 ns): 78 % of it is softmax under layer3, slower per call by 40 %, "
            "4 calls more",
        ),
        (
            [("a", 200, 2, "")],
            [("a", 100, 1, "")],
            "-50.0 % (-100 ns): 100 % of it is a, 1 call fewer",
        ),
        ([("a", 90, 1, "")], [("a", 90, 1, ""), ("b", 9, 1, "")], "which is new"),
        ([("a", 90, 1, ""), ("b", 9, 3, "")], [("a", 90, 1, "")], "of it is b, which is gone"),
        ([("s/a", 90, 1, "c")], [("s/b", 80, 1, "c")], "b under s, which was a, faster per call"),
        ([("s/a", 90, 1, "c")], [("t/a", 80, 1, "c")], "a under t, moved, faster per call"),
        ([("a", 90, 1, "c")], [("a", 95, 1, "d")], "with other code"),
        (
            [(f"l{i}/k", 10, 1, "") for i in range(5)],
            [(f"l{i}/k", 12, 1, "") for i in range(5)],
            "+20.0 % (+10 ns): 100 % of it is k in 5 places, slower per call by 20 %",
        ),
        (
            [(f"net/{path}", time, 1, code) for path, time, _, code in LAYERS],
            [(f"net/{path}", 2 * time, 2, code) for path, time, _, code in LAYERS],
            "100 % of it happened below net, 3 calls more",
        ),
        (
            [("a", 1000, 1, "a"), ("b", 2000, 1, "b")],
            [("a", 2000, 1, "a"), ("b", 1010, 1, "b")],
            "+0.3 % (+10 ns): +1 us a, slower per call by 100 %; -0.99 us b, faster per call "
            "by 50 %",
        ),
        (
            [("a", 1000, 1, "a"), ("b", 500, 1, "b")],
            [("a", 1300, 1, "a"), ("b", 300, 1, "b")],
            "+6.7 % (+100 ns): +300 ns a, slower per call by 30 %; -200 ns b, ",
        ),
        (
            [("x/s/k", 90, 1, ""), ("y/s/k", 90, 1, "")],
            [("x/s/k", 90, 1, ""), ("y/s/k", 95, 1, "")],
            "100 % of it is k under y > s, slower",
        ),
        ([("a", 90, 1, "")], [("a", 90, 1, "")], "no change of time"),
    ],
)
def test_one_line_says_what_explains_the_change(
    base: list[Launched], new: list[Launched], line: str
) -> None:
    assert line in said(base, new)


def test_benchmarks_that_were_called_a_different_number_of_times_are_reported() -> None:
    base, slow = suite(10, 4), suite(40, 8, launch_ns={"test_x.py::test_b": 150})
    comparison = compare([Run(base, "a")], [Run(slow, "b")], CompareOptions())

    assert headline(comparison).startswith("+14.1 % (+4.9 us) at the base's number of calls: ")
    assert "slower per call by 50 %" in headline(comparison)
    assert "launches more" not in headline(comparison)
    sentence = calls_line(comparison)
    assert sentence is not None
    assert sentence.startswith("2 benchmarks were called a different number of times")
    assert calls_line(compare([Run(base, "a")], [Run(base, "b")], CompareOptions())) is None


def test_totals_of_both_sides_have_one_unit() -> None:
    comparison = compare(
        [run_of(("a", 900, 1, ""), source="a")],
        [run_of(("a", 1200, 1, ""), source="b")],
        CompareOptions(),
    )

    assert dict(side_lines(comparison)) == {"base": "a: 0.9 us", "new": "b: 1.2 us"}


def test_scopes_have_no_latency() -> None:
    assert "per launch" not in said([("s/a", 10, 1, "")], [("s/a", 20, 1, "")], by=By.SCOPE)


def test_values_that_are_not_times_are_more_or_less_per_launch() -> None:
    runs = []
    for moved in (100, 150):
        builder = ProfileBuilder()
        builder.add(0, "k", metrics={"bytes": moved, "count": 1})
        runs.append(Run(builder.build(), "x"))

    line = headline(compare(runs[:1], runs[1:], CompareOptions("bytes")))

    assert line == "+50.0 % (+50): 100 % of it is k, more per call by 50 %"


@pytest.mark.parametrize(
    ("metric", "line"),
    [
        ("avg_time/ns", "avg_time/ns 16.67 -> 26.67 (+60.0 %)"),
        ("time/%", "time/% changed most in a under s: 20 % -> 50 % (+150 %)"),
    ],
)
def test_rates_are_summed_up_by_the_total_or_the_row_that_changed_most(
    metric: str, line: str
) -> None:
    base = [("s/a", 10, 1, ""), ("b", 20, 1, ""), ("c", 20, 1, "")]
    new = [("s/a", 40, 1, ""), ("b", 20, 1, ""), ("c", 20, 1, "")]

    assert said(base, new, metric) == line


def test_a_rate_without_any_change_says_so() -> None:
    assert said([("a", 10, 1, "")], [("a", 10, 1, "")], "avg_time/ns") == "no change of avg_time/ns"


def test_a_base_of_nothing_has_no_percentage() -> None:
    assert said([("a", 0, 1, "")], [("a", 10, 1, "")]).startswith("+10 ns: 100 % of it is a")


def test_names_cannot_break_the_line() -> None:
    line = said([("a", 10, 1, "")], [("a", 10, 1, ""), ("x\n\x1b[2J" + "y" * 500, 90, 1, "")])

    assert "\n" not in line
    assert "\x1b" not in line
    assert "more characters" in line


@pytest.mark.parametrize(
    ("times", "line"),
    [
        ((190, 210), "-1.0 % (-2 ns), 95 % interval -111 ns to +107 ns, "),
        ((290, 296), "+45.0 % (+91 ns), 95 % interval "),
    ],
)
def test_a_change_that_may_be_none_has_no_cause(times: tuple[int, int], line: str) -> None:
    base = [run_of(("a", time, 1, "")) for time in (200, 204)]
    new = [run_of(("a", time, 1, "")) for time in times]

    found = certain_headline(compare(base, new, CompareOptions()))

    assert found.startswith(line)
    assert found.endswith("no change at all") == (times[0] < 200)


def test_single_runs_have_a_cause() -> None:
    compared = compare([run_of(("a", 1, 1, ""))], [run_of(("a", 2, 1, ""))], CompareOptions())

    assert certain_headline(compared) == headline(compared)
