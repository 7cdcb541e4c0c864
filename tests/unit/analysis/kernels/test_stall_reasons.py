"""Every reason that a sample may have is explained, with the vendor's page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.profiles import training_profile
from fakes.samples import GPU, REASONS, sampled_profile, samples

from proton_bench.analysis.kernels.stall_reasons import (
    AMD_SOURCE,
    NVIDIA_SOURCE,
    explain_stall,
)
from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.errors import MetricError
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

NVIDIA_REASONS = (*REASONS, "gmma")  # which only GPUs with matrix units of warp groups have


@pytest.mark.parametrize("name", NVIDIA_REASONS)
def test_every_reason_of_an_nvidia_gpu_is_explained(name: str) -> None:
    reason = explain_stall(f"stalled_{name}")

    assert reason is not None
    assert reason.metric == f"stalled_{name}"
    assert reason.source == NVIDIA_SOURCE
    assert reason.meaning


def test_what_upstream_calls_a_reason_is_the_same_reason() -> None:
    assert explain_stall("stalled_not_Selected") == explain_stall("not_selected")


def test_reasons_of_amd_gpus_name_that_vendors_page() -> None:
    reason = explain_stall("waitcnt")

    assert reason is not None
    assert reason.source == AMD_SOURCE


def test_what_is_not_a_reason_is_not_explained() -> None:
    assert explain_stall("stalled_by_magic") is None
    assert explain_stall("num_samples") is None


SAMPLED = Path(__file__).parents[3] / "data" / "upstream" / "matmul-pcsampling.hatchet"


@pytest.fixture
def sampled() -> Profile:
    return read_profile(SAMPLED)


def test_ratio_is_the_part_of_all_samples(sampled: Profile) -> None:
    (ratio,) = derive(sampled, ["stalled_wait/samples"])

    # Of 765147 samples; num_samples counts the 257491 in which nothing was issued once more.
    assert ratio.to_list()[0] == pytest.approx(103317 / 765147)


def test_every_reason_is_listed_whatever_its_case(sampled: Profile) -> None:
    names = [n for n in available_metrics(sampled).derivable if n.endswith("/samples")]

    assert {"stalled_long_scoreboard/samples", "stalled_not_selected/samples"} <= set(names)
    values = {metric.name: metric.to_list()[0] for metric in derive(sampled, names)}
    assert all(0.0 <= value <= 1.0 for value in values.values())


def test_three_parts_make_up_all_samples(sampled: Profile) -> None:
    names = [f"{part}/samples" for part in ("issued", "stalled", "not_issued")]
    assert set(names) <= set(available_metrics(sampled).derivable)

    shares = [metric.to_list()[0] for metric in derive(sampled, names)]

    assert sum(shares) == pytest.approx(1.0)
    # The file's own sums: 765147 samples, 64941 selected, 1022638 - 765147 not issued.
    assert shares == pytest.approx([64941 / 765147, 442715 / 765147, 257491 / 765147])


def test_reasons_make_up_all_samples(sampled: Profile) -> None:
    names = [
        name
        for name in available_metrics(sampled).derivable
        if name.startswith("stalled_") and name.endswith("/samples")
    ]

    assert sum(metric.to_list()[0] for metric in derive(sampled, names)) == pytest.approx(1.0)


def test_gpus_that_select_no_warps_have_samples_that_issued_and_stalled_ones() -> None:
    builder = ProfileBuilder()
    metrics = {"num_samples": 100, "num_stalled_samples": 70, "stalled_waitcnt": 70}
    builder.add(0, "k", FrameKind.KERNEL, metrics={**metrics, "stalled_selected": 0})
    profile = builder.build()

    names = ["issued/samples", "stalled/samples", "stalled_waitcnt/samples"]

    assert [metric.to_list()[0] for metric in derive(profile, names)] == [0.3, 0.7, 0.7]
    assert "not_issued/samples" not in available_metrics(profile).derivable


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("CUDA", {"issued": 0.0, "stalled": 0.25, "not_issued": 0.75}), ("HIP", {"issued": 3 / 7})],
)
def test_the_gpu_decides_what_samples_mean_where_none_was_selected(
    kind: str, expected: dict[str, float]
) -> None:
    builder = ProfileBuilder()
    metrics = {**samples({"wait": 4}, 3), "time (ns)": 5}
    builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=replace(GPU, kind=kind))
    profile = builder.build()

    found = {part: derive(profile, [f"{part}/samples"])[0].to_list()[0] for part in expected}

    assert found == pytest.approx(expected)


def test_rows_without_samples_have_no_ratio() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics=samples({}), device=GPU)

    ratios = derive(builder.build(), ["issued/samples", "not_issued/samples", "num_samples/%"])

    assert [ratio.to_list() for ratio in ratios] == [[None, None]] * 3


def test_parts_of_a_row_hold_those_of_its_lines() -> None:
    profile = sampled_profile()
    (idle,) = derive(profile, ["not_issued/samples"])

    by_name = {profile.name(row): value for row, value in enumerate(idle.to_list())}

    # Its own 10 of 40, and 300 of 700, 100 of 200 and none of 50 on its lines.
    assert by_name["softmax_kernel"] == pytest.approx(410 / 990)
    assert by_name["/src/softmax.py:14@softmax_kernel"] == pytest.approx(100 / 200)
    assert "issued nothing" in idle.meaning


def test_inclusive_samples_of_a_kernel_are_its_own_and_those_of_its_lines() -> None:
    profile = sampled_profile()
    kernel = next(row for row in range(len(profile)) if profile.name(row) == "softmax_kernel")

    for metric in ("num_samples", "stalled_wait", "num_stalled_samples"):
        own = profile.column(metric).values
        lines = sum(int(own[row]) for row in profile.children(kernel))
        assert profile.inclusive(metric)[kernel] == own[kernel] + lines


def test_unknown_reason_is_named_with_the_known_ones(sampled: Profile) -> None:
    with pytest.raises(MetricError, match="stalled_barrier/samples"):
        derive(sampled, ["stalled_nothing/samples"])


def test_file_without_samples_says_so() -> None:
    with pytest.raises(MetricError, match="PC samples"):
        derive(training_profile(), ["stalled_wait/samples"])
