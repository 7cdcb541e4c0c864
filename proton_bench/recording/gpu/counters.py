"""Samples counters such as clocks and memory for timelines, and how busy units were (GPM).

One thread of the process does this while a session keeps a timeline or asks for hardware counters.
Native code adds the samples to all active sessions with a timeline.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from proton_bench.recording.counters.gpm import PERIOD_S, GpmReadings, GpmTotals
from proton_bench.recording.gpu.nvml_devices import NvmlDevices
from proton_bench.recording.native import native
from proton_bench.support.fork_lock import ForkLock

_MILLI = 1e-3
_Question = Callable[[], float]


class GpuReadings:
    """Readings of the GPUs that the program has used. Only one thread may use it at a time."""

    def __init__(self) -> None:
        self._devices = NvmlDevices()
        self._questions: dict[int, Mapping[str, _Question]] = {}

    def read(self) -> Iterator[tuple[int, int, list[tuple[str, float]]]]:
        """Yield the CUDA number of each GPU, the time of reading, and names with values.

        Names end in their unit; times are of CLOCK_MONOTONIC, in ns. Values that a driver refuses
        at first are not read again; later refusals are left out.
        """
        for ordinal in native.cuda_ordinals():
            questions = self._questions_of(ordinal)
            values = []
            for name, ask in questions.items():
                with contextlib.suppress(self._devices.nvml.NVMLError):
                    values.append((name, float(ask())))
            if values:
                yield ordinal, time.monotonic_ns(), values

    def close(self) -> None:
        """Release the library."""
        self._devices.close()
        self._questions.clear()

    def _questions_of(self, ordinal: int) -> Mapping[str, _Question]:
        known = self._questions.get(ordinal)
        if known is not None:
            return known
        device = self._devices.find(ordinal)
        if device is None:
            return {}
        found = {} if device.handle is None else _answered(self._devices.nvml, device.handle)
        self._questions[ordinal] = found
        return found


def _answered(nvml: Any, device: Any) -> Mapping[str, _Question]:
    """Return the values of a device that its driver provides."""
    questions: dict[str, _Question] = {
        "SM clock (MHz)": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
        "memory clock (MHz)": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
        "power (W)": lambda: nvml.nvmlDeviceGetPowerUsage(device) * _MILLI,
        "temperature (°C)": lambda: nvml.nvmlDeviceGetTemperature(
            device, nvml.NVML_TEMPERATURE_GPU
        ),
        "utilisation (%)": lambda: nvml.nvmlDeviceGetUtilizationRates(device).gpu,
        "memory used (bytes)": lambda: nvml.nvmlDeviceGetMemoryInfo(device).used,
    }
    answered = {}
    for name, ask in questions.items():
        # Older libraries lack some, and drivers differ.
        with contextlib.suppress(nvml.NVMLError, AttributeError, TypeError, ValueError):
            float(ask())
            answered[name] = ask
    return answered


COUNTER_RATE_HZ = 10.0
_STATM = "/proc/self/statm"
_MAX_FIRST_S = 1.0
_NEARLY = 0.9  # of a period, because a wait may end a little early

_lock = threading.Lock()
# Held while the management library is used, so that a forked child inherits none of its locks.
# A driver that does not answer does not block a fork of the program.
_asking = ForkLock()
_sessions: set[int] = set()  # with a timeline
_gpm_sessions: set[int] = set()
_gpm_totals: dict[int, GpmTotals] = {}  # of these, until they are taken
_sampler: _Sampler | None = None
# Open until the process ends, because opening the library takes longer than reading.
_gpus: GpuReadings | None = None
_gpm: GpmReadings | None = None


def start_counters(session: int, rate_hz: float, *, gpm: bool = False) -> None:
    """Sample counters until the session is over; the first ones come before this returns.

    So the driver's library is opened before the program continues, not while it launches. This
    waits at most a second for the driver.

    Args:
        session: Number of the session.
        rate_hz: Samples per second for its timeline; 0 takes none. A running sampler is not
            changed.
        gpm: Also take means of hardware counters, for `take_gpm_facts` and for timelines.
    """
    global _sampler
    if not rate_hz and not gpm:
        return
    with _lock:
        if rate_hz:
            _sessions.add(session)
        if gpm:
            _gpm_sessions.add(session)
            _gpm_totals.setdefault(session, GpmTotals())  # of its earlier windows, too
        if _sampler is None:
            _sampler = _Sampler(1 / rate_hz if rate_hz else PERIOD_S)


def stop_counters(session: int) -> None:
    """Stop counters of a session. The last one takes a final sample and waits for the thread.

    Args:
        session: Number of the session, which may have no counters.
    """
    with _lock:
        if not (_sessions | _gpm_sessions) - {session}:
            _end_sampler()
        _sessions.discard(session)
        _gpm_sessions.discard(session)


def take_gpm_facts(session: int) -> list[dict[str, Any]]:
    """Return the means over a session that was stopped, an entry per device; [] if it had none.

    `GpmTotals.facts` says what an entry holds.
    """
    with _lock:
        totals = _gpm_totals.pop(session, None)
        if totals is None:
            return []
        return totals.facts(_gpm.refusals if _gpm is not None else {})


def _end_sampler() -> None:
    global _sampler
    sampler, _sampler = _sampler, None
    if sampler is not None:
        sampler.end()


def _end() -> None:
    global _gpm, _gpus
    _end_sampler()
    opened, _gpus, _gpm = (_gpus, _gpm), None, None
    for each in opened:
        if each is not None:
            each.close()


def _opened_gpus() -> GpuReadings:
    global _gpus
    if _gpus is None:
        _gpus = GpuReadings()
    return _gpus


def _opened_gpm() -> GpmReadings:
    global _gpm
    if _gpm is None:
        _gpm = GpmReadings()
    return _gpm


class _Sampler:
    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._has_first = threading.Event()
        self._gpm_due_s = 0.0
        self._thread = threading.Thread(target=self._run, name="proton_bench counters", daemon=True)
        self._thread.start()
        self._has_first.wait(_MAX_FIRST_S)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            wait_s = self._sample()
            self._has_first.set()
            while not self._ended.wait(wait_s):
                wait_s = self._sample()
            self._sample()
        except Exception:  # noqa: BLE001 - the program must not see it; what is missing is counted
            native.add_dropped("samples of counters after a failed one", 1)
            self._has_first.set()

    def _sample(self) -> float:
        """Deliver one sample of everything; return the seconds until the next."""
        began = time.monotonic()
        if _sessions:
            self._sample_clocks()
        if _gpm_sessions and (began >= self._gpm_due_s or self._ended.is_set()):
            self._gpm_due_s = began + _NEARLY * PERIOD_S
            self._sample_gpm()
        return max(0.0, self._interval_s - (time.monotonic() - began))

    def _sample_clocks(self) -> None:
        native.add_counters(time.monotonic_ns(), "", 0, [("resident memory (bytes)", _resident())])
        with _asking.held():
            readings = list(_opened_gpus().read())
        for ordinal, at_ns, values in readings:
            native.add_counters(at_ns, "CUDA", ordinal, values)

    def _sample_gpm(self) -> None:
        with _asking.held():
            windows = list(_opened_gpm().read())
        for window in windows:
            # A timeline shows a value from its time on.
            native.add_counters(window.began_ns, "CUDA", window.ordinal, window.named())
            for totals in list(_gpm_totals.values()):
                totals.add(window)


def _resident() -> float:
    """Return the resident bytes of this process."""
    with open(_STATM, encoding="ascii") as file:
        return float(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))


def _after_fork_in_child() -> None:
    """The thread belongs to the parent; sessions of the child get their own."""
    global _gpm, _gpus, _lock, _sampler
    _lock = threading.Lock()
    _sampler = _gpus = _gpm = None
    _sessions.clear()
    _gpm_sessions.clear()
    _gpm_totals.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
# A thread that takes Python's lock while the interpreter exits would abort the process.
atexit.register(_end)
