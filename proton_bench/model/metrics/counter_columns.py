"""Names of the columns of hardware counters, of which recorders, readers and merges have to agree.

A row of a kernel has `COUNTED_TIME` and, for each unit, the time in which it would have done the
same at its peak: `busy_column`, with `variance_column` and `bias_column`. They add up over rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

COUNTED_TIME = "counter_time (ns)"  # of kernels that counters stand for
SAMPLED_TIME = "counter_sampled (ns)"  # the part of it inside samples
CYCLES = "sm_cycles"  # that passed in it
NOT_JOINED = "counters of a phase that were not joined"  # a reason of losses, the recorder's
UNIT_ENDINGS = ("_busy (ns)", "_variance (ns^2)", "_bias (ns)")

# What a processor did for a row in user space: operators, interpreted kernels, scopes.
INSTRUCTIONS = "instructions"  # retired

# Units whose use is counted, in the order of reports, and what their share of the peak means.
UNITS: Mapping[str, str] = {
    "sm_active": "multiprocessors with a warp",
    "tensor": "cycles of the tensor pipes",
    "dram": "throughput of the device's memory",
    "l2": "sectors of the second-level cache",
    "l2_requests": "requests of the second-level cache",
    "l2_slice": "requests of that slice of it which has most of them",
    "issue": "instructions that the schedulers issued",
    "fp32": "instructions of the FMA pipe",
    "alu": "instructions of the pipe of integers and comparisons",
    "xu": "instructions of the pipe of special functions and conversions",
    "fp64": "cycles of the FP64 pipe",
    "l1": "passes of the first-level cache and shared memory",
    "shared": "passes of shared memory",
}

# What GPUs reach at best as fractions of the peaks, where nothing was measured: on an H200 a copy
# for DRAM, a product of fp16 matrices and chains of FMAs, on an H100 a product for L2. The peak
# itself stands for the others.
USUAL_CEILINGS: Mapping[str, float] = {
    "dram": 0.84,
    "tensor": 0.94,
    "issue": 0.94,
    "fp32": 0.94,
    "fp64": 0.94,
    "l1": 1.0,
    "l2": 0.63,
    "shared": 1.0,
}
_LEAST, _MOST = 0.1, 1.1  # a measured ceiling outside of these is rejected


def busy_column(unit: str) -> str:
    """Return the name of the time in which a unit would have done the same at its peak."""
    return unit + UNIT_ENDINGS[0]


def variance_column(unit: str) -> str:
    """Return the name of the variance of that time."""
    return unit + UNIT_ENDINGS[1]


def bias_column(unit: str) -> str:
    """Return the name of the part of its error that comes back in every row and run."""
    return unit + UNIT_ENDINGS[2]


def is_ceiling(value: Any) -> bool:
    """Return whether a value can be the fraction of a peak that a unit reaches at best."""
    return type(value) in {int, float} and math.isfinite(value) and _LEAST <= value <= _MOST
