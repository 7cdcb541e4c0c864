"""Checks whether the backend can run here, without starting a driver or importing Triton."""

from __future__ import annotations

import importlib.util

from proton_bench_plugins.cpu.gpu_driver import find_gpu_driver
from proton_bench_plugins.libraries import native_obstacle


def find_obstacle() -> str | None:
    """Return why the backend cannot run here and what to do, or None."""
    if missing := native_obstacle("InstrumentationRuntime"):
        return missing
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed, whose compiler makes the records: pip install triton"
    vendor = find_gpu_driver()
    if vendor is None:
        return (
            "no GPU driver with a visible device; `-b cpu` records the same scopes in Triton's "
            "interpreter"
        )
    if vendor != "NVIDIA":
        return f"records of {vendor} GPUs can be compiled, but only those of NVIDIA's are collected"
    return None
