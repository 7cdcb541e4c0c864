"""``proton gate``: whether new runs are slower than base runs, for people and for CI."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.gating.options import (
    BaseOption,
    ChartsOption,
    EverythingOption,
    GithubOption,
    InconclusiveOption,
    JunitOption,
    MarkdownOption,
    NewOption,
    NoiseOption,
    NoNoiseOption,
    PolicyOption,
    PolicyWords,
    QuarantineOption,
    RunsOption,
    SetOption,
    SidesArgument,
    StoreOption,
    ThresholdOption,
    chosen_policy,
)
from proton_bench.cli.gating.outputs import Outputs
from proton_bench.cli.gating.sides import Sides, Words, read_words
from proton_bench.cli.measured import Recording
from proton_bench.cli.options import BackendOption, ContextOption, HookOption, ModeOption
from proton_bench.cli.project import default_store
from proton_bench.errors import InterruptedExperimentError, OutputError, ProtonError, UsageError
from proton_bench.gate.baseline.noise_file import read_noise
from proton_bench.gate.baseline.reference import Side
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.gate.experiment.judged import judged
from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.machine.noise import Noise
from proton_bench.report.ci.chart_files import read_chart_files
from proton_bench.report.words.diff_summary import certain_headline
from proton_bench.support.reporting import report_error

__all__ = ["command"]


def command(
    sides: SidesArgument = None,
    base: BaseOption = None,
    new: NewOption = None,
    runs: RunsOption = None,
    threshold: ThresholdOption = None,
    policy: PolicyOption = None,
    settings: SetOption = None,
    quarantine: QuarantineOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="New and removed paths fail.")] = False,
    ignore_devices: Annotated[
        bool,
        typer.Option("--ignore-devices", help="Compare what ran on different kinds of devices."),
    ] = False,
    raw_names: Annotated[
        bool, typer.Option("--raw-names", help="Names have to agree to the letter.")
    ] = False,
    inconclusive: InconclusiveOption = None,
    noise: NoiseOption = None,
    no_noise: NoNoiseOption = False,
    store: StoreOption = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save", metavar="NAME", help="Save the new runs as a candidate of this baseline."
        ),
    ] = None,
    everything: EverythingOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document, all rows in it.")
    ] = False,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    github: GithubOption = False,
    charts: ChartsOption = None,
    backend: BackendOption = None,
    context_source: ContextOption = "shadow",
    mode: ModeOption = None,
    hook: HookOption = None,
) -> int:
    """Judge new runs by base runs; exits with 0 where nothing got slower and 1 where something did.

    With --runs R the new runs are made: CMD, as `proton run` takes it, in R fresh processes. 2 is
    wrong usage or a corrupt file, 3 not known, 4 not comparable, 5 no baseline.
    """
    files = read_chart_files(charts or (), "--write")
    outputs = Outputs(everything, as_json, markdown, junit, github, files)
    flags = {"strict": strict, "ignore-devices": ignore_devices, "raw-names": raw_names}
    words = PolicyWords(
        policy,
        threshold or (),
        settings or (),
        quarantine or (),
        [key for key, is_set in flags.items() if is_set],
        inconclusive,
    )
    asked = Words(
        positional=sides or (),
        base=base or (),
        new=new or (),
        runs=runs,
        recording=Recording(backend, context_source, mode, hook),
        save=save,
    )
    folder = store or default_store()
    baselines = BaselineStore(folder)
    try:
        wanted = _Wanted(read_words(asked), words, _Known(noise, folder, is_refused=no_noise))
        outcome, after = _answered(wanted, baselines)
    except InterruptedExperimentError:
        raise
    except ProtonError as error:
        return _refuse(error, outputs)
    outputs.write(outcome)
    if save is not None and after.runs:
        entry = baselines.save(save, after.runs)
        sys.stderr.write(f"proton: saved as candidate {entry.reference}\n")
    return outcome.result.exit_code


def _refuse(error: ProtonError, outputs: Outputs) -> int:
    """Say in all outputs what is wrong; what is wrong with these comes second."""
    code = report_error(error)
    try:
        outputs.write(Outcome.failed(error.report()))
    except OutputError as other:
        report_error(other)
    return code


@dataclass(frozen=True, slots=True)
class _Known:
    """Where to learn of the machine's noise: a file, or what is kept below a folder."""

    file: Path | None
    folder: Path
    is_refused: bool

    def named(self) -> Noise | None:
        """Return the noise of the file.

        Raises:
            UsageError: The file cannot be read, or was both named and refused.
            ProfileFormatError: It is corrupt.
        """
        if self.file is not None and self.is_refused:
            raise UsageError("--noise FILE and --no-noise exclude each other: give one of them")
        return None if self.file is None else read_noise(self.file)

    @property
    def store(self) -> Path | None:
        """Folder below which noise is looked for, None for nowhere."""
        return None if self.is_refused else self.folder


@dataclass(frozen=True, slots=True)
class _Wanted:
    sides: Sides
    policy: PolicyWords
    known: _Known


def _answered(wanted: _Wanted, store: BaselineStore) -> tuple[Outcome, Side]:
    policy = chosen_policy(wanted.policy)
    noise = wanted.known.named()
    before, after = wanted.sides.read(store, wanted.known.folder)
    kept = wanted.known.store
    outcome = judged(before, after, policy, explain=certain_headline, noise=noise, store=kept)
    return outcome, after
