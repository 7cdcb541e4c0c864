"""Benchmarks of functions that run on a GPU: its clock, its cache, CUDA graphs."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from proton_bench import bench, profiled
from proton_bench.errors import UsageError
from proton_bench.pytest_plugin.benchmarks.in_test import BenchmarkCall, Surroundings
from proton_bench.pytest_plugin.benchmarks.marker import Asked
from proton_bench.rounds.measurement import Device, Plan

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]


def call_of(**plan: object) -> BenchmarkCall:
    where = Surroundings(around=lambda name: nullcontext(), measures=True, is_coroutine=False)
    return BenchmarkCall("test_x", Asked(plan=Plan(rounds=4, **plan)), where)  # type: ignore[arg-type]


@pytest.mark.parametrize("plan", [{}, {"flush_l2": False}, {"cudagraph": True}])
def test_work_of_a_gpu_is_timed_by_its_kernels(plan: dict[str, object]) -> None:
    matrix = torch.ones(512, 512, device="cuda")
    call = call_of(**plan)

    result = call(torch.mm, matrix, matrix)

    assert result[0, 0].item() == 512.0
    assert call.measurement is not None
    assert call.measurement.device is Device.CUDA
    assert call.measurement.calls == 1
    assert len(call.measurement.gpu_ns) == 4
    assert all(time > 0.0 for time in call.measurement.gpu_ns)
    assert call.measurement.kernels is not None


def test_what_is_closed_over_is_seen() -> None:
    out, matrix = (torch.ones(64, device="cuda") for _ in range(2))
    call = call_of()

    call(lambda: torch.add(matrix, 1.0, out=out))

    assert call.measurement is not None
    assert call.measurement.device is Device.CUDA


def test_a_function_of_the_cpu_is_timed_by_the_cpu() -> None:
    torch.ones(1, device="cuda")
    call = call_of()

    call(sum, [1])

    assert call.measurement is not None
    assert call.measurement.device is Device.CPU
    assert call.measurement.gpu_ns == ()


def test_what_waits_for_the_gpu_cannot_be_captured() -> None:
    matrix = torch.ones(4, device="cuda")

    with pytest.raises(UsageError, match="cannot be captured into a CUDA graph"):
        call_of(cudagraph=True)(lambda: (matrix + 1).sum().item())


@pytest.mark.parametrize("options", [{}, {"cache": "warm"}, {"graph": True}])
def test_every_kernel_of_a_call_is_measured_and_no_other(options: dict[str, object]) -> None:
    matrix = torch.ones(512, 512, device="cuda")

    result = bench(lambda: torch.relu(torch.mm(matrix, matrix)), rounds=9, **options)  # type: ignore[arg-type]

    assert (result.clock, result.rounds) == ("kernels", 9)
    counts = [each.count for each in result.kernels.values()]
    assert len(counts) >= 2
    assert all(count == round(count) for count in counts)
    assert all(time > 0.0 for time in result.times_ns)
    assert result.span is not None
    assert result.span.median_ns > 0.0


def test_copies_are_part_of_a_call() -> None:
    here, there = torch.ones(1 << 20, pin_memory=True), torch.ones(1 << 20, device="cuda")

    result = bench(there.copy_, here, rounds=5)

    assert result.clock == "kernels"
    assert sum(each.count for each in result.kernels.values()) == 1.0


def test_within_a_recording_both_have_the_kernels() -> None:
    matrix = torch.ones(512, 512, device="cuda")

    with profiled(shows=False) as outer:
        result = bench(torch.mm, matrix, matrix, name="b", rounds=5)

    assert result.clock == "kernels"
    assert outer.profile is not None
    assert {"b", "rounds", *result.kernels} <= set(outer.profile.strings)
