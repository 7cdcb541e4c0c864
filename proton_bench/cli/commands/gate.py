"""``proton gate``: whether new runs are slower than base runs, for people and for CI."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.cli.files import STDOUT
from proton_bench.cli.options import (
    EverythingOption,
    GithubOption,
    JunitOption,
    MarkdownOption,
    PolicyOption,
    RunsOption,
    SetOption,
    SidesArgument,
    StoreOption,
    ThresholdOption,
    chosen_policy,
    default_store,
)
from proton_bench.cli.target import measured_command, split_recording
from proton_bench.errors import (
    InterruptedExperimentError,
    OutputError,
    ProtonError,
    UsageError,
)
from proton_bench.support.reporting import report_error

if TYPE_CHECKING:
    from proton_bench.analysis.run import Run
    from proton_bench.cli.outputs import Outputs
    from proton_bench.gate.baselines import BaselineStore
    from proton_bench.gate.policy import Policy
    from proton_bench.gate.verdict.result import Outcome


_MARK = "--"


def command(
    sides: SidesArgument = None,
    runs: RunsOption = None,
    threshold: ThresholdOption = None,
    policy: PolicyOption = None,
    settings: SetOption = None,
    store: StoreOption = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save", metavar="NAME", help="Save the new runs as a candidate of this baseline."
        ),
    ] = None,
    everything: EverythingOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document with all rows.")
    ] = False,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    github: GithubOption = False,
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Judge the history of baselines, files and folders, as `proton history` reads "
            "them: fails if a path got worse and the step is not acknowledged.",
        ),
    ] = False,
) -> int:
    """Compare new runs with base runs; exits with 0 if nothing got slower and 1 if something did.

    With --runs R, CMD is recorded as with `proton run` in R fresh processes; it may begin with the
    options -b, -c, -m and -k of that. 2 is wrong usage or a corrupt file, 3 undecided, 4 not
    comparable, 5 no baseline.
    """
    from proton_bench.cli.outputs import Outputs
    from proton_bench.gate.baselines import BaselineStore, read_sides
    from proton_bench.gate.experiment import gate_recorded
    from proton_bench.gate.policy import PolicyWords
    from proton_bench.report.words.gate import explained

    outputs = Outputs(everything, STDOUT if as_json else None, markdown, junit, github)
    words = PolicyWords(policy, threshold or (), settings or ())
    if history:
        from proton_bench.cli.commands.history import judge_history

        unused = {
            "--runs": runs,
            "--save": save,
            "--markdown": markdown,
            "--junit": junit,
            "--github": github,
        }
        return judge_history(sides or (), words, outputs, store=store, unused=unused)
    baselines = BaselineStore(store or default_store())
    try:
        base, new = read_words(sides or (), runs=runs, save=save)
        gated = chosen_policy(words)
        if runs is None:
            before, after = read_sides(base, new, baselines)
            outcome, measured = gate_recorded(before, after.runs, gated), after.runs
        else:
            outcome, measured = _recorded(
                base, new, gated, baselines, most=runs, is_saved=save is not None
            )
        outcome = explained(outcome)
    except InterruptedExperimentError:
        raise
    except ProtonError as error:
        return _refuse(error, outputs)
    try:
        outputs.write(outcome)
    finally:  # an output that cannot be written costs no runs
        if save is not None and measured:
            entry = baselines.save(save, measured)
            sys.stderr.write(
                f"proton: saved as candidate {entry.reference}; `proton baseline promote {save}` "
                "makes it the base of later gates\n"
            )
    return outcome.result.exit_code


def _recorded(
    base: Sequence[str],
    words: Sequence[str],
    policy: Policy,
    store: BaselineStore,
    *,
    most: int,
    is_saved: bool,
) -> tuple[Outcome, tuple[Run, ...]]:
    """Record the new runs and compare them; nothing runs if there is nothing to compare with.

    Args:
        base: Words for the base.
        words: The command, as `proton run` takes it, with options in front.
        policy: The policy.
        store: Where baselines, and the runs are kept.
        most: Processes at most.
        is_saved: Whether to run all of them, even without a base, because they may become one.
    """
    from proton_bench.gate.baselines import read_side
    from proton_bench.gate.experiment import fresh_runs, gate_fresh, gate_recorded
    from proton_bench.gate.project import shown
    from proton_bench.gate.runs import new_folder

    command = measured_command(*split_recording(words))
    before = read_side(base, store)
    if not (before.runs or is_saved):
        return gate_recorded(before, (), policy), ()
    place = new_folder("gate", store.folder)
    fewest = most if is_saved else policy.runs
    with fresh_runs(command, folder=place, fewest=fewest, most=most) as fresh:
        outcome, runs = gate_fresh(before, fresh, policy)
    sys.stderr.write(f"proton gate: every run is kept in {shown(place)}\n")
    return outcome, runs


def read_words(
    words: Sequence[str], *, runs: int | None = None, save: str | None = None
) -> tuple[list[str], list[str]]:
    """Return the words of the base and those of the new side, with --runs its command.

    Args:
        words: Words without an option, with the ``--`` in front of a command.
        runs: Of ``--runs``, None without it.
        save: Baseline that the new side is saved for.

    Raises:
        UsageError: They do not make two sides.
    """
    from proton_bench.gate.baselines import check_name

    place = words.index(_MARK) if _MARK in words else len(words)
    before, after = list(words[:place]), list(words[place + 1 :])
    if runs is None:
        if before and after:
            raise UsageError(
                f"a command after -- needs --runs R: write `--runs R {' '.join(before)} -- CMD` "
                "to run it in R fresh processes, or leave -- out to compare two recorded sides"
            )
        sides = before + after
        if len(sides) != 2:
            raise UsageError(
                "a gate needs two sides, BASE and NEW: each a profile, a folder of runs or the "
                "name of a baseline. To run a command R times write --runs R BASE -- CMD"
            )
        return sides[:1], sides[1:]
    if not after:
        hint = "" if _MARK in words else ", such as `proton gate --runs 6 main -- bench.py`"
        raise UsageError(f"--runs R needs a command: write it after --{hint}")
    if save is not None:
        check_name(save)
    if len(before) > 1:
        raise UsageError(
            f"--runs R records the new side, so one base stands before --, not {len(before)} "
            "words; put runs of one side into one folder and name that"
        )
    if not (before or save):
        raise UsageError(
            "there is nothing to compare the command with: name a profile, a folder of runs or a "
            "baseline before --, or the baseline to save it for with --save NAME"
        )
    return before or [f"baseline:{save}"], after


def _refuse(error: ProtonError, outputs: Outputs) -> int:
    """Write the error to all outputs; an error of an output comes second."""
    from proton_bench.gate.verdict.result import Outcome

    code = report_error(error)
    try:
        outputs.write(Outcome.failed(error.report()))
    except OutputError as other:
        report_error(other)
    return code
