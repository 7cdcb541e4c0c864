from __future__ import annotations

import statistics
from dataclasses import replace

import pytest
from fakes.earlier import open_below
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.analysis.metrics.samples import coefficient_of_variation
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.profile import Profile

GPU = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 6144)


def sampled(*groups: list[float]) -> Profile:
    """Return one kernel below a scope, a variant per group of times, and a row that is empty."""
    builder = ProfileBuilder()
    builder.add(0, "empty", FrameKind.SCOPE)
    scope = builder.add(0, "scope", FrameKind.SCOPE)
    for number, times in enumerate(groups):
        row = builder.add(
            scope,
            "kernel",
            FrameKind.KERNEL,
            metrics={"time (ns)": int(sum(times)), "count": len(times)},
            device=GPU,
            variant=Variant(grid=(number + 1, 1, 1)),
        )
        builder.set_distribution(row, "time (ns)", Distribution.from_samples(times))
    return builder.build()


def shown(profile: Profile, name: str) -> list[float | None]:
    """Return the values of a view: variants folded, empty rows dropped."""
    (metric,) = build_tree(profile, [name], Selection()).metrics
    return metric.to_list()


def test_rows_without_calls_show_the_statistics_of_the_launches_below_them() -> None:
    profile = sampled([1000.0, 2000.0, 6000.0])

    assert shown(profile, "median_time/us") == [2.0, 2.0, 2.0]
    assert shown(profile, "min_time") == [1000.0, 1000.0, 1000.0]
    assert shown(profile, "max_time/ms") == [0.006, 0.006, 0.006]
    assert shown(profile, "p95_time/us")[2] == pytest.approx(5.6)


def test_variants_of_a_kernel_share_their_samples_in_a_view() -> None:
    assert shown(sampled([1000.0], [3000.0]), "median_time/us") == [2.0, 2.0, 2.0]


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=60))
def test_statistics_agree_with_their_definitions(times: list[int]) -> None:
    floats = [float(time) for time in times]
    low, high, median, spread = (
        shown(sampled(floats), name)[2]
        for name in ("min_time", "max_time", "median_time", "cv_time")
    )

    assert (low, high) == (min(floats), max(floats))
    assert median == pytest.approx(statistics.median(floats), rel=1e-6)
    expected = statistics.stdev(floats) / statistics.mean(floats)
    assert spread == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "times",
    [
        [100.0, 110.0] * 200,
        [1000.0, 1001.0] * 200,
        [10.0, 1000.0] * 200,
        [0.0, 7.0, 9.0] * 200,
        [float(time) for time in range(1, 5000)],
        [*[5.0, 7.0] * 500, 1e6],
        [*[5.0, 7.0] * 500, *[1e3, 2e3] * 400],
    ],
)
def test_cv_of_many_samples_does_not_depend_on_how_they_are_spread(times: list[float]) -> None:
    expected = statistics.stdev(times) / statistics.mean(times)

    found = coefficient_of_variation(Distribution.from_samples(times))

    assert found == pytest.approx(expected, rel=0.01)


def test_cv_without_samples_and_sketch_comes_from_moments_of_logarithms() -> None:
    whole = Distribution.from_samples([100.0, 110.0] * 200)
    nothing = Distribution.from_samples([])
    samples = replace(
        whole,
        samples=nothing.samples,
        bucket_index=nothing.bucket_index,
        bucket_count=nothing.bucket_count,
    )

    assert coefficient_of_variation(samples) == pytest.approx(5.0 / 105.0, rel=0.02)


def test_cv_takes_what_lies_below_the_lowest_bucket_at_its_mean() -> None:
    samples = open_below([*[50.0, 100.0] * 200, *[200.0] * 100], kept=2)

    known = [*[75.0] * 400, *[200.0] * 100]
    expected = statistics.stdev(known) / statistics.mean(known)
    assert coefficient_of_variation(samples) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("times", [[], [5.0], [0.0, 0.0]])
def test_cv_needs_two_positive_samples(times: list[float]) -> None:
    assert coefficient_of_variation(Distribution.from_samples(times)) is None


def test_file_without_samples_says_so() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"time (ns)": 1})

    with pytest.raises(MetricError, match=r"\.proton"):
        derive(builder.build(), ["median_time/us"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("median_wall/us", "samples were recorded of: time"),
        ("cv_time/us", "leave out /us"),
        ("median_time/h", "Unsupported unit h; units are s, ms, us, ns"),
    ],
)
def test_wrong_names_are_explained(name: str, message: str) -> None:
    with pytest.raises(MetricError, match=message):
        derive(sampled([1.0, 2.0]), [name])


def test_statistics_are_listed() -> None:
    names = available_metrics(sampled([1.0])).derivable

    assert {"median_time/us", "p95_time/ns", "min_time/s", "max_time/ms", "cv_time"} <= set(names)
