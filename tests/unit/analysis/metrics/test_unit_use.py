from __future__ import annotations

import math
from typing import Any

import pytest

from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.analysis.metrics.values import WIDEST
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile


def counted(time_ns: float, dram: float, half: float, sampled: float = 0.5) -> dict[str, float]:
    """Metrics of a kernel with a share of DRAM and half of its interval."""
    return {
        "time (ns)": time_ns,
        "counter_time (ns)": time_ns,
        "counter_sampled (ns)": sampled * time_ns,
        "dram_busy (ns)": dram * time_ns,
        "dram_variance (ns^2)": (half / 1.959964 * time_ns) ** 2,
    }


def kernels(*metrics: dict[str, float]) -> Profile:
    builder = ProfileBuilder()
    scope = builder.add(0, "step", FrameKind.SCOPE)
    for number, each in enumerate(metrics):
        builder.add(scope, f"kernel_{number}", FrameKind.KERNEL, metrics=each)
    return builder.build()


def values(profile: Profile, name: str) -> list[Any]:
    return derive(profile, [name])[0].to_list()


def test_kernels_without_counters_are_not_covered() -> None:
    profile = kernels(counted(1000, 0.8, 0.02, sampled=1.0), {"time (ns)": 3000})

    assert values(profile, "counter_coverage")[:3] == pytest.approx([25.0, 25.0, 100.0])


@pytest.mark.parametrize(("mode", "is_advised"), [("", True), ("counters", False)])
def test_counters_are_advised_to_runs_that_did_not_ask(mode: str, is_advised: bool) -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 1})

    with pytest.raises(MetricError) as raised:
        derive(builder.build(provenance={"mode": mode}), ["dram_pct"])

    assert ("-m counters" in str(raised.value)) is is_advised


def test_shares_of_rows_above_are_weighted_by_time() -> None:
    profile = kernels(counted(3000, 0.8, 0.02), counted(1000, 0.2, 0.02))

    assert values(profile, "dram_pct") == pytest.approx([65.0, 65.0, 80.0, 20.0])
    assert values(profile, "counter_coverage") == pytest.approx([50.0] * 4)


def test_errors_of_several_rows_are_less_than_their_sum() -> None:
    profile = kernels(counted(1000, 0.5, 0.04), counted(1000, 0.5, 0.03))

    assert values(profile, "dram_err") == pytest.approx([2.5, 2.5, 4.0, 3.0])


def test_errors_that_come_back_do_not_get_smaller_in_a_sum() -> None:
    kernel = counted(1000, 0.5, 0.05)
    kernel["dram_bias (ns)"] = 0.05 / 1.959964 * 1000
    profile = kernels(*[kernel] * 9, counted(1000, 0.5, 0.05))

    error = values(profile, "dram_err")

    assert error[2] == pytest.approx(5.0)
    assert error[1] == pytest.approx(4.5)


def test_what_is_not_known_well_is_withheld() -> None:
    profile = kernels(
        counted(1000, 0.5, 0.99 * WIDEST / 100), counted(10, 0.5, 1.01 * WIDEST / 100)
    )

    share, error = values(profile, "dram_pct"), values(profile, "dram_err")

    assert [each is None for each in share] == [False, False, False, True]
    assert error[3] == pytest.approx(1.01 * WIDEST)


def test_rows_without_samples_have_no_share() -> None:
    profile = kernels(counted(1000, 0.5, 0.0), {"time (ns)": 5000})

    assert values(profile, "dram_pct")[2:] == [pytest.approx(50.0), None]
    assert values(profile, "counter_coverage")[3] is None


def test_exact_values_have_an_interval_of_nothing() -> None:
    (metric,) = derive(kernels(counted(1000, 0.5, 0.0)), ["dram_pct"])
    assert metric.halves is not None
    assert metric.halves.tolist() == [0.0] * 3


def test_a_share_without_variance_is_withheld() -> None:
    without = counted(1000, 0.5, 0.0)
    del without["dram_variance (ns^2)"]
    assert values(kernels(without), "dram_pct") == [None] * 3


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1e308, 1e308, 1e-320])
@pytest.mark.parametrize("place", range(5))
def test_files_may_hold_any_number(number: float, place: int) -> None:
    hostile = counted(1000, 0.5, 0.01) | {"dram_bias (ns)": 1.0}
    hostile[list(hostile)[place + 1]] = number
    profile = kernels(hostile, hostile, counted(1000, 0.5, 0.01))

    for name in ("dram_pct", "dram_err", "counter_coverage"):
        found = [value for value in values(profile, name) if value is not None]
        assert all(map(math.isfinite, found))


def test_only_units_that_were_sampled_are_offered() -> None:
    offered = available_metrics(kernels(counted(1000, 0.5, 0.0))).derivable

    assert {"dram_pct", "dram_err", "counter_coverage"} <= set(offered)
    assert "tensor_pct" not in offered
    assert "dram_pct" not in available_metrics(kernels({"time (ns)": 1})).derivable


def test_missing_counters_are_an_error() -> None:
    with pytest.raises(MetricError):
        values(kernels(counted(1000, 0.5, 0.0)), "tensor_pct")
    with pytest.raises(MetricError):
        values(kernels({"time (ns)": 1}), "dram_pct")
