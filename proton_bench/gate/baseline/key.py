"""The key of a baseline: one device, one driver, one set of tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.machine.fingerprint import Tier, facts_of

__all__ = ["Key", "key_of"]

_TIERS = (Tier.HARD, Tier.UNIT, Tier.TOOL)


@dataclass(frozen=True, slots=True)
class Key:
    """All known facts about device, driver and tools of runs.

    Attributes:
        facts: Tier, name and value of each fact, sorted.
    """

    facts: tuple[tuple[Tier, str, str], ...]

    @property
    def digest(self) -> str:
        """A short name of the key, the same for the same facts."""
        plain = json.dumps([[str(part) for part in fact] for fact in self.facts])
        return hashlib.sha256(plain.encode()).hexdigest()[:16]

    def distance(self, other: Key) -> tuple[int, ...]:
        """Return how many facts known on both sides differ, the most important first."""
        known = {(tier, fact): value for tier, fact, value in other.facts}
        differing = [
            tier for tier, fact, value in self.facts if known.get((tier, fact), value) != value
        ]
        return tuple(differing.count(tier) for tier in _TIERS)

    def texts(self, tier: Tier) -> list[str]:
        """Return ``fact value`` of each fact of a tier."""
        return [f"{fact} {value}" for each, fact, value in self.facts if each is tier]


def key_of(runs: Sequence[Run]) -> Key:
    """Return the common key of these runs.

    Raises:
        UsageError: Two runs differ in something.
    """
    found: dict[tuple[Tier, str], tuple[str, str]] = {}
    for run in runs:
        for place, value in facts_of(run.profile).items():
            known, source = found.setdefault(place, (value, run.source))
            if known != value:
                raise UsageError(
                    f"runs of different kinds cannot be one baseline: {place[1]} is {known!a} in "
                    f"{source!a} and {value!a} in {run.source!a}; save them under two names"
                )
    return Key(tuple(sorted((tier, fact, value) for (tier, fact), (value, _) in found.items())))
