"""The collector of the ``cupti`` backend: the native one, with libcupti found in Python."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from proton_bench import _native
from proton_bench.errors import BackendUnavailableError, ProtonError
from proton_bench.recording.counters.sampling_process import (
    sampling_command,
    sampling_environment,
)
from proton_bench.recording.stderr import warn
from proton_bench_plugins.cupti.availability import started_in_this_process
from proton_bench_plugins.cupti.counting import Counting, Tier
from proton_bench_plugins.cupti.library import find_candidates
from proton_bench_plugins.cupti.loaded_cubins import loaded_cubins
from proton_bench_plugins.cupti.privileges import explain_refusal
from proton_bench_plugins.cupti.ptx_watch import PtxWatch
from proton_bench_plugins.cupti.remarks import remark_on
from proton_bench_plugins.cupti.sampling import PcSampling
from proton_bench_plugins.cupti.settings import Settings
from proton_bench_plugins.cupti.torch_profiler import ProfilerWatch, gpu_profile_is_open

__all__ = ["GpuCollector"]

# Variable in which NVTX, compiled into each library, looks at its first call for a receiving
# library.
_INJECTION = "NVTX_INJECTION64_PATH"
_PAUSE_MS = 100  # between bursts, until these take a tenth of a core
_TORCH_FIRST = (
    "torch.profiler records the GPU in this process, and CUPTI serves one profiler at a time: end "
    "it first, or give it activities=[ProfilerActivity.CPU]"
)
_PAUSED = (
    "torch.profiler records the GPU from here on, and CUPTI serves one profiler at a time: kernels "
    "are missing from this profile until it ends"
)


class GpuCollector:
    """Records the work of NVIDIA GPUs from ``start`` on, except while torch.profiler does.

    Args:
        settings: How to collect.
    """

    def __init__(self, settings: Settings) -> None:
        self._native = _native.CuptiCollector(
            find_candidates(),
            buffer_bytes=settings.buffer_bytes,
            flush_period_ms=settings.flush_period_ms,
            copies=settings.copies,
            whole_graphs=settings.whole_graphs,
            nvtx=settings.nvtx,
            vendor_clock=settings.vendor_clock,
            hardware_trace=settings.hardware_trace,
            pc_sampling=_sampling_options(settings.pc_sampling),
            counters=_counter_options(settings.counting),
            ranges=_range_options(settings.counting),
        )
        self._sampling = settings.pc_sampling
        self._nvtx = settings.nvtx
        self._injected: str | None = None
        self._watch = ProfilerWatch(self._pause, self._resume)
        self._ptx = PtxWatch()
        self._lock = threading.Lock()  # of everything below, and of the native start and stop
        self._process_id = 0
        self._is_started = False
        self._paused_at_ns = 0  # 0: not paused
        self._paused_ns = 0
        self._pauses = 0

    def start(self) -> None:
        """Begin to collect; on an exception nothing is left switched on."""
        if gpu_profile_is_open():
            raise BackendUnavailableError(_TORCH_FIRST)
        with self._lock:
            self._start_native()
            self._process_id = os.getpid()
            self._is_started = True
        started_in_this_process()
        if self._nvtx and _INJECTION not in os.environ:
            self._injected = os.environ[_INJECTION] = str(self._native.facts()["library"])
        self._watch.attach()
        if self._sampling is not None:
            self._ptx.attach()

    def flush(self) -> None:
        """Wait for all launched work, and record it."""
        self._native.flush()

    def stop(self) -> None:
        """Flush, and switch CUPTI off."""
        self._watch.detach()
        self._ptx.detach()
        if os.getpid() == self._process_id:
            with self._lock:
                self._is_started = False
                self._end_pause()
                self._native.stop()  # nothing if it is already off
        if self._injected is not None and os.environ.get(_INJECTION) == self._injected:
            del os.environ[_INJECTION]
        self._injected = None

    def facts(self) -> dict[str, Any]:
        """Return library, versions, clock, and the devices seen, for the profile's provenance."""
        facts = self._native.facts()
        sampled = facts.get("pc_sampling")
        if sampled and self._sampling is not None:
            sampled["asked_cycles"] = self._sampling.asked_cycles
            sampled["error"] = explain_refusal(sampled["error"])
        for counted in filter(None, (facts.get("counters"), facts.get("ranges"))):
            counted["error"] = explain_refusal(counted["error"], doing="read hardware counters")
        return {
            **facts,
            "torch_profiler_pauses": self._pauses,
            "torch_profiler_paused_ns": self._paused_ns,
        }

    def remark(self, counts: Mapping[str, int]) -> str | None:
        """Return why kernels are missing from a session with these counts, or None."""
        return remark_on(counts, self.facts())

    def _start_native(self) -> None:
        try:
            self._native.start(_present_stream())
        except BackendUnavailableError as error:
            if self._sampling is None:
                raise
            raise BackendUnavailableError(explain_refusal(str(error))) from None
        if self._sampling is not None:
            for cubin in loaded_cubins():
                if cubin.ptx:
                    _native.note_ptx(cubin.image, cubin.ptx)
                self._native.add_cubin(cubin.image)

    def _pause(self) -> None:
        if os.getpid() != self._process_id:
            return  # a forked child: nothing is active there, and the lock may be held
        with self._lock:
            if not self._is_started or self._paused_at_ns:
                return
            if self._pauses == 0:
                warn(_PAUSED)
            self._pauses += 1
            self._paused_at_ns = time.monotonic_ns()
            self._native.stop()

    def _resume(self) -> None:
        if os.getpid() != self._process_id:
            return
        with self._lock:
            if not self._is_started or not self._paused_at_ns:
                return
            try:
                self._start_native()
            except ProtonError as error:
                warn(
                    "torch.profiler has ended and keeps CUPTI (TEARDOWN_CUPTI=1 in the "
                    f"environment may release it): kernels are missing from here on: {error}"
                )
                self._is_started = False
            self._end_pause()

    def _end_pause(self) -> None:
        if self._paused_at_ns:
            self._paused_ns += time.monotonic_ns() - self._paused_at_ns
            self._paused_at_ns = 0


def _present_stream() -> int:
    """Return the handle of torch's current stream, which may be under capture; 0 if unknown."""
    cuda = sys.modules.get("torch.cuda")
    try:
        if cuda is not None and cuda.is_initialized():
            return int(cuda.current_stream().cuda_stream)
    except Exception:  # noqa: BLE001 - record even with a broken torch
        pass
    return 0


def _sampling_options(asked: PcSampling | None) -> _native.PcSamplingOptions | None:
    if asked is None:
        return None
    return _native.PcSamplingOptions(asked.collection, period_log2=asked.period_exponent)


def _counter_options(asked: Counting | None) -> _native.CounterOptions | None:
    if asked is None or asked.tier is not Tier.SAMPLED:
        return None
    return _native.CounterOptions(
        asked.sets,
        interval_ns=1000 * asked.interval_us,
        burst_ms=asked.burst_ms,
        pause_ms=_PAUSE_MS,
        process=sampling_command(),
        environment=sampling_environment(),
    )


def _range_options(asked: Counting | None) -> _native.RangeOptions | None:
    if asked is None or asked.tier is not Tier.EXACT:
        return None
    return _native.RangeOptions(asked.counted, asked.sets)
