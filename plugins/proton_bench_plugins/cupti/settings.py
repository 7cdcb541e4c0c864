"""Settings of the user: options of the mode, and a few variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.plugin import Mode
from proton_bench_plugins.cupti.counting import GPM_OPTION, Counting, read_counting
from proton_bench_plugins.cupti.sampling import PcSampling, read_sampling
from proton_bench_plugins.mode_values import AskedValues, Number

__all__ = ["OPTIONS", "Settings", "read_settings"]

OPTIONS = {
    "copies": "on: memory copies and memsets have their own nodes; off (default): in graphs alone",
    "graph": "node (default): each kernel of a CUDA graph; launch: one entry per launch of it",
    "buffer_bytes": "size of an activity buffer, 65536 to 268435456; default 1048576",
    "flush_period_ms": (
        "full buffers are read at least this often; default 100, 0 leaves it to CUPTI"
    ),
    **GPM_OPTION,
}
_CLOCKS = ("monotonic", "vendor")

_BUFFER_BYTES = Number(
    "buffer_bytes",
    range(64 << 10, (256 << 20) + 1),
    1 << 20,
)
_FLUSH_PERIOD_MS = Number("flush_period_ms", range(3_600_001), 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to collect.

    Attributes:
        buffer_bytes: Size of an activity buffer.
        flush_period_ms: Full buffers are read at least this often; 0 leaves it to CUPTI.
        copies: Also record memory copies and memsets outside of graphs.
        whole_graphs: Record one entry per launch of a CUDA graph instead of its kernels.
        nvtx: NVTX ranges of the target are scopes.
        vendor_clock: Convert CUPTI's own times instead of giving it our clock.
        hardware_trace: Let new GPUs measure the times of kernels themselves.
        pc_sampling: How to sample program counters; None for not at all.
        counting: How to sample hardware counters; None for not at all.
    """

    buffer_bytes: int = _BUFFER_BYTES.default
    flush_period_ms: int = _FLUSH_PERIOD_MS.default
    copies: bool = False
    whole_graphs: bool = False
    nvtx: bool = True
    vendor_clock: bool = False
    hardware_trace: bool = False
    pc_sampling: PcSampling | None = None
    counting: Counting | None = None


def read_settings(mode: Mode, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a session.

    Args:
        mode: Mode with its options.
        environ: Environment to read; None is this process's.

    Raises:
        UsageError: A value is malformed or out of its range.
    """
    variables = os.environ if environ is None else environ
    asked = AskedValues(mode, variables)
    return Settings(
        buffer_bytes=asked.number(_BUFFER_BYTES),
        flush_period_ms=asked.number(_FLUSH_PERIOD_MS),
        copies=asked.choice("copies", "", ("off", "on")) == "on",
        whole_graphs=asked.choice("graph", "", ("node", "launch")) == "launch",
        nvtx=asked.switch("TRITON_ENABLE_NVTX", unless_set=True),
        vendor_clock=asked.choice("", "PROTON_BENCH_CUPTI_CLOCK", _CLOCKS) == "vendor",
        hardware_trace=asked.switch("TRITON_ENABLE_HW_TRACE", unless_set=False),
        pc_sampling=read_sampling(mode),
        counting=read_counting(mode, variables),
    )
