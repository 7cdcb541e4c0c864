"""The collector of the ``cupti`` backend: the native one, with libcupti found in Python."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from proton_bench import _native
from proton_bench.errors import BackendUnavailableError, ProtonError
from proton_bench.recording.counters.sampling_process import SamplingProcess
from proton_bench.recording.kernels.hooks import rest_listeners
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.stderr import warn
from proton_bench_plugins.cupti.availability import find_candidates
from proton_bench_plugins.cupti.privileges import explain_refusal
from proton_bench_plugins.cupti.settings import Counting, PcSampling, Settings
from proton_bench_plugins.libraries import note_start
from proton_bench_plugins.patch import Patch

_MODULE = "torch.autograd.profiler"
_BEGINNINGS = ("_prepare_profiler", "_enable_profiler")
_END = "_disable_profiler"


def gpu_profile_is_open() -> bool:
    """Whether torch.profiler is recording the GPU in this process."""
    module = sys.modules.get(_MODULE)
    if not getattr(module, "_is_profiler_enabled", False):
        return False
    kind = getattr(module, "profile", None)
    # Torch does not say what it records, but its open profiler object does.
    return any(
        type(each) is kind
        and getattr(each, "kineto_results", None) is None
        and _has_gpu(getattr(each, "kineto_activities", ()))
        for each in gc.get_objects()
    )


# CUPTI serves one profiler per process at a time. Kineto does not coordinate: its subscription
# would fail, or it would take over the activity buffers and switch kernels off at its end. So the
# target's own profiler gets CUPTI while it records.
class ProfilerWatch:
    """Notifies when torch.profiler begins and ends recording the GPU.

    Args:
        begins: Called before torch uses CUPTI; may be called twice for one recording.
        ends: Called after torch's recording has ended, or did not begin.
    """

    def __init__(self, begins: Callable[[], None], ends: Callable[[], None]) -> None:
        self._begins = begins
        self._ends = ends
        self._undo = contextlib.ExitStack()

    def attach(self) -> None:
        """Watch torch, even if it is imported later."""
        self._undo.callback(ImportCallback(_MODULE, self._patch).cancel)

    def detach(self) -> None:
        """Stop watching; a second call does nothing."""
        self._undo.close()

    def _patch(self, module: ModuleType) -> None:
        for name in _BEGINNINGS:
            if callable(vars(module).get(name)):
                self._undo.callback(Patch(module, name, self._begin).remove)
        if callable(vars(module).get(_END)):
            self._undo.callback(Patch(module, _END, self._end).remove)

    def _begin(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        activities = kwargs.get("activities", args[1] if len(args) > 1 else ())
        if not _has_gpu(activities):
            return original(*args, **kwargs)
        self._begins()
        try:
            return original(*args, **kwargs)
        except BaseException:
            self._ends()
            raise

    def _end(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            self._ends()


def _has_gpu(activities: Iterable[object]) -> bool:
    return any(getattr(each, "name", "") == "CUDA" for each in activities)


_TAKEN = "another profiler of this process, such as torch.profiler, took CUPTI's buffers"


def remark_on(
    counts: Mapping[str, int],
    facts: Mapping[str, Any],
    loaded: Callable[[], Iterable[str]] | None = None,
) -> str | None:
    """Return one line on kernels that are missing, or None.

    Args:
        counts: The session's counts.
        facts: Facts of the collector.
        loaded: Returns the files of libcupti in this process.
    """
    sampling = _sampling_remark(facts)
    if sampling is not None and counts["records"] > 0:
        return sampling
    is_taken = facts["taken_buffers"] > 0 or facts["foreign_buffers"] > 0
    if counts["dropped"] > 0 and is_taken:
        return f"{_TAKEN}; {counts['dropped']} records are lost, so end that one first"
    if counts["records"] > 0 or counts["cleared"] > 0:
        return None
    launches = counts["launches"] - counts["failed"]
    if launches > 0:
        return (
            f"{launches} launches were seen, but no kernel record arrived: {facts['library']} may "
            "not fit the driver; name another with PROTON_BENCH_CUPTI_LIB"
        )
    return _nothing_seen(facts, loaded or loaded_libraries)


def _sampling_remark(facts: Mapping[str, Any]) -> str | None:
    """Return why kernels ran but were not sampled, or None."""
    sampled = facts.get("pc_sampling")
    if not sampled:
        return None
    if sampled["error"]:
        word = "some PC samples are missing" if sampled["samples"] else "no PC sample was taken"
        return f"{word}: {sampled['error']}"
    if not sampled["samples"]:
        return (
            "no PC sample was taken: kernels ran for less than the period of "
            f"{sampled['period_cycles']} cycles, or in contexts that were not sampled; use a "
            "smaller interval"
        )
    return None


def _nothing_seen(facts: Mapping[str, Any], loaded: Callable[[], Iterable[str]]) -> str:
    if facts["torch_profiler_pauses"] > 0:
        return "no kernel was recorded: torch.profiler had CUPTI when they ran"
    reasons = [
        "the process launched none while the session was active",
        "all were in CUDA graphs made before the session started",
        "they ran in other processes, such as children that are not recorded",
    ]
    others = [path for path in loaded() if path != os.path.realpath(facts["library"])]
    if others:
        reasons.append(
            f"{facts['library']} was used, but the program has {others[0]}: name that one with "
            "PROTON_BENCH_CUPTI_LIB"
        )
    return f"no kernel was recorded: {', or '.join(reasons)}"


def loaded_libraries() -> list[str]:
    """Return the files of libcupti that this process has loaded, without links."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
            files = {line.split(maxsplit=5)[-1].strip() for line in lines}
    except OSError:
        return []
    return sorted(
        os.path.realpath(file) for file in files if os.path.basename(file).startswith("libcupti.so")
    )


