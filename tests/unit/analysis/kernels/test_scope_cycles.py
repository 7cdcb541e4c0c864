from __future__ import annotations

import pytest

from proton_bench.analysis.metrics.derive import available_metrics, default_metrics, derive
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile


def profile(*, lost: int = 0, time: bool = False) -> Profile:
    """A kernel with one scope, which was passed 4 times."""
    builder = ProfileBuilder()
    exclusive = ("cycles", "instances", "kept_records", "lost_records", "instrumented_launches")
    for name in exclusive:
        builder.declare(name, Aggregation.EXCLUSIVE)
    facts: dict[str, int] = {"kept_records": 8, "instrumented_launches": 1}
    if lost:
        facts |= {"lost_records": lost}
    if time:
        facts |= {"time (ns)": 10, "count": 1}
    kernel = builder.add(0, "k", FrameKind.KERNEL, metrics=facts)
    builder.add(kernel, "body", FrameKind.SCOPE, metrics={"cycles": 100, "instances": 4})
    return builder.build()


def test_mean_cycles_are_of_one_pass() -> None:
    (found,) = derive(profile(), ["avg_cycles"])

    assert found.to_list() == [None, None, 25.0]


def test_nested_scopes_of_a_timeline_are_part_of_the_mean() -> None:
    builder = ProfileBuilder()
    builder.declare("instances", Aggregation.EXCLUSIVE)
    outer = builder.add(0, "outer", FrameKind.SCOPE, metrics={"cycles": 10, "instances": 2})
    builder.add(outer, "inner", FrameKind.SCOPE, metrics={"cycles": 30, "instances": 3})

    (found,) = derive(builder.build(), ["avg_cycles"])

    assert found.to_list() == [None, 20.0, 10.0]


def test_the_scopes_of_a_kernel_share_its_coverage() -> None:
    (found,) = derive(profile(lost=2), ["coverage"])

    assert found.to_list() == [None, 80.0, 80.0]


def test_metrics_are_offered_where_they_can_be_derived() -> None:
    assert "avg_cycles" in available_metrics(profile()).derivable
    assert "coverage" not in available_metrics(profile()).derivable
    assert "coverage" in available_metrics(profile(lost=1)).derivable


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (profile(), ("cycles", "cycles/%", "instances")),
        (profile(lost=1), ("cycles", "cycles/%", "instances", "coverage")),
        (profile(time=True), ("time/us", "time/%", "count", "cycles", "instances")),
    ],
)
def test_scopes_are_shown_without_being_asked_for(
    shown: Profile, expected: tuple[str, ...]
) -> None:
    assert default_metrics(shown) == expected


@pytest.mark.parametrize("name", ["avg_cycles", "coverage"])
def test_profiles_without_scopes_inside_kernels_have_none_of_it(name: str) -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 1})

    with pytest.raises(MetricError, match=name):
        derive(builder.build(), [name])
