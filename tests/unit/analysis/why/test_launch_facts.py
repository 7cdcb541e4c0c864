from __future__ import annotations

import math

import pytest
from fakes.counted import H200, Kernel, counted_profile

from proton_bench.analysis.why.launch_facts import launch_means, with_launch_facts
from proton_bench.model.device import Device, Variant


def means(*kernels: Kernel, row: int = 1) -> dict[str, float]:
    profile = with_launch_facts(counted_profile(*kernels))
    return {name: float(values[row]) for name, values in launch_means(profile).items()}


def launched(blocks: int, registers: int = 128, **more: object) -> Variant:
    return Variant(grid=(blocks, 1, 1), block=(256, 1, 1), registers=registers, **more)  # type: ignore[arg-type]


def test_grid_fills_a_part_of_the_multiprocessors() -> None:
    found = means(Kernel(path="k", variant=launched(33)))

    assert found["fill"] == pytest.approx(0.25)
    assert found["waves"] == pytest.approx(33 / (132 * 2))
    assert found["tail_loss"] == 0.0


@pytest.mark.parametrize(
    ("blocks", "loss"),
    [
        (132, 0.0),
        (264, 0.0),
        # 1.25 waves, but no multiprocessor has more than 3 blocks where the mean is 2.5.
        (330, 1 - 2.5 / 3),
        (133, 0.0),  # one wave
        (2640, 0.0),
    ],
)
def test_tail_is_what_the_last_wave_and_the_blocks_of_one_multiprocessor_lose(
    blocks: int, loss: float
) -> None:
    assert means(Kernel(path="k", variant=launched(blocks)))["tail_loss"] == pytest.approx(loss)


def test_means_are_weighted_by_time_and_survive_folding() -> None:
    kernels = [
        Kernel(path="layer/k", time_ns=3.0, variant=launched(33)),
        Kernel(path="layer/k", time_ns=1.0, variant=launched(132)),
    ]
    profile = with_launch_facts(counted_profile(*kernels)).fold_variants()

    assert launch_means(profile)["fill"][2] == pytest.approx((3 * 0.25 + 1) / 4)


@pytest.mark.parametrize(
    ("variant", "device", "unknown"),
    [
        (launched(33, registers=0), H200, {"waves", "tail_loss", "occupancy", "registers"}),
        (launched(33), Device("CUDA", 0, "99", 132), {"waves", "tail_loss", "occupancy"}),
        (launched(33), Device("CUDA", 0, "90"), {"units", "fill", "waves", "tail_loss"}),
        (launched(0), H200, {"blocks", "fill", "waves"}),
    ],
)
def test_what_is_not_known_is_nan(variant: Variant, device: Device, unknown: set[str]) -> None:
    found = means(Kernel(path="k", variant=variant, device=device))

    assert unknown <= {name for name, value in found.items() if math.isnan(value)}


def test_profile_without_launches_stays_as_it_is() -> None:
    profile = counted_profile(Kernel(path="k"))

    assert with_launch_facts(profile) is profile
    assert launch_means(profile) == {}


def test_facts_are_computed_once() -> None:
    profile = with_launch_facts(counted_profile(Kernel(path="k", variant=launched(33))))

    assert with_launch_facts(profile) is profile
