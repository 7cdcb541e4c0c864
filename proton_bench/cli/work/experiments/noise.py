"""``proton noise``, after its options are read."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proton_bench.cli.output_file import STDOUT, write_output
from proton_bench.cli.project import default_store
from proton_bench.errors import InterruptedExperimentError
from proton_bench.gate.experiment.aa import MeasuredNoise, measure_aa
from proton_bench.gate.experiment.folders.store import shown
from proton_bench.gate.experiment.processes.command import Command
from proton_bench.gate.experiment.progress import open_progress
from proton_bench.gate.machine.noise import PathNoise
from proton_bench.gate.policy.policy import Policy
from proton_bench.report.json.tree import encode_document
from proton_bench.report.words.quantity import percent_text
from proton_bench.support.console import open_console
from proton_bench.support.text import visible

__all__ = ["measure_noise"]

_SHOWN = 20


def measure_noise(
    words: Command, runs: int, policy: Policy, *, folder: Path | None, json: Path | None
) -> None:
    """Run a command several times; store and print how much it varies.

    Args:
        words: The command.
        runs: Processes.
        policy: Policy of the gate.
        folder: Where to keep the runs, None for the project's store.
        json: File for a JSON document, None for none.

    Raises:
        TargetFailedError: A process failed.
        InterruptedExperimentError: A signal arrived; finished runs are kept.
        OutputError: Something cannot be written.
    """
    try:
        found = measure_aa(
            words,
            runs,
            policy,
            store=default_store(),
            folder=folder,
            progress=open_progress("noise"),
        )
    except InterruptedExperimentError as error:
        hint = "; continue with --folder and the name of the folder"
        raise InterruptedExperimentError(error.signal, f"{error}{hint}") from None
    sys.stderr.write(f"proton noise: stored in {shown(found.file)}\n")
    if json is not None:
        write_output(json, encode_document(_document(found)))
    if json != STDOUT:
        open_console().print("\n".join(_lines(found)), soft_wrap=True)


def _document(found: MeasuredNoise) -> dict[str, Any]:
    alarms = found.false_alarms
    return {
        **found.noise.to_document(),
        "false_alarms": {"events": alarms.events, "gates": alarms.trials, "rate": alarms.value},
        "file": str(found.file),
        "folder": str(found.folder),
    }


def _lines(found: MeasuredNoise) -> Iterator[str]:
    alarms = found.false_alarms
    yield (
        f"the gate failed {alarms.events} of {alarms.trials} times between halves of these "
        f"{found.noise.runs} runs ({100 * alarms.value:.1f} %)"
    )
    floors = sorted(found.noise.paths, key=_floor, reverse=True)
    yield "standard deviation from run to run, noisiest paths first:"
    for each in floors[:_SHOWN]:
        path = visible(" > ".join(each.path), 400) or "whole run"
        yield f"  {percent_text(_floor(each)).lstrip('+'):>8}  {each.metric}  {path}"
    if len(floors) > _SHOWN:
        yield f"  and {len(floors) - _SHOWN} more"


def _floor(each: PathNoise) -> float:
    """Return the relative standard deviation between runs, 0 if it is unknown."""
    variance = each.run.variance
    return math.expm1(math.sqrt(variance)) if math.isfinite(variance) else 0.0
