"""Peak rates of the devices of a profile, and how long its work takes at them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.metrics.formula import FLOPS_WIDTHS, find_metric
from proton_bench.analysis.metrics.values import own_numbers
from proton_bench.errors import MetricError, UsageError
from proton_bench.model.arrays import Floats, Mask
from proton_bench.model.device import Device
from proton_bench.model.profile import Profile
from proton_bench.plugin.others import offered_by_others
from proton_bench.specs import max_bps, max_flops

_HZ_PER_KHZ = 1e3
_KHZ_PER_GHZ = 1e6
# Counts over all multiprocessors are at least this many times those of one.
_IS_SUMMED = 1.5
_BITS_PER_BYTE = 8
_GFX_FAMILY = 6  # files of upstream hold six characters: gfx110 stands for gfx1100 to gfx1103


@dataclass(frozen=True, slots=True)
class ArchitectureRates:
    """Rates of one unit (multiprocessor, compute unit, or work-group processor) per clock.

    Attributes:
        operations: Operations per unit and clock by width of the operands in bits.
        transfers: Transfers per reported memory clock and pin; 0 if that clock is not usable.
        bytes_per_second: Memory bandwidth if device facts do not give it.
    """

    operations: Mapping[int, float]
    transfers: int = 2
    bytes_per_second: float = 0.0


def _rates(w8: float, w16: float, w32: float, w64: float) -> Mapping[int, float]:  # noqa: PLR0917 - a row of the table
    return {8: w8, 16: w16, 32: w32, 64: w64}


# With the source of each, its figures and board. OpenXLA names NVIDIA's white papers on A100 and
# H100 and the Blackwell technical brief for its table.
_CUDA = {
    # gist.github.com/hewumars/3631ad794aa19fa4ad3d7f5589912c5b: T4 130 TOPS INT8, 65 TFLOPS FP16;
    # huggingface.co/RajBhope/gpu-runtime-predictor gpu_catalog.json: 8.1 TFLOPS FP32, 40 SMs, 1.59
    # GHz; github.com/InJuly7/High-performance-operators: FP64 1/32 of FP32
    "75": ArchitectureRates(_rates(2048, 1024, 128, 4)),
    # github.com/openxla/xla xla/stream_executor/cuda/cuda_core_info_table.cc: per clock;
    # github.com/pytorch/pytorch torch/_inductor/analysis/device_info.py: A100 624 TOPS INT8, 312
    # TFLOPS FP16, 156 TF32, 19.5 FP64 (108 SMs, 1.41 GHz)
    "80": ArchitectureRates(_rates(4096, 2048, 1024, 128)),
    # github.com/citsjtu2020/LLM-Prof hardware_spec.md: A10 250 TOPS INT8, 125 TFLOPS FP16. GeForce
    # halves FP16 with FP32 accumulation
    # Unchecked: the 72 SMs and 1.695 GHz of that board, TF32, FP64
    "86": ArchitectureRates(_rates(2048, 1024, 512, 4)),
    # mzph.cn/web/30785.shtml on the Jetson AGX Orin technical brief: 170 sparse INT8 TOPS and 5.3
    # TFLOPS FP32 of 16 SMs, which makes 1.3 GHz
    # Unchecked: FP16 and TF32 (ratios of A100), FP64, bandwidth
    "87": ArchitectureRates(_rates(4096, 2048, 1024, 4), bytes_per_second=204.8e9),
    # www.mullet.se/product.html?product_id=355414: L40S 733 TFLOPS FP8, 362 FP16, 183 TF32 (142
    # SMs); www.itcreations.com/nvidia-gpu/nvidia-l40s-gpu-accelerator: 2.52 GHz, FP64 1/64 of
    # FP32. GeForce halves FP8 and FP16 with FP32 accumulation
    "89": ArchitectureRates(_rates(2048, 1024, 512, 4)),
    # github.com/openxla/xla xla/stream_executor/cuda/cuda_core_info_table.cc: per clock; tensor
    # cores of H100 at 1.83 GHz, FP64 at 1.98 GHz, 132 SMs
    "90": ArchitectureRates(_rates(8192, 4096, 2048, 256)),
    # github.com/openxla/xla xla/stream_executor/cuda/cuda_core_info_table.cc: per clock;
    # hmc-tech.com/gpu/nvidia-b200-vs-nvidia-gb200: B200 dense 4.5 PFLOPS FP8, 2.25 FP16, 1.13
    # TF32, 37.5 TFLOPS FP64 (148 SMs, 1.86 to 1.98 GHz)
    "100": ArchitectureRates(_rates(16384, 8192, 4096, 128)),
    # torring.dev/blog/2026/rtx-spark-throttling: Jetson Thor 65536 sparse FP4 operations per SM
    # and clock; forums.developer.nvidia.com/t/356355: 20 SMs
    # Unchecked: that 10.1 is the older name of 11.0, FP16 and TF32 (ratios of B200), FP64,
    # bandwidth
    "101": ArchitectureRates(_rates(16384, 8192, 4096, 4), bytes_per_second=273e9),
    # glennklockwood.com/garden/processors/B300: HGX B300 dense 4.5 PFLOPS FP8, 2.25 FP16, 1.125
    # TF32, 1.25 TFLOPS FP64. Others give 7 PFLOPS FP8:
    # itkb.uw.cz/2026/06/nvidia-h200-vs-b300-precisions-cores.html
    # Unchecked: 148 SMs, at which these are the operations per clock
    "103": ArchitectureRates(_rates(16384, 8192, 4096, 4)),
    # torring.dev/blog/2026/rtx-spark-throttling: Jetson Thor 65536 sparse FP4 operations per SM
    # and clock; forums.developer.nvidia.com/t/356355: 20 SMs; developer.nvidia.com/cuda-gpus:
    # T5000 is 11.0
    # Unchecked: FP16 and TF32 (ratios of B200), FP64, bandwidth
    "110": ArchitectureRates(_rates(16384, 8192, 4096, 4), bytes_per_second=273e9),
    # hmc-tech.com/gpu/nvidia-rtx-pro-6000-blackwell-vs-amd-radeon-pro-duo-polaris: dense 1.01
    # PFLOPS FP8, 503.8 TFLOPS FP16, 251.9 TF32, 1.97 FP64 (188 SMs, 2.617 GHz). GeForce halves FP8
    # and FP16 with FP32 accumulation
    "120": ArchitectureRates(_rates(2048, 1024, 512, 4)),
    # torring.dev/blog/2026/rtx-spark-throttling: 1 PFLOPS sparse FP4 of 48 SMs;
    # huggingface.co/blog/exolabs/the-dgx-spark-handbook: 273 GB/s; developer.nvidia.com/cuda-gpus:
    # GB10 is 12.1
    # Unchecked: the clock (about 2.5 GHz), FP16, TF32 and FP64 (ratios of 12.0)
    "121": ArchitectureRates(_rates(2048, 1024, 512, 4), bytes_per_second=273e9),
}
# HIP counts work-group processors of two compute units where the architecture has them (gfx11 and
# later: github.com/ROCm/hip/issues/3767), so those rates are twice what is said of a compute unit.
_HIP = {
    # github.com/pytorch/pytorch torch/_inductor/analysis/device_info.py: MI210 181 TFLOPS FP16 and
    # TOPS INT8, 45.3 FP32 and FP64, 1.6 TB/s: one die, as a device of MI250X is;
    # triton.profiler.specs: 1024 of 8 bits per CU and clock
    # Unchecked: the 104 CUs and 1.7 GHz of that board
    "gfx90a": ArchitectureRates(
        _rates(1024, 1024, 256, 256), transfers=0, bytes_per_second=1.6384e12
    ),
    # github.com/pytorch/pytorch torch/_inductor/analysis/device_info.py: MI300X 2615 TFLOPS FP8,
    # 1307 FP16, 654 TF32, 163 FP64, 5.3 TB/s (2.1 GHz);
    # rocm.docs.amd.com/en/7.13.0-preview/reference/gpu-specs.html: 304 CUs
    "gfx942": ArchitectureRates(
        _rates(4096, 2048, 1024, 256), transfers=0, bytes_per_second=5.3e12
    ),
    # github.com/pytorch/pytorch torch/_inductor/analysis/device_info.py: MI350X 4614 TFLOPS FP8,
    # 2310 FP16, 144 FP32, 72 FP64, 8 TB/s;
    # rocm.docs.amd.com/en/7.13.0-preview/reference/gpu-specs.html: 256 CUs. No TF32.
    # github.com/ROCm/rocprofiler-compute analysis_configs/gfx950: 4096 of FP16 and 256 of FP32 per
    # CU and clock; it gives FP64 twice as fast
    # Unchecked: the 2.2 GHz of that board
    "gfx950": ArchitectureRates(_rates(8192, 4096, 256, 128), transfers=0, bytes_per_second=8.0e12),
    # gpuopen.com/learn/using_matrix_core_amd_rdna4: RX 7900 XTX 512 of FP16 and of INT8 per CU and
    # clock; hmc-tech.com/gpu/amd-radeon-rx-9070-xt-vs-amd-radeon-rx-7900-xtx: 61.4 TFLOPS FP32 (96
    # CUs, 2.5 GHz); github.com/Avarok-Cybersecurity/atlas/issues/1067: FP64 1/32 of FP32, 960 GB/s
    # of 384 bits
    # Unchecked: the unit of the reported memory clock
    "gfx110": ArchitectureRates(_rates(1024, 1024, 512, 16), transfers=16),
    # gpuopen.com/learn/using_matrix_core_amd_rdna4: RDNA 3
    # Unchecked: that it is as fast per clock as gfx1100, bandwidth (LPDDR5X-7500, 128 bits)
    "gfx1103": ArchitectureRates(_rates(1024, 1024, 512, 16), transfers=0, bytes_per_second=120e9),
    # fpsbench.com/compare/gpu/amd-radeon-8060s-vs-amd-radeon-r9-m295x: FP64 1/32 of FP32
    # Unchecked: that it is as fast per clock as gfx1100, bandwidth (LPDDR5X-7500, 128 bits)
    "gfx115": ArchitectureRates(_rates(1024, 1024, 512, 16), transfers=0, bytes_per_second=120e9),
    # www.svethardware.cz/amd-predstavuje-ryzen-ai-max-strix-halo-s-az-16-jadry-a-gpu-se-40-cu/
    # 61477: LPDDR5X-8000, 256 GB/s, 40 CUs, 2.9 GHz
    # Unchecked: that it is as fast per clock as gfx1100
    "gfx1151": ArchitectureRates(_rates(1024, 1024, 512, 16), transfers=0, bytes_per_second=256e9),
    # gpuopen.com/learn/using_matrix_core_amd_rdna4: RX 9070 XT 1024 of FP16 and 2048 of INT8 per
    # CU and clock; hmc-tech.com/gpu/amd-radeon-rx-9070-xt-vs-amd-radeon-rx-7900-xtx: 48.7 TFLOPS
    # FP32 (64 CUs, 2.97 GHz); pocketmags.com/it/linux-format-magazine/june-2025: 256 bits of 20
    # Gbit/s
    # Unchecked: FP64 (1/64 of FP32), the unit of the reported memory clock
    "gfx120": ArchitectureRates(_rates(4096, 2048, 512, 8), transfers=16),
}
ARCHITECTURES: Mapping[str, Mapping[str, ArchitectureRates]] = {"CUDA": _CUDA, "HIP": _HIP}

# Multiply-adds per multiprocessor and clock that FP32 and FP64 pipes do without tensor cores: the
# table of arithmetic throughput in NVIDIA's CUDA C++ Programming Guide. Kernels of known work
# confirm those of 9.0; the others are unchecked.
_MULTIPLY_ADDS = {
    "75": (64, 2),
    "80": (64, 32),
    "86": (128, 2),
    "89": (128, 2),
    "90": (128, 64),
    "100": (128, 64),
    "120": (128, 2),
}


def architecture_rates(device: Device) -> ArchitectureRates | None:
    """Return the rates of a device's architecture, or None."""
    table = ARCHITECTURES.get(device.kind, {})
    return table.get(device.arch) or table.get(device.arch[:_GFX_FAMILY])


