from __future__ import annotations

import math
from typing import Any

import pytest
from fakes.profiles import training_profile
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.analysis.metrics.occupancy import LIMITS, occupancy
from proton_bench.analysis.metrics.values import WIDEST
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.errors import MetricError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

H100 = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 6144)


def launch(threads: int, registers: int, shared: int = 0, *, blocks: int = 10**6) -> Variant:
    return Variant(
        grid=(blocks, 1, 1), block=(threads, 1, 1), registers=registers, shared_bytes=shared
    )


@pytest.mark.parametrize(
    ("arch", "variant", "expected"),
    [
        # Figures of NVIDIA's occupancy calculator.
        ("90", launch(128, 32), 1.0),
        ("90", launch(128, 168), 12 / 64),
        ("90", launch(256, 64), 0.5),
        ("90", launch(128, 32, 100 * 1024), 8 / 64),
        ("86", launch(1024, 32), 32 / 48),
        ("75", launch(64, 32), 1.0),
        ("75", launch(32, 32), 0.5),
        ("89", launch(128, 255), 8 / 48),
        ("90", launch(128, 32, blocks=132), 4 / 64),
        ("90", launch(128, 32, blocks=66), 2 / 64),
        ("90", launch(1, 0), 32 / 64),
    ],
)
def test_occupancy_of_launches(arch: str, variant: Variant, expected: float) -> None:
    assert occupancy(variant, Device("CUDA", 0, arch, 132)) == pytest.approx(expected)


# Compute capability, threads, registers, bytes of shared memory -> resident blocks, as NVIDIA's
# cuda_occupancy.h of CUDA 13.0 computes them.
RESIDENT = [
    ("75", 64, 16, 0, 16),
    ("75", 512, 72, 0, 1),
    ("75", 512, 16, 59149, 1),
    ("80", 96, 16, 0, 21),
    ("80", 384, 16, 0, 5),
    ("80", 256, 16, 69287, 2),
    ("86", 32, 16, 0, 16),
    ("86", 96, 16, 0, 16),
    ("86", 128, 16, 65481, 1),
    ("87", 64, 16, 0, 16),
    ("87", 384, 16, 0, 4),
    ("87", 384, 16, 69360, 2),
    ("89", 96, 16, 0, 16),
    ("89", 96, 96, 0, 6),
    ("89", 128, 16, 27865, 3),
    ("90", 32, 16, 0, 32),
    ("90", 64, 40, 0, 24),
    ("90", 384, 16, 165861, 1),
    ("100", 32, 16, 0, 32),
    ("100", 96, 16, 0, 21),
    ("100", 64, 16, 58907, 3),
    ("101", 32, 16, 0, 24),
    ("101", 96, 72, 0, 9),
    ("101", 128, 16, 56137, 4),
    ("103", 96, 16, 0, 21),
    ("103", 512, 40, 0, 3),
    ("103", 96, 16, 185047, 1),
    ("110", 64, 16, 0, 24),
    ("110", 128, 16, 0, 12),
    ("110", 128, 16, 112765, 2),
    ("120", 32, 16, 0, 24),
    ("120", 128, 16, 0, 12),
    ("120", 128, 16, 43499, 2),
    ("121", 96, 16, 0, 16),
    ("121", 64, 128, 0, 8),
    ("121", 512, 16, 96756, 1),
]


@pytest.mark.parametrize(("arch", "threads", "registers", "shared", "blocks"), RESIDENT)
def test_resident_blocks_are_those_of_nvidias_header(
    arch: str, threads: int, registers: int, shared: int, blocks: int
) -> None:
    found = occupancy(launch(threads, registers, shared), Device("CUDA", 0, arch, 100))

    assert found == pytest.approx(blocks * -(-threads // 32) / LIMITS[arch].warps)


@given(
    arch=st.sampled_from(sorted(LIMITS)),
    threads=st.integers(1, 1024),
    registers=st.integers(0, 255),
    shared=st.integers(0, 228 * 1024),
)
def test_occupancy_is_a_share_that_more_use_never_raises(
    arch: str, threads: int, registers: int, shared: int
) -> None:
    device = Device("CUDA", 0, arch, 100)
    found = occupancy(launch(threads, registers, shared), device)
    more = occupancy(launch(threads, max(registers + 8, 8), shared + 1024), device)

    assert found is not None
    assert more is not None
    assert 0.0 <= more <= found <= 1.0


def test_unknown_device_or_launch_has_no_occupancy() -> None:
    assert occupancy(launch(128, 32), Device("HIP", 0, "gfx942")) is None
    assert occupancy(Variant(block=(0, 1, 1)), H100) is None


def two_variants() -> Profile:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope", FrameKind.SCOPE)
    for variant, time in ((launch(128, 32), 300), (launch(256, 64), 100)):
        builder.add(
            scope, "k", FrameKind.KERNEL, metrics={"time (ns)": time}, device=H100, variant=variant
        )
    builder.add(scope, "host", FrameKind.OP, metrics={"time (ns)": 50})
    return builder.build()


def test_variants_and_scopes_show_the_mean_over_time() -> None:
    tree = build_tree(two_variants(), ["occupancy", "time"], Selection())

    assert [tree.name(row) for row in range(len(tree))] == ["ROOT", "scope", "k", "host"]
    assert tree.metrics[0].to_list() == [0.875, 0.875, 0.875, None]
    assert tree.metrics[1].to_list() == [450, 450, 400, 50]


def test_file_without_launches_says_so() -> None:
    with pytest.raises(MetricError, match=r"'occupancy' .*grid.*\.proton"):
        build_tree(training_profile(), ["occupancy"], Selection())


def test_unknown_limits_name_the_device_and_the_known_ones() -> None:
    builder = ProfileBuilder()
    builder.add(
        0, "k", metrics={"time (ns)": 1}, device=Device("HIP", 0, "gfx942"), variant=launch(64, 8)
    )

    with pytest.raises(MetricError, match=r"CUDA 75, 80, .*HIP gfx942"):
        build_tree(builder.build(), ["occupancy"], Selection())


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
