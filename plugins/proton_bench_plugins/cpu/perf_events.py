"""The instructions of this process that the kernel counts (perf_event_open), or why it does not.

User space alone is counted, which ``perf_event_paranoid`` up to 2 allows.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proton_bench import _native
from proton_bench.model.metrics.counter_columns import INSTRUCTIONS

__all__ = ["EVENTS", "Event", "FoundEvents", "find_events"]

Event = tuple[str, int, int]  # name of the column, type, config: as in perf_event_open(2)

_HARDWARE = 0
EVENTS: tuple[Event, ...] = ((INSTRUCTIONS, _HARDWARE, 1),)
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_ALLOWED = 2
_NO_HARDWARE = (
    "this machine gives none, as most virtual machines: use bare metal, or a virtual machine with "
    "a virtual PMU"
)
_REASONS = {
    errno.ENOENT: _NO_HARDWARE,
    errno.ENODEV: _NO_HARDWARE,
    errno.EOPNOTSUPP: _NO_HARDWARE,
    errno.EPERM: "a sandbox forbids perf_event_open: run the container with --cap-add PERFMON or a "
    "seccomp profile that allows it",
    errno.ENOSYS: "this kernel has no perf_event_open: use a Linux kernel with CONFIG_PERF_EVENTS",
    errno.EMFILE: "the process has no descriptor left: raise the limit (ulimit -n)",
    errno.ENFILE: "the system has no descriptor left: raise fs.file-max",
    errno.EBUSY: "another program has the counters to itself: stop it",
}


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """The events that can be counted.

    Attributes:
        events: They, in the order of `EVENTS`.
        error: Why there are none, and what to do; "" if there are some.
    """

    events: tuple[Event, ...]
    error: str = ""


def find_events(events: Sequence[Event] | None = None) -> FoundEvents:
    """Ask the kernel which events it counts for the calling thread.

    Args:
        events: What to ask for; `EVENTS` by default.
    """
    asked = EVENTS if events is None else tuple(events)
    codes = _native.probe_perf_events(asked)
    found = tuple(event for event, code in zip(asked, codes, strict=True) if code == 0)
    return FoundEvents(found, "" if found else _reason(codes[0]))


def _reason(code: int) -> str:
    if code == errno.EACCES:
        return (
            f"perf_event_paranoid is {_paranoid()}: run `sysctl kernel.perf_event_paranoid="
            f"{_ALLOWED}` as root, or give the program CAP_PERFMON"
        )
    return _REASONS.get(code, f"perf_event_open failed: {os.strerror(code)}")


def _paranoid() -> str:
    try:
        return _PARANOID.read_text().strip()
    except OSError:
        return "unknown"
