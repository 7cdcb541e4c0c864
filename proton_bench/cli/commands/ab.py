"""``proton ab``: is the new code slower than the old one, on this machine and now?"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.cli.options import (
    CONTEXT_SETTINGS,
    EverythingOption,
    GithubOption,
    JsonFileOption,
    JunitOption,
    MarkdownOption,
    PairsOption,
    PolicyOption,
    SetOption,
    SetupOption,
    TargetArgument,
    ThresholdOption,
    chosen_policy,
    default_store,
)
from proton_bench.cli.target import (
    measured_command,
    split_command,
    split_recording,
)
from proton_bench.errors import (
    InterruptedExperimentError,
    ProtonError,
    UsageError,
)
from proton_bench.support.reporting import report_error

if TYPE_CHECKING:
    from proton_bench.cli.outputs import Outputs
    from proton_bench.gate.processes import Revision
    from proton_bench.gate.verdict.result import Outcome

__all__ = ["CONTEXT_SETTINGS", "command"]

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
    setup: SetupOption = None,
    runs: PairsOption = None,
    threshold: ThresholdOption = None,
    policy: PolicyOption = None,
    settings: SetOption = None,
    json: JsonFileOption = None,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    github: GithubOption = False,
    everything: EverythingOption = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="FOLDER|last",
            help="Continue an interrupted experiment with its own options.",
        ),
    ] = None,
) -> int:
    """Run two versions of a program in turn and show which call paths got slower.

    TARGET after -- may begin with the options -b, -c, -m and -k of `proton run`, for both sides.
    Every run is a fresh process and is kept. Exits with 0 if nothing got slower and 1 if something
    did; 2 is wrong usage or a failed run, 3 undecided, 4 not comparable.
    """
    from proton_bench.cli.outputs import Outputs
    from proton_bench.gate.ab import Request, begin_ab, resume_ab
    from proton_bench.gate.policy import PolicyWords
    from proton_bench.gate.progress import open_progress
    from proton_bench.gate.runs import kept_folder, new_folder

    outputs = Outputs(everything, json, markdown, junit, github)
    if resume is not None:
        kept = (target, base_ref, base, setup, runs, threshold, policy, settings)
        if any(option is not None for option in kept):
            raise UsageError(
                "--resume continues an experiment with its own options: leave the other options out"
            )
        is_last = resume == _LAST
        folder = kept_folder("ab", default_store()) if is_last else Path(resume).resolve()
        return _compare(folder, outputs, lambda: resume_ab(folder, open_progress("ab")))
    new_words, recording = split_recording(target or [])
    new = measured_command(new_words, recording)
    request = Request(
        command=new,
        base=measured_command(split_command(base), recording) if base is not None else None,
        revision=_revision(base_ref, base=base, setup=setup, folder=new.options.folder),
        setup=setup or "",
        runs=runs or 0,
        policy=chosen_policy(PolicyWords(policy, threshold or (), settings or ())),
    )
    folder = new_folder("ab", default_store())
    return _compare(folder, outputs, lambda: begin_ab(request, folder, open_progress("ab")))


def _revision(
    ref: str | None, *, base: str | None, setup: str | None, folder: str
) -> Revision | None:
    """Return the version to compare with; None if it is a command."""
    from proton_bench.gate.processes import changed_files, find_revision

    if base is not None:
        if ref is not None or setup is not None:
            raise UsageError("--base CMD excludes --base-ref and --setup: give one or the other")
        return None
    revision = find_revision("HEAD" if ref is None else ref, folder)
    if not changed_files(revision):
        raise UsageError(
            f"no file that git tracks changed since {revision.ref!a}, so both sides would run "
            "the same code: name another revision with --base-ref, such as --base-ref HEAD~1, "
            "or a command with --base CMD"
        )
    return revision


def _compare(folder: Path, outputs: Outputs, compare: Callable[[], Outcome]) -> int:
    """Run an experiment, show its outcome, also a failure, and return its exit code."""
    from proton_bench.gate.project import shown
    from proton_bench.gate.runs import drop_unused
    from proton_bench.gate.verdict.result import Outcome
    from proton_bench.report.words.gate import explained

    try:
        outcome = compare()
    except InterruptedExperimentError as error:
        hint = f"{error}; continue with `proton ab --resume {shown(folder)}`"
        raise InterruptedExperimentError(error.signal, hint) from None
    except ProtonError as error:
        if isinstance(error, UsageError):
            drop_unused(folder)
        code = report_error(error)
        outputs.write(Outcome.failed(error.report()))
        return code
    sys.stderr.write(f"proton ab: every run is kept in {shown(folder)}\n")
    outputs.write(explained(outcome))
    return outcome.result.exit_code
