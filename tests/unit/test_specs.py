from __future__ import annotations

import pytest

from proton_bench.errors import UsageError
from proton_bench.specs import max_bps, max_flops


@pytest.mark.parametrize(
    ("kind", "arch", "units", "clock_khz", "expected"),
    [
        ("CUDA", "80", 108, 1_410_000, 624e12),
        ("CUDA", "89", 128, 2_625_000, 330.3e12),
        ("CUDA", "90", 114, 1_755_000, 1513e12),
        ("CUDA", "90", 132, 1_980_000, 132 / 114 * 1980 / 1755 * 1513e12),
        ("CUDA", "100", 148, 1_965_000, 148 * 16384 * 1.965e9),
        ("HIP", "gfx90a", 104, 1_700_000, 104 * 1024 * 1.7e9),
        ("HIP", "gfx942", 304, 2_100_000, 304 * 4096 * 2.1e9),
        ("HIP", "gfx950", 256, 2_400_000, 256 * 8192 * 2.4e9),
    ],
)
def test_peak_rate_of_8_bit_operations(
    kind: str, arch: str, units: int, clock_khz: int, expected: float
) -> None:
    assert max_flops(kind, arch, 8, units, clock_khz) == pytest.approx(expected)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_wider_operands_are_slower_in_proportion(width: int) -> None:
    full = max_flops("CUDA", "90", 8, 132, 1_980_000)

    assert max_flops("CUDA", "90", width, 132, 1_980_000) == pytest.approx(full * 8 / width)


def test_parameters_have_upstreams_names() -> None:
    rate = max_flops(device_type="CUDA", arch="80", width=16, num_sms=108, clock_rate=1_410_000)
    bandwidth = max_bps(device_type="CUDA", arch="80", bus_width=5120, memory_clock_rate=1_215_000)

    assert rate == pytest.approx(312e12)
    assert bandwidth == pytest.approx(1.5552e12)


@pytest.mark.parametrize(
    ("arch", "expected"), [("gfx90a", 3.2e12), ("gfx942", 5.3e12), ("gfx950", 8.0e12)]
)
def test_bandwidth_of_hip_devices_comes_from_a_table(arch: str, expected: float) -> None:
    assert max_bps("HIP", arch, 4096, 1_600_000) == expected


def test_unknown_device_type_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="Unsupported device type: XPU; known are CUDA, HIP"):
        max_flops("XPU", "1", 8, 1, 1)
    with pytest.raises(ValueError, match="Unsupported device type: XPU"):
        max_bps("XPU", "1", 1, 1)


@pytest.mark.parametrize(("kind", "arch"), [("CUDA", "86"), ("HIP", "gfx1100")])
def test_unknown_architecture_is_named_with_the_known_ones(kind: str, arch: str) -> None:
    with pytest.raises(UsageError, match=rf"Unsupported architecture: {arch}; known are"):
        max_flops(kind, arch, 8, 1, 1)


def test_unknown_hip_architecture_has_no_bandwidth() -> None:
    with pytest.raises(UsageError, match="Unsupported architecture: gfx1100"):
        max_bps("HIP", "gfx1100", 1, 1)
