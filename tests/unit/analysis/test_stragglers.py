from __future__ import annotations

import pytest

from proton_bench.analysis.ranks import ScopeTimes, Stragglers, find_stragglers
from proton_bench.errors import MetricError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.members import Member, RankGaps
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.origin import Origin
from proton_bench.report.text.stragglers import StragglerReport, straggler_document
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console


def rank(number: int, work_ns: int, waiting_ns: int, *, steps: int = 1) -> Member:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    for step in range(steps):
        top = builder.add(
            0, f"step {step}", FrameKind.SCOPE, metrics={"wall (ns)": 2 * work_ns + step}
        )
        forward = builder.add(top, "forward", FrameKind.SCOPE)
        builder.add(forward, "gemm", FrameKind.KERNEL, metrics={"time (ns)": work_ns})
        deep = builder.add(forward, "layer", FrameKind.SCOPE)
        builder.add(deep, "add", FrameKind.KERNEL, metrics={"time (ns)": 1})
        builder.add(
            top,
            "ncclDevKernel_AllReduce_Sum",
            FrameKind.KERNEL,
            metrics={"time (ns)": waiting_ns},
        )
    return Member(f"r{number}", Origin(rank=number, world_size=3), builder.build())


def scopes(found: Stragglers) -> dict[str, ScopeTimes]:
    return {"/".join(scope.path): scope for scope in found.scopes}


def test_the_rank_that_works_longest_is_the_slowest_though_all_take_as_long() -> None:
    found = find_stragglers([rank(0, 100, 60), rank(1, 150, 10)])

    assert found.metric == "time (ns)"
    assert found.ranks == (0, 1)
    step = scopes(found)["step 0"]
    assert step.work_ns == (101, 151)
    assert step.waiting_ns == (60, 10)
    assert step.slowest == 1
    assert step.excess_ns == 50
    assert step.spread_pct == pytest.approx(100 * 50 / 126)


def test_scopes_come_in_the_order_of_the_tree_down_to_the_second_level() -> None:
    members = [rank(0, 5, 1, steps=2), rank(1, 5, 1, steps=2)]

    assert list(scopes(find_stragglers(members))) == [
        "", "step 0", "step 0/forward", "step 1", "step 1/forward",
    ]  # fmt: skip


def test_times_of_the_host_are_compared_on_request() -> None:
    found = find_stragglers([rank(0, 100, 9, steps=2), rank(1, 150, 9, steps=2)], metric="wall")

    assert found.metric == "wall (ns)"
    assert scopes(found)[""].work_ns == (401, 601)
    assert scopes(found)["step 1"].work_ns == (201, 301)
    assert scopes(found)["step 1"].waiting_ns == (None, None)


def test_a_scope_that_one_rank_lacks_is_compared_among_the_others() -> None:
    found = find_stragglers([rank(0, 10, 0), rank(1, 10, 0, steps=2), rank(2, 30, 0, steps=2)])

    step = scopes(found)["step 1"]
    assert step.work_ns == (None, 11, 31)
    assert step.slowest == 2


def test_a_scope_of_one_rank_alone_has_no_slowest() -> None:
    step = scopes(find_stragglers([rank(0, 10, 0), rank(1, 10, 0, steps=2)]))["step 1"]

    assert (step.slowest, step.spread_pct, step.excess_ns) == (None, None, 0)


def test_processes_of_one_rank_are_summed() -> None:
    found = find_stragglers([rank(0, 10, 0), rank(0, 10, 0), rank(1, 10, 0)])

    assert scopes(found)["step 0"].work_ns == (22, 11)


def test_missing_ranks_are_known() -> None:
    assert find_stragglers([rank(0, 1, 0), rank(2, 1, 0)]).gaps.missing == (1,)


def test_one_rank_alone_is_refused() -> None:
    with pytest.raises(UsageError, match="two or more"):
        find_stragglers([rank(0, 1, 0)])


def test_files_without_a_rank_are_refused() -> None:
    with pytest.raises(UsageError, match="r9"):
        find_stragglers([rank(0, 1, 0), Member("r9", Origin(), rank(0, 1, 0).profile)])


def test_a_metric_that_not_all_have_is_named() -> None:
    with pytest.raises(MetricError, match=r"'cycles'.*time \(ns\)"):
        find_stragglers([rank(0, 1, 0), rank(1, 1, 0)], metric="cycles")


def test_the_table_names_the_slowest_and_what_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = find_stragglers([rank(0, 1_000_000, 600_000), rank(2, 1_500_000, 1000)])

    print_report(open_console(), StragglerReport(found))
    lines = capsys.readouterr().out.splitlines()

    assert lines[0] == "INCOMPLETE: rank 1 of 3 is missing"
    assert [each.strip() for each in lines[1].split("  ") if each] == [
        "slowest",
        "spread %",
        "rank 0 (ms)",
        "rank 2 (ms)",
        "waiting (ms)",
        "scope",
    ]
    assert lines[3].split() == ["rank", "2", "40.0", "1.000", "1.500", "0.600", "step", "0"]


def test_of_many_ranks_and_scopes_the_largest_differences_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    members = [rank(number, 100 + number, 0, steps=60) for number in range(10)]
    found = find_stragglers(members)

    print_report(open_console(), StragglerReport(found))
    out = capsys.readouterr().out

    assert "least" in out.splitlines()[0]
    assert "81 scopes with smaller differences left out" in out


def test_the_document_holds_everything() -> None:
    found = find_stragglers([rank(0, 100, 60), rank(1, 150, 10)])

    document = straggler_document(found, ["a", "b"])

    assert (document["schema"], document["ranks"]) == ("proton_bench.stragglers", (0, 1))
    assert document["scopes"][1]["slowest_rank"] == 1
    assert document["job"] == {
        "world_size": 3, "present": (0, 1), "missing": (2,), "partial": (),
    }  # fmt: skip
    assert found.gaps == RankGaps(3, (0, 1), (2,), ())
