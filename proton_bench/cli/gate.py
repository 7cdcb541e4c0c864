"""``proton gate``: whether new runs are slower than base runs, for people and for CI."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.analysis.compare import CompareOptions, compare
from proton_bench.baseline import BaselineStore, Side, read_noise, read_sides
from proton_bench.capture.runner import report_error
from proton_bench.cli.gate_options import (
    BaseOption,
    EverythingOption,
    GithubOption,
    InconclusiveOption,
    JunitOption,
    MarkdownOption,
    NewOption,
    NoiseOption,
    PolicyOption,
    PolicyWords,
    QuarantineOption,
    SetOption,
    SidesArgument,
    StoreOption,
    ThresholdOption,
    chosen_policy,
)
from proton_bench.cli.gate_outputs import Outputs
from proton_bench.cli.project import default_store
from proton_bench.errors import OutputError, ProtonError, UsageError
from proton_bench.gate import Context, GateResult, Policy, SuiteVerdict, judge
from proton_bench.report.diff_summary import certain_headline
from proton_bench.report.gate_outcome import Outcome

__all__ = ["command"]


def command(
    sides: SidesArgument = None,
    base: BaseOption = None,
    new: NewOption = None,
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
) -> int:
    """Judge new runs by base runs; exits with 0 where nothing got slower and 1 where something did.

    2 is wrong usage or a corrupt file, 3 not known, 4 not comparable, 5 no baseline.
    """
    outputs = Outputs(everything, as_json, markdown, junit, github)
    flags = {"strict": strict, "ignore-devices": ignore_devices, "raw-names": raw_names}
    words = PolicyWords(
        policy,
        threshold or (),
        settings or (),
        quarantine or (),
        [key for key, is_set in flags.items() if is_set],
        inconclusive,
    )
    baselines = BaselineStore(store or default_store())
    wanted = _Wanted(_sides(sides or [], base or [], new or []), words, noise)
    try:
        outcome, after = _judged(wanted, baselines)
    except ProtonError as error:
        return _refuse(error, outputs)
    outputs.write(outcome)
    if save is not None:
        entry = baselines.save(save, after.runs)
        sys.stderr.write(f"proton: saved as candidate {entry.reference}\n")
    return outcome.result.exit_code


def _refuse(error: ProtonError, outputs: Outputs) -> int:
    """Say in all outputs what is wrong; what is wrong with these comes second."""
    code = report_error(error)
    try:
        outputs.write(Outcome.failed(str(error)))
    except OutputError as other:
        report_error(other)
    return code


@dataclass(frozen=True, slots=True)
class _Wanted:
    sides: tuple[Sequence[str], Sequence[str]]
    policy: PolicyWords
    noise: Path | None


def _sides(words: list[str], base: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    if len(words) == 2:
        return [words[0], *base], [words[1], *new]
    return (base, new) if not words else (words, [])


def _judged(wanted: _Wanted, store: BaselineStore) -> tuple[Outcome, Side]:
    base, new = wanted.sides
    if not (base and new):
        raise UsageError(
            "a gate takes two sides, BASE and NEW: each a profile, a folder of runs or the name "
            "of a baseline; further runs with --base and --new"
        )
    policy = chosen_policy(wanted.policy)
    noise = read_noise(wanted.noise) if wanted.noise is not None else None
    before, after = read_sides(base, new, store)
    result = judge(before.runs, after.runs, policy, context=Context(noise=noise))
    return Outcome(result, _explanation(result, (before, after), policy), before.missing), after


def _explanation(result: GateResult, sides: tuple[Side, Side], policy: Policy) -> str:
    """Return what explains the change of the whole, where sides were compared at all."""
    if not result.metric or result.verdict is SuiteVerdict.NO_BASELINE:
        return ""
    options = CompareOptions(raw_names=policy.raw_names, ignore_devices=policy.ignore_devices)
    return certain_headline(compare(sides[0].runs, sides[1].runs, options))
