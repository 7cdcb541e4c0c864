"""Peak rates of architectures, each with its source: operations per clock, and bandwidth.

Operations are floating-point ones (a fused multiply-add is two), dense, on tensor or matrix units
where the architecture has them for that width; of 8 bits the faster of floats and integers. Each
rate was checked against the vendor's figure for one board at its clock, which stands in ``source``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.profile import Device

__all__ = ["ARCHITECTURES", "ArchitectureRates", "known_architectures", "peak_rates"]

_HZ_PER_KHZ = 1e3
_BITS_PER_BYTE = 8
_GFX_FAMILY = 6  # files of upstream hold six characters: gfx110 stands for gfx1100 to gfx1103


@dataclass(frozen=True, slots=True)
class ArchitectureRates:
    """What one unit (multiprocessor, compute unit, or work-group processor) does in one clock.

    Attributes:
        operations: Operations per unit and clock by width of the operands in bits.
        source: Where the rates come from, with the board that they were checked on.
        transfers: Transfers per reported memory clock and pin; 0 where that clock says nothing.
        bytes_per_second: Memory bandwidth where device facts do not give it.
    """

    operations: Mapping[int, float]
    source: str
    transfers: int = 2
    bytes_per_second: float = 0.0


def _rates(w8: float, w16: float, w32: float, w64: float) -> Mapping[int, float]:  # noqa: PLR0917 - a row of the table
    return {8: w8, 16: w16, 32: w32, 64: w64}


_CUDA = {
    "75": ArchitectureRates(
        _rates(2048, 1024, 128, 4),
        "NVIDIA T4 datasheet: 130 TOPS INT8, 65 TFLOPS FP16, 8.1 FP32 (40 SMs, 1.59 GHz); "
        "Turing whitepaper: FP64 at 1/32 of FP32",
    ),
    "80": ArchitectureRates(
        _rates(4096, 2048, 1024, 128),
        "NVIDIA A100 datasheet: 624 TOPS INT8, 312 TFLOPS FP16, 156 TF32, 19.5 FP64 tensor "
        "(108 SMs, 1.41 GHz)",
    ),
    "86": ArchitectureRates(
        _rates(2048, 1024, 512, 4),
        "NVIDIA A10 datasheet: 250 TOPS INT8, 125 TFLOPS FP16, 62.5 TF32 (72 SMs, 1.695 GHz); "
        "GA102 whitepaper: FP64 at 1/64 of FP32, GeForce halves FP16 with FP32 accumulation",
    ),
    "87": ArchitectureRates(
        _rates(4096, 2048, 1024, 4),
        "Jetson AGX Orin technical brief: 170 sparse INT8 TOPS of the GPU, 204.8 GB/s (16 SMs, "
        "1.3 GHz); wider operands at the ratios of A100",
        bytes_per_second=204.8e9,
    ),
    "89": ArchitectureRates(
        _rates(2048, 1024, 512, 4),
        "NVIDIA L40S datasheet: 733 TFLOPS FP8, 362 FP16, 183 TF32 (142 SMs, 2.52 GHz); Ada "
        "whitepaper: FP64 at 1/64 of FP32, GeForce halves FP8 and FP16 with FP32 accumulation",
    ),
    "90": ArchitectureRates(
        _rates(8192, 4096, 2048, 256),
        "NVIDIA H100 SXM datasheet without sparsity: 1979 TFLOPS FP8, 989 FP16, 495 TF32 (132 SMs, "
        "1.83 GHz), 67 FP64 tensor (1.98 GHz)",
    ),
    "100": ArchitectureRates(
        _rates(16384, 8192, 4096, 128),
        "NVIDIA HGX B200 datasheet per GPU, dense: 4.5 PFLOPS FP8, 2.25 FP16, 1.1 TF32, 37 TFLOPS "
        "FP64 (148 SMs, 1.85 to 1.965 GHz)",
    ),
    "101": ArchitectureRates(
        _rates(16384, 8192, 4096, 4),
        "Jetson T5000 datasheet: 2070 sparse FP4 TFLOPS, 273 GB/s (20 SMs, 1.575 GHz); 10.1 is the "
        "name of 11.0 before CUDA 13; wider operands at the ratios of B200",
        bytes_per_second=273e9,
    ),
    "103": ArchitectureRates(
        _rates(16384, 8192, 4096, 4),
        "NVIDIA HGX B300 datasheet per GPU, dense: 4.5 PFLOPS FP8, 2.25 FP16, 1.1 TF32, 1.25 "
        "TFLOPS FP64 (148 SMs)",
    ),
    "110": ArchitectureRates(
        _rates(16384, 8192, 4096, 4),
        "Jetson T5000 datasheet: 2070 sparse FP4 TFLOPS, 273 GB/s (20 SMs, 1.575 GHz); wider "
        "operands at the ratios of B200",
        bytes_per_second=273e9,
    ),
    "120": ArchitectureRates(
        _rates(2048, 1024, 512, 4),
        "RTX Blackwell PRO whitepaper, RTX PRO 6000, dense: 1007 TFLOPS FP8, 504 FP16, 252 TF32, "
        "1.97 FP64 (188 SMs, 2.617 GHz); GeForce halves FP8 and FP16 with FP32 accumulation",
    ),
    "121": ArchitectureRates(
        _rates(2048, 1024, 512, 4),
        "DGX Spark user guide: 1 PFLOP sparse FP4, 273 GB/s (48 SMs, about 2.5 GHz); wider "
        "operands at the ratios of compute capability 12.0",
        bytes_per_second=273e9,
    ),
}
# HIP counts work-group processors of two compute units where the architecture has them (gfx11 and
# later), so those rates are twice what data sheets say of a compute unit.
_HIP = {
    "gfx90a": ArchitectureRates(
        _rates(1024, 1024, 256, 256),
        "AMD Instinct MI250X data sheet: 383 TFLOPS FP16 matrix and TOPS INT8, 95.7 FP32 and FP64 "
        "matrix, 3.2 TB/s (220 CUs in two dies, 1.7 GHz); a device is one die",
        transfers=0,
        bytes_per_second=1.6384e12,
    ),
    "gfx942": ArchitectureRates(
        _rates(4096, 2048, 1024, 256),
        "AMD Instinct MI300X data sheet: 2615 TFLOPS FP8, 1307 FP16, 654 TF32, 163 FP64 matrix, "
        "5.3 TB/s (304 CUs, 2.1 GHz)",
        transfers=0,
        bytes_per_second=5.3e12,
    ),
    "gfx950": ArchitectureRates(
        _rates(8192, 4096, 256, 128),
        "AMD Instinct MI355X data sheet: 5.0 PFLOPS FP8, 2.5 FP16, 157 TFLOPS FP32, 78.6 FP64, "
        "8 TB/s (256 CUs, 2.4 GHz); no TF32",
        transfers=0,
        bytes_per_second=8.0e12,
    ),
    "gfx110": ArchitectureRates(
        _rates(1024, 1024, 512, 16),
        "Radeon RX 7900 XTX specifications: 123 TFLOPS FP16, 61 FP32, 1.92 FP64, 20 Gbit/s GDDR6 "
        "(96 CUs, 2.5 GHz); AMD RDNA 3 ISA guide: WMMA of 8 bits as fast as of 16",
        transfers=16,
    ),
    "gfx1103": ArchitectureRates(
        _rates(1024, 1024, 512, 16),
        "as gfx1100, with LPDDR5X-7500 of 128 bits (AMD Ryzen 8040 specifications)",
        transfers=0,
        bytes_per_second=120e9,
    ),
    "gfx115": ArchitectureRates(
        _rates(1024, 1024, 512, 16),
        "as gfx1100, with LPDDR5X-7500 of 128 bits (AMD Ryzen AI 300 specifications)",
        transfers=0,
        bytes_per_second=120e9,
    ),
    "gfx1151": ArchitectureRates(
        _rates(1024, 1024, 512, 16),
        "as gfx1100, with LPDDR5X-8000 of 256 bits (AMD Ryzen AI Max specifications)",
        transfers=0,
        bytes_per_second=256e9,
    ),
    "gfx120": ArchitectureRates(
        _rates(4096, 2048, 512, 8),
        "Radeon RX 9070 XT specifications: 389 TFLOPS FP8 and 195 FP16 matrix, dense, 48.7 FP32, "
        "20 Gbit/s GDDR6 (64 CUs, 2.97 GHz)",
        transfers=16,
    ),
}
ARCHITECTURES: Mapping[str, Mapping[str, ArchitectureRates]] = {"CUDA": _CUDA, "HIP": _HIP}


def peak_rates(device: Device) -> Mapping[str, float]:
    """Return the peak rates of a device: ``flops8`` to ``flops64`` and ``bytes``, in 1/s.

    They hold at the highest clocks that the file names. A rate that the device's facts do not give
    is left out; nothing is returned for an architecture that is not known.
    """
    table = ARCHITECTURES.get(device.kind, {})
    found = table.get(device.arch) or table.get(device.arch[:_GFX_FAMILY])
    if found is None:
        return {}
    clocks = device.num_sms * device.clock_rate_khz * _HZ_PER_KHZ
    rates = {f"flops{width}": count * clocks for width, count in found.operations.items()}
    bits = found.transfers * device.bus_width_bits * device.memory_clock_rate_khz * _HZ_PER_KHZ
    rates["bytes"] = bits / _BITS_PER_BYTE or found.bytes_per_second
    return {name: rate for name, rate in rates.items() if rate > 0}


def known_architectures() -> str:
    """Return the names of all architectures with known rates, for a message."""
    return "; ".join(f"{kind} {', '.join(table)}" for kind, table in ARCHITECTURES.items())
