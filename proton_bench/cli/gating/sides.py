"""The two sides of ``proton gate``: recorded runs, and runs that a command makes now."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from proton_bench.cli.measured import measured_command, split_recording
from proton_bench.errors import UsageError
from proton_bench.gate.baselines import BaselineStore, Side, check_name, read_base, read_sides
from proton_bench.gate.experiment import Experiment, fresh_runs
from proton_bench.gate.policy import Policy
from proton_bench.gate.project import shown
from proton_bench.gate.runs import new_folder
from proton_bench.gate.verdict.result import Outcome
from proton_bench.report.words.gate_words import explained

__all__ = ["Fresh", "Sides", "Words", "read_words"]

_MARK = "--"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of the command line about the sides.

    Attributes:
        positional: Words without an option, with the ``--`` in front of a command.
        runs: Of ``--runs``, None without it.
        save: Baseline that the new side is saved for.
    """

    positional: Sequence[str]
    runs: int | None = None
    save: str | None = None


@dataclass(frozen=True, slots=True)
class Fresh:
    """A new side that has yet to run.

    Attributes:
        words: The command, as `proton run` takes it, with options in front.
        most: Processes at most.
        is_saved: Whether to run all of them, even without a base, because they may become one.
    """

    words: Sequence[str]
    most: int
    is_saved: bool

    def run(
        self, base: Sequence[str], policy: Policy, store: BaselineStore
    ) -> tuple[Outcome, Side]:
        """Record and judge the new runs; nothing runs if there is nothing to compare with.

        Args:
            base: Words for the base.
            policy: The policy.
            store: Where baselines, and the runs are kept.

        Raises:
            UsageError: A run of the base is empty, or the words are not a command.
            ProfileFormatError: A file of the base is corrupt.
            TargetFailedError: A process failed; the message has the end of its output.
            InterruptedExperimentError: A signal arrived; finished runs are kept.
            OutputError: Something cannot be written.
        """
        command = measured_command(*split_recording(self.words))
        before = read_base(base, store)
        if not (before.runs or self.is_saved):
            return _gated(Experiment(before, Side(()), policy))
        place = new_folder("gate", store.folder)
        fewest = self.most if self.is_saved else policy.runs
        with fresh_runs(command, folder=place, fewest=fewest, most=self.most) as fresh:
            outcome = _gated(Experiment(before, fresh, policy))
        sys.stderr.write(f"proton gate: every run is kept in {shown(place)}\n")
        return outcome


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides before anything was read.

    Attributes:
        base: Words for the base.
        new: Words for the new side, or how to make it.
    """

    base: Sequence[str]
    new: Sequence[str] | Fresh

    def run(self, policy: Policy, store: BaselineStore) -> tuple[Outcome, Side]:
        """Return the outcome and the new side; see `read_sides` and `Fresh.run`."""
        if isinstance(self.new, Fresh):
            return self.new.run(self.base, policy, store)
        before, after = read_sides(self.base, self.new, store)
        return _gated(Experiment(before, after, policy))


def _gated(experiment: Experiment) -> tuple[Outcome, Side]:
    outcome = explained(experiment.run())
    assert isinstance(experiment.new, Side)
    return outcome, experiment.new


def read_words(words: Words) -> Sides:
    """Return the sides that the words of a command line name.

    Raises:
        UsageError: They do not make two sides.
    """
    before, mark, after = _split(words.positional)
    if words.runs is not None:
        return _with_command(words, before, after, has_mark=mark)
    if before and after:
        raise UsageError(
            f"a command after -- needs --runs R: write `--runs R {' '.join(before)} -- CMD` to "
            "run it in R fresh processes, or leave -- out to compare two recorded sides"
        )
    sides = [*before, *after]
    if len(sides) != 2:
        raise UsageError(
            "a gate needs two sides, BASE and NEW: each a profile, a folder of runs or the name "
            "of a baseline. To run a command R times write --runs R BASE -- CMD"
        )
    return Sides(sides[:1], sides[1:])


def _split(words: Sequence[str]) -> tuple[list[str], bool, list[str]]:
    listed = list(words)
    if _MARK not in listed:
        return listed, False, []
    place = listed.index(_MARK)
    return listed[:place], True, listed[place + 1 :]


def _with_command(
    words: Words, before: Sequence[str], after: Sequence[str], *, has_mark: bool
) -> Sides:
    if not after:
        hint = "" if has_mark else ", such as `proton gate --runs 6 main -- bench.py`"
        raise UsageError(f"--runs R needs a command: write it after --{hint}")
    if words.save is not None:
        check_name(words.save)
    base = list(before)
    if len(base) > 1:
        raise UsageError(
            f"--runs R records the new side, so one base stands before --, not {len(base)} words; "
            "put runs of one side into one folder and name that"
        )
    if not base and words.save is not None:
        base = [f"baseline:{words.save}"]
    if not base:
        raise UsageError(
            "there is nothing to compare the command with: name a profile, a folder of runs or a "
            "baseline before --, or the baseline to save it for with --save NAME"
        )
    fresh = Fresh(after, words.runs or 0, is_saved=words.save is not None)
    return Sides(base, fresh)
