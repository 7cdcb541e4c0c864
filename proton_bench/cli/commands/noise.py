"""``proton noise``: what this machine does on its own, and what that makes of the gate."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from proton_bench.cli.gating.options import (
    PolicyOption,
    PolicyWords,
    SetOption,
    ThresholdOption,
    chosen_policy,
)
from proton_bench.cli.measured import (
    JsonFileOption,
    MetricOption,
    Recording,
    about_metric,
    measured_command,
)
from proton_bench.cli.options import (
    CONTEXT_SETTINGS,
    BackendOption,
    ContextOption,
    HookOption,
    ModeOption,
    TargetArgument,
)
from proton_bench.cli.output_file import STDOUT, write_output
from proton_bench.cli.project import default_store
from proton_bench.errors import InterruptedExperimentError
from proton_bench.gate.experiment.aa import MeasuredNoise, measure_aa
from proton_bench.gate.experiment.folders.store import shown
from proton_bench.gate.experiment.progress import open_progress
from proton_bench.gate.machine.noise import PathNoise
from proton_bench.report.json.tree import encode_document
from proton_bench.report.words.quantity import percent_text
from proton_bench.support.console import open_console
from proton_bench.support.text import visible

__all__ = ["CONTEXT_SETTINGS", "command"]

_SHOWN = 20


def command(
    target: TargetArgument = None,
    runs: Annotated[int, typer.Option("--runs", metavar="R", min=8, help="Fresh processes.")] = 10,
    metric: MetricOption = None,
    threshold: ThresholdOption = None,
    policy: PolicyOption = None,
    settings: SetOption = None,
    json: JsonFileOption = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Keep the runs here; those that are here already are not run again.",
        ),
    ] = None,
    backend: BackendOption = None,
    context_source: ContextOption = "shadow",
    mode: ModeOption = None,
    hook: HookOption = None,
) -> int:
    """Run one program several times and keep how much it differs from itself on this machine.

    ab and gate take that as what to expect of paths that few runs say little of.
    """
    policies = PolicyWords(policy, threshold or (), settings or ())
    asked = about_metric(chosen_policy(policies), metric)
    words = measured_command(target or [], Recording(backend, context_source, mode, hook))
    place = folder.absolute() if folder else None
    try:
        found = measure_aa(
            words,
            runs,
            asked,
            store=default_store(),
            folder=place,
            progress=open_progress("noise"),
        )
    except InterruptedExperimentError as error:
        hint = "; name the folder with --folder to go on"
        raise InterruptedExperimentError(error.signal, f"{error}{hint}") from None
    sys.stderr.write(f"proton noise: kept as {shown(found.file)}\n")
    if json is not None:
        write_output(json, encode_document(_document(found)))
    if json != STDOUT:
        open_console().print("\n".join(_lines(found)), soft_wrap=True)
    return 0


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
        f"the gate failed {alarms.events} of {alarms.trials} times when halves of these "
        f"{found.noise.runs} runs were judged by each other ({100 * alarms.value:.1f} %)"
    )
    floors = sorted(found.noise.paths, key=_floor, reverse=True)
    yield "one run differs from the next by (standard deviation), noisiest paths first:"
    for each in floors[:_SHOWN]:
        path = visible(" > ".join(each.path), 400)
        yield f"  {percent_text(_floor(each)).lstrip('+'):>8}  {each.metric}  {path}"
    if len(floors) > _SHOWN:
        yield f"  and {len(floors) - _SHOWN} more"


def _floor(each: PathNoise) -> float:
    """Return the standard deviation between runs as a part, 0 where it is not known."""
    variance = each.run.variance
    return math.expm1(math.sqrt(variance)) if math.isfinite(variance) else 0.0
