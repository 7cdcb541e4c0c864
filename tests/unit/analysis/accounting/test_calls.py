"""A row's count, mean and quantiles speak of its own calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.metrics.derive import derive
from proton_bench.analysis.run import Run
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile


def operators() -> Profile:
    """Return scope > linear (2 calls) > addmm (2 calls) and scope > relu (1 call)."""
    builder = ProfileBuilder()
    builder.declare("time (ns)", Aggregation.INCLUSIVE)
    builder.declare("count", Aggregation.INCLUSIVE)
    scope = builder.add(0, "forward")
    rows = {"linear": scope, "addmm": 0, "relu": scope}
    for name, samples in (
        ("linear", [100.0, 300.0]),
        ("addmm", [5000.0, 7000.0]),
        ("relu", [50.0]),
    ):
        metrics = {"time (ns)": int(sum(samples)), "count": len(samples)}
        above = rows["linear"] if name == "addmm" else scope
        rows[name] = builder.add(above, name, metrics=metrics)
        builder.set_distribution(rows[name], "time (ns)", Distribution.from_samples(samples))
    return builder.build()


def shown(profile: Profile, name: str) -> dict[str, float | None]:
    (found,) = derive(profile, [name])
    return dict(zip(profile.strings, found.to_list(), strict=True))


def test_counts_are_those_of_the_row_and_of_scopes_the_launches_below() -> None:
    assert shown(operators(), "count") == {
        "ROOT": 5, "forward": 5, "linear": 2, "addmm": 2, "relu": 1,
    }  # fmt: skip
    assert shown(operators(), "count (inc)")["linear"] == 4


def test_means_lie_between_the_extremes_of_the_same_calls() -> None:
    profile = operators()
    low, mean, median, high = (
        shown(profile, f"{name}_time/us") for name in ("min", "avg", "median", "max")
    )

    assert mean["linear"] == pytest.approx(0.2)
    assert mean["forward"] == pytest.approx(12.45 / 5)
    assert (low["forward"], median["forward"], high["forward"]) == (0.05, 0.3, 7.0)
    for name in profile.strings:
        assert low[name] <= mean[name] <= high[name]  # type: ignore[operator]
        assert low[name] <= median[name] <= high[name]  # type: ignore[operator]


def test_only_columns_of_sums_are_labelled_as_such() -> None:
    found = derive(operators(), ["time/us", "count", "avg_time/us", "median_time/us"])

    assert [each.title for each in found] == [
        "time/us (inc)", "count", "avg_time/us", "median_time/us",
    ]  # fmt: skip


def test_scopes_that_were_timed_show_their_own_passes_alone() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    outer = builder.add(0, "outer", metrics={"wall (ns)": 30.0})
    inner = builder.add(outer, "inner", metrics={"wall (ns)": 20.0})
    builder.set_distribution(outer, "wall (ns)", Distribution.from_samples([30.0]))
    builder.set_distribution(inner, "wall (ns)", Distribution.from_samples([5.0, 15.0]))

    assert shown(builder.build(), "median_wall") == {"ROOT": None, "outer": 30.0, "inner": 10.0}


def without_samples(profile: Profile) -> Profile:
    return replace(profile, distributions={})


def test_samples_of_a_part_of_the_calls_say_nothing_of_all() -> None:
    merged = Profile.merge([operators(), without_samples(operators())])

    assert shown(merged, "count")["linear"] == 4
    for name in ("min_time", "median_time", "max_time", "cv_time"):
        assert set(shown(merged, name).values()) == {None}
    kept = merged.samples("time (ns)")
    assert kept is not None
    assert len(kept) == 0


def test_rows_above_calls_without_samples_do_not_know_theirs() -> None:
    builder = ProfileBuilder()
    builder.declare("time (ns)", Aggregation.INCLUSIVE)
    builder.add(builder.add(0, "forward"), "relu", metrics={"time (ns)": 9000, "count": 1})
    merged = Profile.merge([operators(), without_samples(builder.build())])

    medians = shown(merged, "median_time")
    assert (medians["linear"], medians["relu"], medians["forward"], medians["ROOT"]) == (
        200.0, None, None, None,
    )  # fmt: skip


@pytest.mark.parametrize("by", [By.PATH, By.KERNEL])
def test_quantiles_of_two_runs_are_compared(by: By) -> None:
    runs = [Run(operators(), name) for name in ("base", "new")]

    comparison = compare(runs[:1], runs[1:], CompareOptions("median_time/us", by))

    values = dict(
        zip(
            map(comparison.tree.name, range(len(comparison))),
            comparison.inclusive.base,
            strict=True,
        )
    )
    assert values["addmm"] == 6.0
    assert values["ROOT"] == 0.3
    assert not comparison.inclusive.change.any()


def test_operators_and_copies_are_not_launches() -> None:
    builder = ProfileBuilder()
    op = builder.add(0, "aten::mm", FrameKind.OP, metrics={"count": 7})
    builder.add(op, "gemm", FrameKind.KERNEL, metrics={"count": 3})
    builder.add(op, "copy", FrameKind.COPY, metrics={"count": 5})

    (launches,) = derive(builder.build(), ["launches"])

    assert launches.title == "launches (inc)"
    assert launches.to_list() == [3, 3, 3, None]


def test_unnamed_rows_with_a_device_are_launches() -> None:
    builder = ProfileBuilder()
    builder.add(0, "gemm", metrics={"count": 3}, device=Device("CUDA", 0))

    assert derive(builder.build(), ["launches"])[0].to_list() == [3, 3]


def test_launches_need_counts() -> None:
    builder = ProfileBuilder()
    builder.add(0, "gemm", metrics={"time (ns)": 3})

    with pytest.raises(MetricError, match=r"count .* time"):
        derive(builder.build(), ["launches"])
