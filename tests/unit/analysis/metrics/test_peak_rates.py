from __future__ import annotations

import pytest

from proton_bench.analysis.metrics.peak import ARCHITECTURES, known_architectures, peak_rates
from proton_bench.model.device import Device

# Board, facts as drivers report them, and published rates: width -> TFLOPS, GB/s.
BOARDS = [
    ("T4", Device("CUDA", 0, "75", 40, 1_590_000, 5_001_000, 256), {8: 130, 16: 65, 32: 8.1}, 320),
    (
        "A100",
        Device("CUDA", 0, "80", 108, 1_410_000, 1_215_000, 5120),
        {8: 624, 16: 312, 32: 156, 64: 19.5},
        1555,
    ),
    (
        "A10",
        Device("CUDA", 0, "86", 72, 1_695_000, 6_251_000, 384),
        {8: 250, 16: 125, 32: 62.5},
        600,
    ),
    ("Orin", Device("CUDA", 0, "87", 16, 1_300_000), {8: 85}, 204.8),
    (
        "L40S",
        Device("CUDA", 0, "89", 142, 2_520_000, 9_001_000, 384),
        {8: 733, 16: 366, 32: 183},
        864,
    ),
    (
        "H100",
        Device("CUDA", 0, "90", 132, 1_830_000, 2_619_000, 5120),
        {8: 1979, 16: 989, 32: 495},
        3350,
    ),
    (
        "B200",
        Device("CUDA", 0, "100", 148, 1_850_000, 3_996_000, 8192),
        {8: 4500, 16: 2250, 32: 1100, 64: 35},
        8000,
    ),
    ("B300", Device("CUDA", 0, "103", 148, 1_850_000, 3_996_000, 8192), {8: 4500, 64: 1.1}, 8000),
    ("T5000", Device("CUDA", 0, "110", 20, 1_575_000), {8: 517}, 273),
    ("T5000 of CUDA 12", Device("CUDA", 0, "101", 20, 1_575_000), {8: 517}, 273),
    (
        "RTX PRO 6000",
        Device("CUDA", 0, "120", 188, 2_617_000, 14_001_000, 512),
        {8: 1007, 16: 504, 32: 252, 64: 1.97},
        1792,
    ),
    ("DGX Spark", Device("CUDA", 0, "121", 48, 2_540_000), {8: 250}, 273),
    ("MI250X", Device("HIP", 0, "gfx90a", 110, 1_700_000), {16: 191.5, 64: 47.9}, 1638),
    ("MI300X", Device("HIP", 0, "gfx942", 304, 2_100_000), {8: 2615, 16: 1307, 64: 163}, 5300),
    ("MI355X", Device("HIP", 0, "gfx950", 256, 2_400_000), {8: 5033, 16: 2516, 32: 157}, 8000),
    (
        "RX 7900 XTX",
        Device("HIP", 0, "gfx1100", 48, 2_500_000, 1_249_000, 384),
        {16: 123, 32: 61, 64: 1.92},
        960,
    ),
    ("Strix Halo", Device("HIP", 0, "gfx1151", 20, 2_900_000), {16: 59.4}, 256),
    (
        "RX 9070 XT",
        Device("HIP", 0, "gfx1201", 32, 2_970_000, 1_250_000, 256),
        {8: 389, 16: 195, 32: 48.7},
        640,
    ),
]


@pytest.mark.parametrize(
    ("device", "tflops", "gbytes"), [b[1:] for b in BOARDS], ids=[b[0] for b in BOARDS]
)
def test_rates_agree_with_what_is_said_of_boards(
    device: Device, tflops: dict[int, float], gbytes: float
) -> None:
    peaks = peak_rates(device)

    assert {w: peaks[f"flops{w}"] / 1e12 for w in tflops} == pytest.approx(tflops, rel=0.03)
    assert peaks["bytes"] / 1e9 == pytest.approx(gbytes, rel=0.025)


def test_name_cut_to_six_characters_is_its_family() -> None:
    facts = (48, 2_500_000, 1_249_000, 384)

    assert peak_rates(Device("HIP", 0, "gfx110", *facts)) == peak_rates(
        Device("HIP", 0, "gfx1102", *facts)
    )


@pytest.mark.parametrize("device", [Device("CPU", 0), Device("CUDA", 0, "70"), Device("HIP", 0)])
def test_unknown_architecture_has_no_rates(device: Device) -> None:
    assert peak_rates(device) == {}


def test_rates_without_device_facts_are_left_out() -> None:
    assert peak_rates(Device("CUDA", 0, "90")) == {}


def test_every_architecture_is_named() -> None:
    known = [arch for table in ARCHITECTURES.values() for arch in table]

    assert len(known) > 18
    assert [arch for arch in known if arch not in known_architectures()] == []
