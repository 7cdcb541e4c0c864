"""A round: a fresh process per arm, all ready at the same time, of which one measures at a time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.overhead.plan import Arm
from benchmarks.overhead.runner import ArmProcess, Setting, processes

# The slowest works get fewer pairs than --blocks: ten kernels, and traces
# of more than a hundred thousand instances a launch. A chain is repeated inside its pair.
PAIRS = {"kernels": 2, "cycles": 1, "ours_trace": 1, "upstream_trace": 1}


def measure_round(
    arms: Mapping[str, Arm], setting: Setting, order: random.Random
) -> dict[str, Any]:
    """Measure pairs of blocks of every work of every arm, the arms in turn.

    Args:
        arms: Arms with their works.
        setting: How to measure.
        order: Source of the order in which arms take turns.
    """
    results: dict[str, Any] = {
        name: {"error": None, "works": {work: [] for work in arm.workloads}}
        for name, arm in arms.items()
    }
    with (
        TemporaryDirectory(prefix="instrumentation_") as folder,
        processes(arms, setting=setting, folder=Path(folder)) as running,
    ):
        turns = [
            (name, work)
            for name, arm in arms.items()
            for work in arm.workloads
            for _ in range(PAIRS.get(name, setting.blocks))
        ]
        order.shuffle(turns)
        for name, work in turns:
            _take_turn(running[name], work, results[name])
        for name, process in running.items():
            _tell(process, results[name])
    return results


def _take_turn(process: ArmProcess, work: str, result: dict[str, Any]) -> None:
    answer = process.ask("pair", work)
    if answer is not None:
        result["works"][work].append(answer)


def _tell(process: ArmProcess, result: dict[str, Any]) -> None:
    result["error"] = process.error or None
    if process.error:
        print(f"{process.name}: {process.error}", process.last_words(), sep="\n", flush=True)
