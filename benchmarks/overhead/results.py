"""Results of this benchmark as a file.

An arm of a round has ``workloads``: workload -> {"bare": [seconds per unit of each block],
"profiled": [...], "finalize_s", "bytes", "kernels"}, and "sampling" where PCs were sampled. Newer
files have processor time of the launching thread in "bare_thread" and "profiled_thread".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.round_results import RoundResults, SchemaError

_WORKLOAD_KEYS = {"bare", "profiled", "finalize_s", "bytes", "kernels"}


@dataclass(slots=True)
class Results(RoundResults):
    """All rounds so far."""

    SCHEMA: ClassVar[str] = "proton_bench.overhead"

    def check(self, path: Path) -> None:
        """Refuse workloads that lack something.

        Raises:
            SchemaError: They do.
        """
        for name, measured in self.all_measured():
            missing = _WORKLOAD_KEYS - set(measured)
            if missing:
                raise SchemaError(f"{path}: {name} lacks {sorted(missing)}")

    def all_measured(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield "arm/workload" and what was measured, of every round."""
        for each in self.rounds:
            for arm, result in each["arms"].items():
                for workload, measured in result["workloads"].items():
                    yield f"{arm}/{workload}", measured

    def of(self, arm: str, workload: str) -> dict[int, dict[str, Any]]:
        """Return what was measured, by place of the round in the list."""
        found = {}
        for place, each in enumerate(self.rounds):
            measured = each["arms"].get(arm, {}).get("workloads", {}).get(workload)
            if measured and measured["bare"] and measured["profiled"]:
                found[place] = measured
        return found