def peak_rates(device: Device) -> Mapping[str, float]:
    """Return the peak rates of a device: ``flops8`` to ``flops64`` and ``bytes``, in 1/s.

    They hold at the highest clocks that the file names. A rate that the device's facts do not give
    is left out; the result is empty for an unknown architecture.
    """
    found = architecture_rates(device)
    if found is None:
        return {}
    clocks = device.num_sms * device.clock_rate_khz * _HZ_PER_KHZ
    rates = {f"flops{width}": count * clocks for width, count in found.operations.items()}
    bits = found.transfers * device.bus_width_bits * device.memory_clock_rate_khz * _HZ_PER_KHZ
    rates["bytes"] = bits / _BITS_PER_BYTE or found.bytes_per_second
    return {name: rate for name, rate in rates.items() if rate > 0}


def pipe_rates(device: Device) -> Mapping[str, float]:
    """Return what the pipes beside tensor cores do at most: ``fp32`` and ``fp64``, in FLOP/s.

    They hold at the highest clock that the file names. The result is empty for an unknown device.
    """
    counts = _MULTIPLY_ADDS.get(device.arch, ()) if device.kind == "CUDA" else ()
    clocks = device.num_sms * device.clock_rate_khz * _HZ_PER_KHZ
    pairs = zip(("fp32", "fp64"), counts, strict=False)
    return {pipe: 2.0 * count * clocks for pipe, count in pairs if clocks > 0}


