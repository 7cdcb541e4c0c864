"""Facts about the sampling of hardware counters, from the provenance of a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proton_bench.model.profile import Profile

__all__ = ["CounterFacts", "counter_facts"]


@dataclass(frozen=True, slots=True)
class CounterFacts:
    """How hardware counters were sampled.

    Attributes:
        bursts: Bursts with samples.
        samples: Samples, over all devices.
        covered_ns: Time inside samples, over all devices.
        lost_bursts: Bursts that failed.
        lost_samples: Samples that came without times or values.
        thread_ns: Processor time of the sampling thread.
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
    """Return the facts of the sampling backend, None where counters were not asked for."""
    collectors = profile.provenance.get("collectors")
    for facts in collectors.values() if isinstance(collectors, Mapping) else ():
        said = facts.get("counters") if isinstance(facts, Mapping) else None
        if isinstance(said, Mapping) and said:
            return _read(said)
    return None


def _read(said: Mapping[str, Any]) -> CounterFacts:
    # A file may contain anything.
    def number(key: str) -> int:
        value = said.get(key)
        return value if type(value) is int and value >= 0 else 0

    error = said.get("error")
    return CounterFacts(
        bursts=number("bursts"),
        samples=number("samples"),
        covered_ns=number("covered_ns"),
        lost_bursts=number("lost_bursts"),
        lost_samples=number("lost_samples"),
        thread_ns=number("thread_ns"),
        error=error if isinstance(error, str) else "",
    )
