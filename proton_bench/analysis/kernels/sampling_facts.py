"""Facts about the sampling of program counters, from the provenance of a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proton_bench.model.profile import Profile

__all__ = ["SamplingFacts", "sampling_facts"]


@dataclass(frozen=True, slots=True)
class SamplingFacts:
    """How program counters were sampled.

    Attributes:
        period_cycles: Cycles between samples of a multiprocessor, 0 if unknown.
        asked_cycles: The requested cycles, 0 for none.
        automatic: Whether the backend chose the period.
        samples: Samples that were read.
        dropped: Samples for which the hardware had no room.
        doubled: Times that the period was doubled because the hardware's buffer was full.
        drain_ns: Processor time of reading samples.
        publish_ns: Processor time of finding their lines and call paths.
        most_bytes: The most memory that they took.
        attribution: How samples were assigned to call paths, "" if the file does not say.
        error: Why nothing or not everything was sampled, or "".
    """

    period_cycles: int = 0
    asked_cycles: int = 0
    automatic: bool = False
    samples: int = 0
    dropped: int = 0
    doubled: int = 0
    drain_ns: int = 0
    publish_ns: int = 0
    most_bytes: int = 0
    attribution: str = ""
    error: str = ""

    @property
    def is_estimated(self) -> bool:
        """Whether call paths of one kernel share its samples by an estimate."""
        return self.attribution.startswith("estimated")


def sampling_facts(profile: Profile) -> SamplingFacts | None:
    """Return the facts of the sampling backend, or None."""
    collectors = profile.provenance.get("collectors")
    for facts in collectors.values() if isinstance(collectors, Mapping) else ():
        said = facts.get("pc_sampling") if isinstance(facts, Mapping) else None
        if isinstance(said, Mapping) and said:
            return _read(said)
    return None


def _read(said: Mapping[str, Any]) -> SamplingFacts:
    # A file may contain anything.
    def number(key: str) -> int:
        value = said.get(key)
        return value if type(value) is int and value >= 0 else 0

    def text(key: str) -> str:
        value = said.get(key)
        return value if isinstance(value, str) else ""

    return SamplingFacts(
        period_cycles=number("period_cycles"),
        asked_cycles=number("asked_cycles"),
        automatic=said.get("is_automatic") is True,
        samples=number("samples"),
        dropped=number("dropped"),
        doubled=number("doubled"),
        drain_ns=number("drain_ns"),
        publish_ns=number("publish_ns"),
        most_bytes=number("most_bytes"),
        attribution=text("attribution"),
        error=text("error"),
    )
