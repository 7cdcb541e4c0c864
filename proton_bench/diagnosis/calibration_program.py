"""A program that runs one kernel per unit of the GPU and measures how busy it made the unit.

The measurement is GPM's, and for units that GPM does not know that of sampled counters: a share of
the unit's peak at the clock that it had, so a GPU at its power limit does not lower it. Bytes and
operations over time would, and need rates of the architecture.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import proton_bench as proton
from proton_bench.analysis.kernels.gpu_facts import counter_facts
from proton_bench.formats.registry import read_profile
from proton_bench.model.metrics.counter_columns import COUNTED_TIME, busy_column
from proton_bench.model.profile import Profile
from proton_bench.recording.counters.gpm import GpmReadings
from proton_bench.recording.gpu.nvidia import gpu_facts
from proton_bench.recording.native import native

MARK = "proton-ceilings: "
_WARM_UP_S = 0.2
_WINDOW_S = 0.15
_WINDOWS = 5
_MOST_BYTES = 1 << 30
_MATRIX = 8192
_BLOCKS = 16  # per multiprocessor
_COUNTED = ("l2", "l1", "issue")
_SAMPLED_S = 2.0  # the first burst comes about a second after the start
_NO_METRIC = "nothing here measures it apart from l1, so the peak stands for it"

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
    missing = {"shared": _NO_METRIC}
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
    counted, why = {}, "no burst of samples had its kernel"
    try:
        counted = _counted(torch)
    except Exception as error:  # noqa: BLE001 - likewise
        why = f"{type(error).__name__}: {str(error)[:200]}"
    missing |= {unit: why for unit in _COUNTED if unit not in counted}
    ceilings |= counted
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


def _counted(torch: Any) -> dict[str, float]:
    """Return how busy sampled counters say that kernels made the units that GPM does not know.

    Raises:
        LookupError: The GPU does not let counters be read, with the reason.
    """
    kernels = {
        "l2": _reread(torch, size=4 << 20, step=1024, cache=".cg"),
        "l1": _reread(torch, size=1024, step=32, cache=".ca"),
        "issue": _chains(torch, torch.float32),
    }
    for kernel in kernels.values():
        kernel()
    torch.cuda.synchronize()
    with TemporaryDirectory() as folder:
        profile = _recorded(kernels, torch.cuda.synchronize, Path(folder, "counted"))
    if COUNTED_TIME not in profile.columns:
        facts = counter_facts(profile)
        raise LookupError(facts.error if facts is not None else "no counters were recorded")
    rows = {profile.name(row): row for row in profile.children(0)}
    time_ns = profile.inclusive(COUNTED_TIME)
    return {
        unit: float(profile.inclusive(busy_column(unit))[rows[unit]] / time_ns[rows[unit]])
        for unit in kernels
        if busy_column(unit) in profile.columns and time_ns[rows[unit]] > 0
    }


def _recorded(
    kernels: Mapping[str, _Kernel], synchronize: Callable[[], None], target: Path
) -> Profile:
    session = proton.start(str(target), backend="cupti", mode="counters")
    for unit, kernel in kernels.items():
        with proton.scope(unit):
            _keep_busy(kernel, synchronize, _SAMPLED_S)
    proton.finalize(session, output_format="proton")
    return read_profile(target.with_suffix(".proton"))


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
    from proton_bench.diagnosis.calibration_kernels import WIDTH, fma_chains

    blocks = _BLOCKS * torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.zeros(blocks * WIDTH.value, dtype=dtype, device="cuda")
    rounds = 512 if dtype == torch.float64 else 2048
    return lambda: fma_chains[(blocks,)](out, 1.0001, rounds, num_warps=4)


def _reread(torch: Any, *, size: int, step: int, cache: str) -> _Kernel:
    from proton_bench.diagnosis.calibration_kernels import WIDTH, reread

    blocks = _BLOCKS * torch.cuda.get_device_properties(0).multi_processor_count
    values = torch.zeros(size + 8 * step + WIDTH.value, device="cuda")
    out = torch.zeros(blocks, device="cuda")
    return lambda: reread[(blocks,)](values, out, 256, SIZE=size, STEP=step, CACHE=cache)


if __name__ == "__main__":
    main()
