"""Results of benchmarks.overhead made up for tests."""

from __future__ import annotations

from typing import Any

from benchmarks.overhead.results import Results


def measured(bare: float, added: float) -> dict[str, Any]:
    """Return the measurement of a process: three blocks of each kind around these seconds."""
    return {
        "bare": [bare, bare * 1.001, bare * 0.999],
        "profiled": [bare + added] * 3,
        "bare_thread": [bare / 2] * 3,
        "profiled_thread": [bare / 2 + added / 4] * 3,
        "finalize_s": 0.01,
        "bytes": 2000,
        "kernels": 24,
    }


def results(added: dict[str, float], workload: str = "tiny", rounds: int = 10) -> Results:
    """Return rounds in which each arm adds about the given seconds to a microsecond."""
    made = Results(machine={"python": "3"}, settings={"seed": 0})
    for number in range(rounds):
        bare = 1e-6 * (1 + number / 50)  # the machine gets slower
        arms = {
            arm: {
                "error": None,
                "workloads": {workload: measured(bare, cost * (1 + number % 3 / 100))},
            }
            for arm, cost in added.items()
        }
        made.rounds.append({"number": number, "seconds": 1.0, "arms": arms})
    return made
