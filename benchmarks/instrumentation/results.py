"""Results of this benchmark as a file.

An arm of a round has ``works``: work -> [what the worker answered to each pair].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks.round_results import RoundResults


@dataclass(slots=True)
class Results(RoundResults):
    """All rounds so far."""

    SCHEMA: ClassVar[str] = "proton_bench.instrumentation"

    def of(self, arm: str, work: str) -> list[list[dict[str, Any]]]:
        """Return the pairs of each round that has any."""
        found = (each["arms"].get(arm, {}).get("works", {}).get(work) for each in self.rounds)
        return [pairs for pairs in found if pairs]
