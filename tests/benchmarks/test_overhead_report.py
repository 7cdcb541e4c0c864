"""Estimates, rows and tables of benchmarks.overhead."""

from __future__ import annotations

import pytest
from overhead_results import measured, results

from benchmarks.overhead.report import (
    LEAST_ROUNDS,
    Verdict,
    added,
    print_report,
    ratio,
    row_results,
    thread_added,
)

MICRO = 1e-6


def verdicts(costs: dict[str, float], workload: str = "tiny") -> list[Verdict]:
    return [each.verdict for each in row_results(results(costs, workload))]


def test_what_is_added_is_the_difference_of_medians_within_a_process() -> None:
    process = measured(10 * MICRO, 2 * MICRO)

    assert added(process) == pytest.approx(2 * MICRO)
    assert ratio(process) == pytest.approx(1.2)


def test_a_row_compares_what_is_added_beyond_the_floor() -> None:
    costs = {"floor": 1.0 * MICRO, "upstream": 2.0 * MICRO, "ours": 1.2 * MICRO}

    first = row_results(results(costs))[0]

    assert first.figure is not None
    assert first.figure.middle == pytest.approx(0.2, rel=1e-6)
    assert first.verdict is Verdict.PASS
    assert first.rounds == LEAST_ROUNDS


def test_a_row_says_what_the_launching_thread_itself_is_given() -> None:
    costs = {"none": 0.0, "ours": 1.0 * MICRO, "ours_trace": 1.2 * MICRO}
    made = results(costs)

    row = next(each for each in row_results(made) if each.row.arm == "ours_trace")

    assert "; of its thread 0.30 [" in row.reason
    assert thread_added(measured(1.0, 0.8)) == pytest.approx(0.2)
    for each in made.rounds:
        for arm in each["arms"].values():
            del arm["workloads"]["tiny"]["bare_thread"]
    assert all("of its thread" not in each.reason for each in row_results(made))


def test_a_row_fails_when_the_whole_interval_is_above_the_bar() -> None:
    costs = {"floor": 1.0 * MICRO, "upstream": 2.0 * MICRO, "ours": 1.5 * MICRO}

    assert verdicts(costs)[0] is Verdict.FAIL


def test_a_reference_that_may_add_nothing_leaves_the_row_undecided() -> None:
    costs = {"floor": 1.0 * MICRO, "upstream": 1.0 * MICRO, "ours": 1.2 * MICRO}

    first = row_results(results(costs))[0]

    assert first.verdict is Verdict.UNDECIDED
    assert "may be nothing" in first.reason


def test_too_few_rounds_leave_a_row_undecided() -> None:
    costs = {"floor": 1.0 * MICRO, "upstream": 2.0 * MICRO, "ours": 1.2 * MICRO}

    first = row_results(results(costs, rounds=LEAST_ROUNDS - 1))[0]

    assert first.verdict is Verdict.UNDECIDED
    assert "9 rounds, 10 are needed" in first.reason


def test_a_row_without_its_arm_says_why() -> None:
    made = results({"floor": 1.0 * MICRO, "upstream": 2.0 * MICRO})
    for each in made.rounds:
        each["arms"]["ours"] = {"error": "start tiny: no driver", "workloads": {"tiny": {}}}

    first = row_results(made)[0]

    assert first.verdict is Verdict.UNDECIDED
    assert first.reason == "ours: start tiny: no driver"


def test_graph_rows_take_off_what_the_procedure_adds() -> None:
    costs = {"none": 0.5, "floor": 1.5, "ours": 1.55, "ours_launch": 0.5004, "ours_trace": 1.66}
    made = results({arm: cost * MICRO for arm, cost in costs.items()}, "graph")

    nodes, launches, traced = row_results(made)

    assert nodes.figure is not None
    assert nodes.figure.middle == pytest.approx(1.05, rel=1e-6)
    assert launches.figure is not None
    assert launches.figure.middle == pytest.approx(1.0003, rel=1e-3)
    assert traced.figure is not None
    assert traced.figure.middle == pytest.approx(1.16 / 1.05, rel=1e-6)
    verdicts = [each.verdict for each in (nodes, launches, traced)]
    assert verdicts == [Verdict.PASS, Verdict.PASS, Verdict.FAIL]


def test_arms_are_paired_within_rounds_that_have_all_of_them() -> None:
    made = results({"floor": 1.0 * MICRO, "upstream": 2.0 * MICRO, "ours": 1.2 * MICRO})
    made.rounds[0]["arms"]["floor"]["workloads"]["tiny"]["profiled"] = []

    assert row_results(made)[0].rounds == LEAST_ROUNDS - 1


def test_the_report_says_when_kernels_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    made = results({"ours": 1.0 * MICRO, "upstream": 1.0 * MICRO, "floor": 1.0 * MICRO})
    print_report(made)
    assert "!" not in capsys.readouterr().out

    for each in made.rounds:
        each["arms"]["upstream"]["workloads"]["tiny"]["kernels"] = 23
    print_report(made)

    assert "do not record the same kernels" in capsys.readouterr().out


def test_the_report_shows_every_arm_and_fails_with_a_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    costs = {"none": 0.0, "floor": 1.0 * MICRO, "upstream": 2.0 * MICRO, "ours": 1.5 * MICRO}

    is_met = print_report(results(costs))

    shown = capsys.readouterr().out
    assert not is_met
    assert "tiny: us per launch" in shown
    assert all(f"\n{arm} " in shown for arm in costs)
    assert "10.0 ms" in shown
    assert "2.0 kB" in shown
    assert "FAIL" in shown
