"""Times a function in rounds: warm-up, calibration, a timer of the CPU or of a GPU.

Knows neither sessions nor pytest; `proton_bench.testrun` puts what it measures into profiles.
"""

from __future__ import annotations

from proton_bench.rounds.measurement import Measurement, measure, measure_coroutine
from proton_bench.rounds.plan import Device, Plan
from proton_bench.rounds.timer import CpuTimer, RoundTime, Timer

__all__ = [
    "CpuTimer",
    "Device",
    "Measurement",
    "Plan",
    "RoundTime",
    "Timer",
    "measure",
    "measure_coroutine",
]