_COMPILER = "triton.compiler.compiler"


def loaded_cubins() -> Iterator[bytes]:
    """Yield the cubin of each kernel that Triton has on a GPU of this process, once.

    This imports nothing. Scanning all objects takes a few ms per million.
    """
    kind = getattr(sys.modules.get(_COMPILER), "CompiledKernel", None)
    if not isinstance(kind, type):
        return
    seen: set[int] = set()
    # Triton has no list of them: it has one cache per function and device.
    for each in gc.get_objects():
        if type(each) is not kind or getattr(each, "module", None) is None:
            continue
        image = getattr(each, "kernel", None)
        if isinstance(image, bytes) and image and hash(image) not in seen:
            seen.add(hash(image))
            yield image


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


class _Rest:
    """Whether sessions wait for a window, before which graphs may have been captured each time."""

    is_resting = False

    def note(self, is_resting: bool) -> None:  # noqa: FBT001
        self.is_resting = is_resting


_rest = _Rest()
rest_listeners.append(_rest.note)


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
            shared=settings.shared,
            pc_sampling=_sampling_options(settings.pc_sampling),
            counters=_counter_options(settings.counting),
        )
        self._sampling = settings.pc_sampling
        self._counts = settings.counting is not None
        self._counting: SamplingProcess | None = None
        self._uncounted = ""  # why nothing is counted
        self._nvtx = settings.nvtx
        self._injected: str | None = None
        self._watch = ProfilerWatch(self._pause, self._resume)
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
        note_start()
        if self._nvtx and _INJECTION not in os.environ:
            self._injected = os.environ[_INJECTION] = str(self._native.facts()["library"])
        self._watch.attach()

    def flush(self) -> None:
        """Wait for all launched work, and record it."""
        self._native.flush()

    def stop(self) -> None:
        """Flush, and switch CUPTI off."""
        self._watch.detach()
        if os.getpid() == self._process_id:
            with self._lock:
                self._is_started = False
                self._end_pause()
                self._stop_native()  # nothing if it is already off
        if self._injected is not None and os.environ.get(_INJECTION) == self._injected:
            del os.environ[_INJECTION]
        self._injected = None

    def detach(self) -> None:
        """Take CUPTI out of the process, unless another profiler uses it."""
        with self._lock:
            if not self._is_started:
                with contextlib.suppress(BackendUnavailableError):
                    self._native.detach()

    def facts(self) -> dict[str, Any]:
        """Return library, versions, clock, and the devices seen, for the profile's provenance."""
        facts = self._native.facts()
        sampled = facts.get("pc_sampling")
        if sampled and self._sampling is not None:
            sampled["asked_cycles"] = self._sampling.asked_cycles
            sampled["error"] = explain_refusal(sampled["error"])
        counted = facts.get("counters")
        if counted:
            counted["error"] = self._uncounted or explain_refusal(
                counted["error"], doing="read hardware counters"
            )
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
            self._native.start(_present_stream(), warns_again=not _rest.is_resting)
        except BackendUnavailableError as error:
            if self._sampling is None:
                raise
            raise BackendUnavailableError(explain_refusal(str(error))) from None
        if self._sampling is not None:
            for cubin in loaded_cubins():
                self._native.add_cubin(cubin)
        if self._counts:
            self._start_counting()

    def _start_counting(self) -> None:
        try:
            self._counting = SamplingProcess()
        except BackendUnavailableError as error:  # the kernels are recorded nonetheless
            self._uncounted = str(error)
        else:
            self._native.start_counters(self._counting.socket)

    def _stop_native(self) -> None:
        self._native.stop()
        if self._counting is not None:
            self._counting.end()
            self._counting = None

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
            self._stop_native()

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
    if asked is None:
        return None
    return _native.CounterOptions(
        asked.sets,
        interval_ns=1000 * asked.interval_us,
        burst_ms=asked.burst_ms,
        pause_ms=_PAUSE_MS,
    )
