"""Samples of what the threads of the program do on the host, also outside of recorded work.

One native thread of the process takes them, for all sessions that want them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

from proton_bench.errors import UsageError
from proton_bench.recording.native import native

HOST_SAMPLES = "PROTON_BENCH_HOST_SAMPLES"
_OFF = ("off", "0", "false")
_DEFAULT_RATE_HZ = 100.0
_MIN_RATE_HZ = 0.001  # far smaller ones have no period in nanoseconds
_MAX_RATE_HZ = 1000.0

_sessions: set[int] = set()
_sampler: native.HostSampler | None = None


def host_rate_hz(*, is_default: bool) -> float:
    """Return samples per second; 0 takes none.

    Args:
        is_default: Samples are taken where ``PROTON_BENCH_HOST_SAMPLES`` says nothing.

    Raises:
        UsageError: The variable is neither ``off`` nor a number of samples per second.
    """
    text = os.environ.get(HOST_SAMPLES, "").strip().lower()
    if text in _OFF:
        return 0.0
    if not text:
        return _DEFAULT_RATE_HZ if is_default and native.can_sample_host else 0.0
    try:
        rate_hz = float(text)
    except ValueError:
        rate_hz = math.nan
    if not _MIN_RATE_HZ <= rate_hz <= _MAX_RATE_HZ:
        raise UsageError(
            f"{HOST_SAMPLES}={text!r} is not a number of samples per second: give one from "
            f"{_MIN_RATE_HZ:g} to {_MAX_RATE_HZ:.0f}, or off"
        )
    return rate_hz


def start_host_samples(session: int, rate_hz: float) -> None:
    """Take samples until the session is over. The caller serialises all calls.

    Args:
        session: Number of a session that was told ``sample_host``.
        rate_hz: Samples per second; 0 takes none. A running sampler is not changed.

    Raises:
        BackendUnavailableError: They cannot be taken here.
    """
    if not rate_hz:
        return
    prepare_host_samples(rate_hz)
    if _sampler is not None and not _sessions:
        _sampler.start()
    _sessions.add(session)


def prepare_host_samples(rate_hz: float) -> None:
    """Make the calling thread the main one of the program, also if another starts the samples."""
    global _sampler
    if rate_hz and _sampler is None:
        _sampler = native.HostSampler(rate_hz)


def flush_host_samples() -> None:
    """Take a sample now, so that time until now counts; waits a second at most."""
    if _sampler is not None:
        _sampler.flush()


@contextmanager
def without_host_samples() -> Iterator[None]:
    """Take no samples in a block of the main thread, because its work is ours."""
    if _sampler is not None:
        _sampler.flush()
        _sampler.stop()
    try:
        yield
    finally:
        if _sampler is not None and _sessions:
            _sampler.start()


def stop_host_samples(session: int, *, goes_on: bool = False) -> None:
    """Take no more for this session, or none for now; the last one stops the thread."""
    global _sampler
    _sessions.discard(session)
    if _sampler is not None and not _sessions:
        sampler = _sampler
        _sampler = sampler if goes_on else None
        sampler.stop()


def forget_after_fork() -> None:
    """In a forked child: its parent's thread does not exist here."""
    global _sampler
    _sessions.clear()
    _sampler = None
