"""A program that runs one kernel per unit of the GPU and measures how busy it made the unit.

The measurement is GPM's: a share of the unit's peak at the clock that it had, so a GPU at its power
limit does not lower it. Bytes and operations over time would, and need rates of the architecture.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from proton_bench.recording.counters.gpm import GpmReadings
from proton_bench.recording.gpu.nvidia import gpu_facts
from proton_bench.recording.native import native

__all__ = ["MARK", "main", "measure"]

MARK = "proton-ceilings: "
_WARM_UP_S = 0.2
_WINDOW_S = 0.15
_WINDOWS = 5
_MOST_BYTES = 1 << 30
_MATRIX = 8192
_NO_METRIC = "GPM has no metric of it, so the peak stands for it"

_Kernel = Callable[[], Any]


def main() -> None:
    """Print one line: the ceilings by unit, and why others were not measured."""
    sys.stdout.write(MARK + json.dumps(_answer()) + "\n")


def _answer() -> dict[str, Any]:
    try:
        import torch
    except ImportError:
        return {"error": "the kernels need torch, which is not installed"}
    if not torch.cuda.is_available():
        return {"error": "torch finds no NVIDIA GPU"}
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    uuid = native.cuda_uuid(0)
    facts = next((gpu for gpu in gpu_facts() if gpu.get("uuid") == uuid), None)
    if facts is None:
        return {"error": "NVML does not know the GPU that torch uses"}
    readings = GpmReadings(lambda: [0])
    ceilings: dict[str, float] = {}
    missing = dict.fromkeys(("issue", "l1", "l2", "shared"), _NO_METRIC)
    for unit, key, make in _units():
        try:
            kernel = make(torch)
            ceilings[unit] = measure(
                readings, key, kernel=kernel, synchronize=torch.cuda.synchronize
            )
        except LookupError:
            missing[unit] = next(iter(readings.refusals.values()), "GPM gave no value")
        except Exception as error:  # noqa: BLE001 - a kernel that does not run here
            missing[unit] = f"{type(error).__name__}: {str(error)[:200]}"
    readings.close()
    return {
        "gpu": facts["name"],
        "driver": facts["driver"],
        "ceilings": ceilings,
        "missing": missing,
    }


def measure(
    readings: GpmReadings, key: str, *, kernel: _Kernel, synchronize: Callable[[], None]
) -> float:
    """Return how busy a kernel in a loop makes a unit, as a fraction of the unit's peak.

    Args:
        readings: Windows of one device.
        key: Key of the unit's value in a window.
        kernel: Launches work of about a millisecond.
        synchronize: Waits for it.

    Raises:
        LookupError: The device has no such value.
    """
    _keep_busy(kernel, synchronize, _WARM_UP_S)
    list(readings.read())  # a window begins, with the kernel already running
    found = []
    for _ in range(_WINDOWS):
        _keep_busy(kernel, synchronize, _WINDOW_S)
        found += [window.values[key] for window in readings.read() if key in window.values]
    if not found:
        raise LookupError(key)
    return statistics.median(found) / 100.0


def _keep_busy(kernel: _Kernel, synchronize: Callable[[], None], seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        for _ in range(8):
            kernel()
        synchronize()


def _units() -> Iterator[tuple[str, str, Callable[[Any], _Kernel]]]:
    """Yield a unit, the key of its value, and what makes its kernel from torch."""
    yield "dram", "dram_pct", _copy
    yield "tensor", "tensor_pct", _product
    yield "fp32", "fp32_pct", lambda torch: _chains(torch, torch.float32)
    yield "fp64", "fp64_pct", lambda torch: _chains(torch, torch.float64)


def _copy(torch: Any) -> _Kernel:
    free, _ = torch.cuda.mem_get_info()
    size = min(_MOST_BYTES, free // 4)
    source = torch.zeros(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _product(torch: Any) -> _Kernel:
    shape = (_MATRIX, _MATRIX)
    left = torch.randn(shape, device="cuda", dtype=torch.float16)
    right = torch.randn(shape, device="cuda", dtype=torch.float16)
    product = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=product)


def _chains(torch: Any, dtype: Any) -> _Kernel:
    """Chains of FMAs in registers, eight and more independent ones per thread."""
    from proton_bench.diagnosis.calibration_kernels import fma_chains

    blocks = 16 * torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.zeros(blocks * 1024, dtype=dtype, device="cuda")
    rounds = 512 if dtype == torch.float64 else 2048
    return lambda: fma_chains[(blocks,)](out, 1.0001, rounds, num_warps=4)


if __name__ == "__main__":
    main()
