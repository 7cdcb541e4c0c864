"""Peak rates of devices, from vendors' data sheets, under upstream's function names.

A rate is either fixed (boards of one clock) or grows with units and clock. Sparsity is not
counted. Rates of other devices come from plugins (hook ``proton_device_peaks``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from proton_bench.errors import UsageError

__all__ = ["max_bps", "max_flops"]

_HZ_PER_KHZ = 1e3
_BITS_PER_BYTE = 8
_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True)
class _Throughput:
    """8-bit operations: ``fixed`` per second, or ``per_clock`` per unit and clock."""

    fixed: float = 0.0
    per_clock: float = 0.0

    def at(self, units: int, clock_khz: float) -> float:
        return self.fixed or self.per_clock * units * clock_khz * _HZ_PER_KHZ


# 1513e12 per second is what 114 multiprocessors at 1755 MHz (H100 PCIe) do.
_CUDA_FLOPS8: Mapping[str, _Throughput] = {
    "80": _Throughput(fixed=624e12),
    "89": _Throughput(fixed=330.3e12),
    "90": _Throughput(per_clock=1513e12 / 114 / 1755e6),
    "100": _Throughput(per_clock=16384),
}
# gfx90a has no 8-bit floats; its rate of 8-bit integers stands for them.
_HIP_FLOPS8: Mapping[str, _Throughput] = {
    "gfx90a": _Throughput(per_clock=1024),
    "gfx942": _Throughput(per_clock=4096),
    "gfx950": _Throughput(per_clock=8192),
}
_FLOPS8: Mapping[str, Mapping[str, _Throughput]] = {"CUDA": _CUDA_FLOPS8, "HIP": _HIP_FLOPS8}
_HIP_BYTES: Mapping[str, float] = {"gfx90a": 3.2e12, "gfx942": 5.3e12, "gfx950": 8.0e12}


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
    throughput = _known(_known(_FLOPS8, device_type, "device type"), arch, "architecture")
    return throughput.at(num_sms, clock_rate) / (width / 8)


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
        return _known(_HIP_BYTES, arch, "architecture")
    raise UsageError(f"Unsupported device type: {device_type}; known are CUDA, HIP")


def _known(table: Mapping[str, _Entry], key: str, what: str) -> _Entry:
    try:
        return table[key]
    except KeyError:
        known = ", ".join(table)
        raise UsageError(f"Unsupported {what}: {key}; known are {known}") from None
