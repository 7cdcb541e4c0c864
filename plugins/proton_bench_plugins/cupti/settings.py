"""Settings of the user: options of the modes, and a few variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from proton_bench.errors import UsageError
from proton_bench.plugin import Mode
from proton_bench.recording.counters.metric_sets import (
    DEFAULT_SET,
    METRIC_SETS,
    metric_candidates,
)
from proton_bench.support.text import did_you_mean
from proton_bench_plugins.mode_values import AskedValues, Number

# -- hardware counters ---------------------------------------------------------------------------
COUNTERS = "counters"
_GPM_OPTION = {"counters": "gpm: counters of the whole run by GPM alone, without bursts"}
COUNTERS_OPTIONS = {
    "metrics": (
        f"what is counted: a set ({', '.join(METRIC_SETS)}; default {DEFAULT_SET}), or NVIDIA's "
        "names of metrics joined by +"
    ),
    "interval_us": "time between two samples of a burst, 1 to 1000 us; default 10",
    "burst_ms": "length of a burst, 1 to 100 ms; default 2",
}
_INTERVAL_US = Number("interval_us", range(1, 1001), 10)
_BURST_MS = Number("burst_ms", range(1, 101), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """How bursts of samples are taken.

    Attributes:
        sets: NVIDIA's metrics, the richest set first: a GPU takes the first that fits one pass.
        interval_us: Time between two samples of a burst.
        burst_ms: Length of a burst.
    """

    sets: tuple[tuple[str, ...], ...] = METRIC_SETS[DEFAULT_SET]
    interval_us: int = _INTERVAL_US.default
    burst_ms: int = _BURST_MS.default


def _read_counting(mode: Mode, environ: Mapping[str, str]) -> Counting | None:
    """Return how to sample counters, None for not at all.

    Args:
        mode: Mode with its options.
        environ: Environment to read.

    Raises:
        UsageError: An option has an invalid value.
    """
    if mode.name == COUNTERS:
        asked = AskedValues(mode, environ)
        return Counting(
            sets=metric_candidates(mode.options.get("metrics", DEFAULT_SET).replace("+", ",")),
            interval_us=asked.number(_INTERVAL_US),
            burst_ms=asked.number(_BURST_MS),
        )
    value = mode.options.get(COUNTERS, "gpm")
    if value.lower() != "gpm":
        raise UsageError(
            f"option {COUNTERS!r} of mode {mode.text!r} is {value!r}; choose gpm, for the whole "
            "run. For kernels, sample by -m counters, or count exactly by `ncu --csv --page raw` "
            "and show its file by `proton view --counters FILE`"
        )
    return None


# -- samples of program counters ----------------------------------------------------------------
PC_SAMPLING = "pcsampling"
PC_SAMPLING_OPTIONS = {
    "interval": "cycles between samples, the nearest power of two from 32; auto (default) chooses",
    "exact": (
        "how samples are assigned to call paths: off (default) by time, scope or launch exactly"
    ),
}
_AUTO = "auto"
# Periods of the hardware's sampler, as powers of two.
_EXPONENTS = range(5, 32)
_MAX_DIGITS = 18  # int refuses thousands of them
# The words of the option, and those of the native collector.
_COLLECTIONS = {"off": "continuous", "scope": "scope", "launch": "launch"}


@dataclass(frozen=True, slots=True)
class PcSampling:
    """How program counters are sampled.

    Attributes:
        collection: ``continuous`` runs all the time; ``scope`` and ``launch`` read the samples at
            the borders of outermost scopes or of launches, which waits for the device there.
        period_exponent: A sample is taken every 2^n cycles; 0 lets the collector choose n.
        asked_cycles: Requested cycles; 0 for none.
    """

    collection: str = "continuous"
    period_exponent: int = 0
    asked_cycles: int = field(default=0, compare=False)


def _read_sampling(mode: Mode) -> PcSampling | None:
    """Return how to sample, None for another mode.

    Raises:
        UsageError: An option has an invalid value.
    """
    if mode.name != PC_SAMPLING:
        return None
    exact = mode.options.get("exact", "off").strip().lower()
    if exact not in _COLLECTIONS:
        meant = did_you_mean(exact, _COLLECTIONS) or f"; choose from: {', '.join(_COLLECTIONS)}"
        raise UsageError(f"option 'exact' of mode {mode.text!r} is {exact!r}{meant}")
    cycles = _cycles(mode)
    return PcSampling(_COLLECTIONS[exact], _nearest(cycles) if cycles else 0, cycles)


def _cycles(mode: Mode) -> int:
    """Return the requested cycles, 0 if the collector chooses."""
    text = mode.options.get("interval", _AUTO).strip().lower()
    if text == _AUTO:
        return 0
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    cycles = int(text) if is_number else 0
    if cycles == 0:
        raise UsageError(
            f"option 'interval' of mode {mode.text!r} is {text[:40]!r}: give a positive number of "
            f"cycles, or {_AUTO}"
        )
    return cycles


def _nearest(cycles: int) -> int:
    """Return the exponent of the nearest power of two, the longer period of two equally near."""
    below = cycles.bit_length() - 1
    is_above = 2 * (cycles - (1 << below)) >= 1 << below
    return min(max(below + is_above, _EXPONENTS[0]), _EXPONENTS[-1])


# -- all modes -----------------------------------------------------------------------------------
OPTIONS = {
    "copies": "on: memory copies and memsets have their own nodes; off (default): in graphs alone",
    "graph": "node (default): each kernel of a CUDA graph; launch: one entry per launch of it",
    "buffer_bytes": "size of an activity buffer, 65536 to 268435456; default 1048576",
    "flush_period_ms": (
        "full buffers are read at least this often; default 100, 0 leaves it to CUPTI"
    ),
    "shared": "on: other clients of CUPTI 13.3 may record beside the session; off (default)",
    **_GPM_OPTION,
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
        shared: Let other clients of CUPTI's second interface come later.
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
    shared: bool = False
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
        shared=asked.choice("shared", "", ("off", "on")) == "on",
        pc_sampling=_read_sampling(mode),
        counting=_read_counting(mode, variables),
    )
