"""``proton ab``: is the new code slower than the old one, on this machine and now?"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.gating.options import (
    ChartsOption,
    EverythingOption,
    GithubOption,
    InconclusiveOption,
    JunitOption,
    MarkdownOption,
    PolicyOption,
    PolicyWords,
    SetOption,
    ThresholdOption,
    chosen_policy,
)
from proton_bench.cli.gating.outputs import Outputs
from proton_bench.cli.measured import (
    JsonFileOption,
    MetricOption,
    Recording,
    about_metric,
    measured_command,
    split_command,
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
from proton_bench.errors import InterruptedExperimentError, ProtonError, UsageError
from proton_bench.gate.experiment.ab import begin_ab, resume_ab
from proton_bench.gate.experiment.folders.store import kept_folder, new_folder, shown
from proton_bench.gate.experiment.processes.worktree import Revision, find_revision
from proton_bench.gate.experiment.progress import open_progress
from proton_bench.gate.experiment.request import Request
from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.judge.result import GateResult
from proton_bench.report.ci.chart_files import read_chart_files
from proton_bench.report.json.gate import gate_document
from proton_bench.report.json.tree import encode_document
from proton_bench.support.reporting import report_error

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
    setup: Annotated[
        str | None,
        typer.Option(
            "--setup",
            metavar="CMD",
            help="Give each side a virtual environment, filled by this shell command in its tree.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            metavar="R",
            min=1,
            help="Run R pairs and judge all paths by them. Without it 3 pairs of everything, and 6 "
            "fresh ones where something looks odd.",
        ),
    ] = None,
    metric: MetricOption = None,
    threshold: ThresholdOption = None,
    policy: PolicyOption = None,
    settings: SetOption = None,
    inconclusive: InconclusiveOption = None,
    json: JsonFileOption = None,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    github: GithubOption = False,
    charts: ChartsOption = None,
    everything: EverythingOption = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="FOLDER|last",
            help="Go on with what was interrupted, as it was asked for then.",
        ),
    ] = None,
    backend: BackendOption = None,
    context_source: ContextOption = "shadow",
    mode: ModeOption = None,
    hook: HookOption = None,
) -> int:
    """Run two versions of a program in turn and tell which call paths got slower.

    Every run is a fresh process and is kept. Exits with 0 where nothing got slower and 1 where
    something did; 2 is wrong usage or a run that failed, 3 not known, 4 not comparable.
    """
    store = default_store()
    files = read_chart_files(charts or (), "--write")
    outputs = _Shown(Outputs(everything, json == STDOUT, markdown, junit, github, files), json)
    if resume is not None:
        if target or base_ref or base or setup or runs:
            raise UsageError("--resume goes on with what was asked for then: give no other request")
        folder = kept_folder("ab", store) if resume == _LAST else Path(resume).resolve()
        return outputs.outcome(folder, lambda: resume_ab(folder, open_progress("ab"), store=store))
    words = PolicyWords(policy, threshold or (), settings or (), inconclusive=inconclusive)
    recording = Recording(backend, context_source, mode, hook)
    new = measured_command(target or [], recording)
    request = Request(
        command=new,
        base=measured_command(split_command(base), recording) if base else None,
        revision=_revision(base_ref, base=base, setup=setup, folder=new.options.folder),
        setup=setup or "",
        runs=runs or 0,
        policy=about_metric(chosen_policy(words), metric),
    )
    folder = new_folder("ab", store)
    return outputs.outcome(
        folder, lambda: begin_ab(request, folder, open_progress("ab"), store=store)
    )


def _revision(
    ref: str | None, *, base: str | None, setup: str | None, folder: str
) -> Revision | None:
    if base is None:
        return find_revision(ref or "HEAD", folder)
    if ref is not None or setup is not None:
        raise UsageError("--base CMD stands alone: --base-ref and --setup are about versions")
    return None


@dataclass(frozen=True, slots=True)
class _Shown:
    """Where the verdict goes."""

    outputs: Outputs
    json: Path | None

    def outcome(self, folder: Path, compare: Callable[[], GateResult]) -> int:
        """Show what comes out of an experiment, also that nothing does, and return its code."""
        try:
            result = compare()
        except InterruptedExperimentError as error:
            hint = f"{error}; go on with `proton ab --resume {shown(folder)}`"
            raise InterruptedExperimentError(error.signal, hint) from None
        except ProtonError as error:
            code = report_error(error)
            self._write(Outcome.failed(error.report()))
            return code
        sys.stderr.write(f"proton ab: every run is kept in {shown(folder)}\n")
        self._write(Outcome(result))
        return result.exit_code

    def _write(self, outcome: Outcome) -> None:
        if self.json is not None and self.json != STDOUT:
            write_output(self.json, encode_document(gate_document(outcome)))
        self.outputs.write(outcome)