def clock_ratio(device: Device | None, cycles: float, time_ns: float) -> float:
    """Return the SM clock / highest clock, NaN if unknown.

    Args:
        device: Where the kernels ran.
        cycles: Elapsed cycles of one multiprocessor, or summed over all.
        time_ns: Time of them.
    """
    if device is None or device.clock_rate_khz <= 0 or not (cycles > 0 and time_ns > 0):
        return math.nan
    ratio = cycles / time_ns / (device.clock_rate_khz / _KHZ_PER_GHZ)
    if ratio > _IS_SUMMED and device.num_sms > 0:
        ratio /= device.num_sms
    return ratio


def known_architectures() -> str:
    """Return the names of all architectures with known rates, for a message."""
    return "; ".join(f"{kind} {', '.join(table)}" for kind, table in ARCHITECTURES.items())


WORK = ("bytes", *(f"flops{width}" for width in FLOPS_WIDTHS))


def offered_peaks(device: Device) -> Mapping[str, float]:
    """Return the peak rates of plugins for a device, if any."""
    offered = offered_by_others("proton_device_peaks")
    found: Mapping[str, float] = offered.get((device.kind, device.arch), {})
    return found


def device_peaks(device: Device) -> Mapping[str, float]:
    """Return the peak rates of a device: ``flops8`` to ``flops64`` and ``bytes``, in 1/s.

    Plugins come first, then upstream's rates, so that ``util`` equals upstream's; the rates of the
    roofline are for architectures that upstream lacks. The result is empty for an unknown device.
    """
    offered = offered_peaks(device)
    if offered:
        return offered
    units, clock = device.num_sms, device.clock_rate_khz
    try:
        peaks = {
            f"flops{width}": max_flops(device.kind, device.arch, width, units, clock)
            for width in FLOPS_WIDTHS
        }
        memory_clock = device.memory_clock_rate_khz
        peaks["bytes"] = max_bps(device.kind, device.arch, device.bus_width_bits, memory_clock)
    except UsageError:
        return peak_rates(device)
    return {name: rate for name, rate in peaks.items() if rate > 0}


