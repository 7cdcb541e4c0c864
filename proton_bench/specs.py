"""Peak rates of devices, from vendors' data sheets, under upstream's function names.

Sparsity is not counted. A script may add architectures to a table. Rates
of other devices come from plugins (hook ``proton_device_peaks``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from proton_bench.errors import UsageError

__all__ = ["amd_bps_by_arch", "amd_fp8_flops_by_arch", "flops_by_device", "max_bps", "max_flops"]

_HZ_PER_KHZ = 1e3
_BITS_PER_BYTE = 8
_Entry = TypeVar("_Entry")


def _fixed(flops8: float) -> Callable[..., float]:
    """Return the rate of boards with one clock: 8-bit operations per second."""

    def rate(width: int, **device: float) -> float:
        del device
        return flops8 / (width / _BITS_PER_BYTE)

    return rate


def _per_clock(flops8: float) -> Callable[..., float]:
    """Return a rate from 8-bit operations per unit and clock."""

    def rate(width: int, num_sms: int, clock_rate: float, **device: float) -> float:
        del device
        return flops8 * num_sms * clock_rate * _HZ_PER_KHZ / (width / _BITS_PER_BYTE)

    return rate


# Peak rate in 1/s by kind and architecture, as a function of width, num_sms and clock_rate (kHz).
# 1513e12 per second is what 114 multiprocessors at 1755 MHz (H100 PCIe) do.
flops_by_device: dict[str, dict[str, Callable[..., float]]] = {
    "CUDA": {
        "80": _fixed(624e12),
        "89": _fixed(330.3e12),
        "90": _per_clock(1513e12 / 114 / 1755e6),
        "100": _per_clock(16384),
    }
}
# 8-bit operations per unit and clock. gfx90a has no 8-bit floats; its rate of 8-bit integers stands
# for them.
amd_fp8_flops_by_arch: dict[str, int] = {"gfx90a": 1024, "gfx942": 4096, "gfx950": 8192}
# Bytes per second.
amd_bps_by_arch: dict[str, float] = {"gfx90a": 3.2e12, "gfx942": 5.3e12, "gfx950": 8.0e12}


def max_flops(device_type: str, arch: str, width: int, num_sms: int, clock_rate: float) -> float:  # noqa: PLR0917 - upstream's signature
    """Return the peak rate of floating-point operations in 1/s.

    Args:
        device_type: "CUDA" or "HIP".
        arch: "90" for compute capability 9.0, or "gfx942".
        width: Width of the operands in bits.
        num_sms: Multiprocessors or compute units.
        clock_rate: Core clock in kHz, as profiles hold it.

    Raises:
        UsageError: The rate of such a device is not known (a `ValueError`).
    """
    if device_type == "HIP":
        rate = _per_clock(_known(amd_fp8_flops_by_arch, arch, "architecture"))
    else:
        if device_type not in flops_by_device:
            raise _unknown("device type", device_type, (*flops_by_device, "HIP"))
        rate = _known(flops_by_device[device_type], arch, "architecture")
    return rate(width, num_sms=num_sms, clock_rate=clock_rate)


def max_bps(device_type: str, arch: str, bus_width: int, memory_clock_rate: float) -> float:  # noqa: PLR0917 - upstream's signature
    """Return the peak memory bandwidth in bytes per second.

    Args:
        device_type: "CUDA" or "HIP".
        arch: "90" for compute capability 9.0, or "gfx942".
        bus_width: Width of the memory bus in bits; CUDA only.
        memory_clock_rate: Memory clock in kHz; CUDA only, two transfers a clock.

    Raises:
        UsageError: The rate of such a device is not known (a `ValueError`).
    """
    if device_type == "CUDA":
        return 2 * bus_width * memory_clock_rate * _HZ_PER_KHZ / _BITS_PER_BYTE
    if device_type == "HIP":
        return _known(amd_bps_by_arch, arch, "architecture")
    raise _unknown("device type", device_type, ("CUDA", "HIP"))


def _known(table: Mapping[str, _Entry], key: str, what: str) -> _Entry:
    try:
        return table[key]
    except KeyError:
        raise _unknown(what, key, table) from None


def _unknown(what: str, key: str, known: Iterable[str]) -> UsageError:
    return UsageError(f"Unsupported {what}: {key}; known are {', '.join(known)}")
