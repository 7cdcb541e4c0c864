"""The profiler's own cost in reports of comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fakes.runs import profile_of
from rich.console import Console

from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.ranking import rank
from proton_bench.analysis.run import Run
from proton_bench.model.provenance import Provenance
from proton_bench.report.text.diff import DiffReport, diff_document, diff_markdown
from proton_bench.report.words.diff import cost_lines, cost_warning

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
