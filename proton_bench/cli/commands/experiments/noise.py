"""``proton noise``: measure how much runs vary on this machine, and how that affects the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.gating.options import (
    PolicyOption,
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

__all__ = ["CONTEXT_SETTINGS", "command"]


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
            help="Keep the runs here; runs that are already here count too.",
        ),
    ] = None,
    backend: BackendOption = None,
    context_source: ContextOption = "shadow",
    mode: ModeOption = None,
    hook: HookOption = None,
) -> int:
    """Run one program several times and store how much it varies on this machine.

    ab and gate use this as prior noise when there are few runs.
    """
    from proton_bench.cli.work.experiments.noise import measure_noise
    from proton_bench.gate.policy.policy_words import PolicyWords

    policies = PolicyWords(policy, threshold or (), settings or ())
    asked = about_metric(chosen_policy(policies), metric)
    words = measured_command(target or [], Recording(backend, context_source, mode, hook))
    place = folder.absolute() if folder else None
    measure_noise(words, runs, asked, folder=place, json=json)
    return 0
