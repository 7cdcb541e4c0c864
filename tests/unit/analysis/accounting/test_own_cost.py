from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.runs import profile_of

from proton_bench.analysis.accounting.own_cost import OwnCost, costs_differ, own_cost
from proton_bench.analysis.run import Run
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance


def with_facts(**facts: Any) -> Profile:
    return replace(profile_of(("a", 1, 1, "")), provenance=Provenance(facts))


def runs(*costs: Any, length: int | None = 1000) -> list[Run]:
    times = {} if length is None else {"start_time_ns": 5, "end_time_ns": 5 + length}
    return [Run(with_facts(estimated_cost_ns=cost, **times), "x") for cost in costs]


def test_cost_is_reported_with_the_length_of_the_run() -> None:
    cost = own_cost(with_facts(estimated_cost_ns=50, start_time_ns=100, end_time_ns=1100))

    assert cost == OwnCost(50, 1000)
    assert cost.share == 0.05


def test_the_share_is_of_recorded_work_where_the_host_was_sampled() -> None:
    builder = ProfileBuilder()
    builder.add(0, "aten::mul", FrameKind.OP, metrics={"host_wall (ns)": 400})
    builder.add(0, "<not recorded>", FrameKind.PYTHON, metrics={"host_wall (ns)": 600})
    facts = {"estimated_cost_ns": 20, "start_time_ns": 100, "end_time_ns": 1100}

    cost = own_cost(builder.build(provenance=facts))

    assert cost is not None
    assert (cost.whole_ns, cost.share) == (400, 0.05)


@pytest.mark.parametrize("cost", [None, "much", True, -1, float("nan"), float("inf"), 2**70])
def test_what_is_not_a_cost_is_not_known(cost: Any) -> None:
    assert own_cost(with_facts(estimated_cost_ns=cost)) is None


@pytest.mark.parametrize("times", [(5, 5), (9, 5), (None, 5), ("a", 5), (-(2**63), 2**63)])
def test_a_run_without_a_length_has_no_share(times: tuple[Any, Any]) -> None:
    cost = own_cost(with_facts(estimated_cost_ns=1, start_time_ns=times[0], end_time_ns=times[1]))

    assert cost is not None
    assert cost.share is None


def test_costs_differ_where_one_is_larger_by_half_and_by_a_part_of_the_run() -> None:
    assert costs_differ(runs(10), runs(30)) == (10, 30)
    assert costs_differ(runs(30), runs(10)) == (30, 10)
    assert costs_differ(runs(100), runs(120)) is None
    assert costs_differ(runs(1), runs(3)) is None
    assert costs_differ(runs(1, length=None), runs(3, length=None)) == (1, 3)
    assert costs_differ(runs(0), runs(0)) is None


def test_medians_of_several_runs_are_compared() -> None:
    assert costs_differ(runs(10, 11, 900), runs(30, 31, 32)) == (11, 31)


def test_nothing_is_said_where_a_cost_is_unknown() -> None:
    assert costs_differ(runs(10), runs(None)) is None
    assert costs_differ(runs(10, None), runs(90)) is None