def least_seconds(profile: Profile) -> tuple[Floats, Mask]:
    """Return the least time of each row's own work, and which rows ran on a known device.

    That is the larger of the sum of flops<width> / peak of the width, and of bytes / bandwidth.

    Raises:
        MetricError: The peak rates of no device are known, or neither operations nor bytes.
    """
    peaks = [device_peaks(device) for device in profile.devices]
    if not any(peaks):
        devices = ", ".join(f"{d.kind} {d.arch}".strip() for d in profile.devices) or "no device"
        raise MetricError(f"metric 'util' needs peak rates, which are not known for: {devices}")
    if all(find_metric(name, profile.columns) is None for name in WORK):
        raise no_work("metric 'util'")
    flops = sum(
        (_seconds_of(profile, f"flops{width}", peaks) for width in FLOPS_WIDTHS),
        start=np.zeros(len(profile)),
    )
    moved = _seconds_of(profile, "bytes", peaks)
    known = np.array([*map(bool, peaks), False])[profile.device_rows]
    return np.maximum(flops, moved), known


def no_work(what: str) -> MetricError:
    """Return the error to raise for what needs `WORK` of a profile that has none."""
    return MetricError(
        f"{what} needs operations or bytes of kernels, and none of {', '.join(WORK)} was recorded: "
        "give them as metrics of scopes or by launch_metadata with -k triton"
    )


def _seconds_of(profile: Profile, name: str, peaks: Sequence[Mapping[str, float]]) -> Floats:
    """Return the time of each row's own amount at the peak rate; 0 if it has none."""
    # The last entry answers for rows without a device, whose position is -1.
    seconds_per_one = np.array([*(1.0 / p[name] if name in p else 0.0 for p in peaks), 0.0])
    result: Floats = own_numbers(profile, name) * seconds_per_one[profile.device_rows]
    return result
