"""Facts about the sampling of hardware counters, from the provenance of a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proton_bench.model.metrics.counter_columns import COUNTED_TIME
from proton_bench.model.profile import Profile

__all__ = [
    "CounterFacts",
    "are_missing",
    "came_too_late",
    "counter_facts",
    "cpu_counter_error",
    "is_written_meanwhile",
]


@dataclass(frozen=True, slots=True)
class CounterFacts:
    """How hardware counters were sampled.

    Attributes:
        bursts: Bursts with samples.
        samples: Samples, over all devices.
        covered_ns: Time inside samples, over all devices.
        lost_bursts: Bursts that failed.
        lost_samples: Samples that came without times or values.
        thread_ns: Processor time of the program's thread that asks for bursts.
        error: Why nothing or not everything was sampled, or "".
    """

    bursts: int = 0
    samples: int = 0
    covered_ns: int = 0
    lost_bursts: int = 0
    lost_samples: int = 0
    thread_ns: int = 0
    error: str = ""


def counter_facts(profile: Profile) -> CounterFacts | None:
    """Return the facts of the sampling backend, None where counters were not sampled."""
    said = _said_of(profile, "counters")
    if said is None:
        return None
    return CounterFacts(
        bursts=_number(said, "bursts"),
        samples=_number(said, "samples"),
        covered_ns=_number(said, "covered_ns"),
        lost_bursts=_number(said, "lost_bursts"),
        lost_samples=_number(said, "lost_samples"),
        thread_ns=_number(said, "thread_ns"),
        error=_text(said, "error"),
    )


def cpu_counter_error(profile: Profile) -> str:
    """Return why a run counted no instructions although it asked for them, "" for no reason."""
    said = _said_of(profile, "cpu_counters")
    return "" if said is None else _text(said, "error")


def are_missing(profile: Profile) -> bool:
    """Return whether counters of kernels of GPUs were asked for, and no kernel has any."""
    if profile.provenance.get("backend") == "cpu" or COUNTED_TIME in profile.columns:
        return False
    return any(mode.split(":")[0] == "counters" for mode in _modes(profile))


def came_too_late(profile: Profile) -> bool:
    """Return whether the file was written before counters of its kernels were computed.

    That happens when a session ends, as do the facts of collectors: partial files have neither.
    """
    return are_missing(profile) and not profile.provenance.get("collectors")


def is_written_meanwhile(profile: Profile) -> bool:
    """Return whether the file is of a phase that was over, written while its session recorded."""
    if profile.partial or "end_time_ns" in profile.provenance:  # of the whole session
        return False
    return any(mode.split(":")[0] == "periodic_flushing" for mode in _modes(profile))


def _modes(profile: Profile) -> list[str]:
    mode = profile.provenance.get("mode")
    return mode.split("+") if isinstance(mode, str) else []


# A file may contain anything.
def _said_of(profile: Profile, key: str) -> Mapping[str, Any] | None:
    """Return what a collector said under this key, None if none did."""
    collectors = profile.provenance.get("collectors")
    for facts in collectors.values() if isinstance(collectors, Mapping) else ():
        said = facts.get(key) if isinstance(facts, Mapping) else None
        if isinstance(said, Mapping) and said:
            return said
    return None


def _number(said: Mapping[str, Any], key: str) -> int:
    value = said.get(key)
    return value if type(value) is int and value >= 0 else 0


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    return value if isinstance(value, str) else ""
