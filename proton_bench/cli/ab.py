"""``proton ab``: is the new code slower than the old one, on this machine and now?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.gate_options import (
    InconclusiveOption,
    JsonOption,
    MetricOption,
    PolicyOption,
    ThresholdOption,
    passes,
)
from proton_bench.cli.measured import Recording, asked_policy, measured_command, split_command
from proton_bench.cli.options import (
    BackendOption,
    ContextOption,
    HookOption,
    ModeOption,
    TargetArgument,
)
from proton_bench.cli.verdict import show_verdict
from proton_bench.errors import InterruptedExperimentError, UsageError
from proton_bench.experiment.ab import begin_ab, resume_ab
from proton_bench.experiment.progress import open_progress
from proton_bench.experiment.request import Request
from proton_bench.experiment.store import kept_folder, new_folder, shown, store_folder
from proton_bench.experiment.worktree import Revision, find_revision
from proton_bench.gate import Policy

__all__ = ["CONTEXT_SETTINGS", "command"]

CONTEXT_SETTINGS = {"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]}
_LAST = "last"


def command(
    target: TargetArgument = None,
    base_ref: Annotated[
        str | None,
        typer.Option(
            "--base-ref",
            metavar="REF",
            help="Compare the working tree with this commit, branch or tag (default: HEAD).",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="CMD", help="Compare with this command instead."),
    ] = None,
    setup: Annotated[
        str | None,
        typer.Option(
            "--setup",
            metavar="CMD",
            help="Give each side a virtual environment, made by this shell command in its tree.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            metavar="R",
            min=1,
            help="Run so many pairs and judge all of them. Without it 3 pairs, and 6 fresh ones "
            "for paths that look odd.",
        ),
    ] = None,
    metric: MetricOption = None,
    thresholds: ThresholdOption = None,
    policy: PolicyOption = None,
    inconclusive: InconclusiveOption = "fail",
    json: JsonOption = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="FOLDER|last",
            help="Go on with an experiment that was interrupted; nothing else is given then.",
        ),
    ] = None,
    backend: BackendOption = None,
    context_source: ContextOption = "shadow",
    mode: ModeOption = None,
    hook: HookOption = None,
) -> int:
    """Run two versions of a program in turn and tell which call paths got slower.

    Each run is a fresh process. Exits with 0 pass, 1 regression, 2 usage or a run that failed, 3
    inconclusive, 4 incomparable.
    """
    if resume is not None:
        if target or base_ref or base or setup or runs:
            raise UsageError("--resume goes on with what was asked before: give nothing else")
        return _resume(resume, json)
    recording = Recording(backend, context_source, mode, hook)
    new = measured_command(target or [], recording)
    request = Request(
        command=new,
        base=measured_command(split_command(base), recording) if base else None,
        revision=_revision(base_ref, base=base, setup=setup, folder=new.options.folder),
        setup=setup or "",
        runs=runs or 0,
        policy=_policy(policy, thresholds, metric, passes(inconclusive)),
    )
    return _begin(request, json)


def _policy(
    file: Path | None, thresholds: list[str] | None, metric: str | None, passing: bool
) -> Policy:
    return asked_policy(file, thresholds or [], metric=metric, inconclusive_passes=passing)


def _revision(
    ref: str | None, *, base: str | None, setup: str | None, folder: str
) -> Revision | None:
    if base is None:
        return find_revision(ref or "HEAD", folder)
    if ref is not None or setup is not None:
        raise UsageError("--base CMD stands alone: --base-ref and --setup are about versions")
    return None


def _begin(request: Request, json: Path | None) -> int:
    folder = new_folder("ab", store_folder())
    try:
        result = begin_ab(request, folder, open_progress("ab"))
    except InterruptedExperimentError as error:
        raise _told(error, folder) from None
    sys.stderr.write(f"proton ab: every run is kept in {shown(folder)}\n")
    show_verdict(result, json)
    return result.exit_code


def _resume(name: str, json: Path | None) -> int:
    folder = kept_folder("ab", store_folder()) if name == _LAST else Path(name).resolve()
    try:
        result = resume_ab(folder, open_progress("ab"))
    except InterruptedExperimentError as error:
        raise _told(error, folder) from None
    show_verdict(result, json)
    return result.exit_code


def _told(error: InterruptedExperimentError, folder: Path) -> InterruptedExperimentError:
    return InterruptedExperimentError(
        error.signal, f"{error}; go on with `proton ab --resume {shown(folder)}`"
    )
