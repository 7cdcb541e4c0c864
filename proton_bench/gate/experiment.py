"""The doors to a verdict: both sides recorded, a command beside a recorded base, or two commands.

Commands are run in fresh processes, and two of them in turn, as pairs. Runs are added until every
path is decided or none are left to add. Each look at the same runs is another chance for a false
alarm, so that the looks share it (alpha spending; Lan, DeMets 1983, Biometrika 70:659): each has as
large a part as it has pairs that no earlier one could decide (the use function of Kim, DeMets 1987,
Biometrika 74:149, with power 1). The last of many looks, where noise is least, keeps a part that
finds something. The parts add up to 1 however the looks depend on one another. Separations by
states need no shares: `gate.statistics.decision`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import special

from proton_bench.analysis.run import Run
from proton_bench.analysis.view.names import with_stable_names
from proton_bench.analysis.view.select import drop_trials
from proton_bench.gate.baselines import RecordedRuns
from proton_bench.gate.loaded import Validity, check_validity
from proton_bench.gate.machine import left_out
from proton_bench.gate.policy import Policy
from proton_bench.gate.processes import Command, Revision, interruptible
from proton_bench.gate.progress import Progress, open_progress
from proton_bench.gate.runs import MANIFEST, Arm, KeptRuns, Series
from proton_bench.gate.slot import BASE, NEW, Slot, Stage, new_alone, pairs
from proton_bench.gate.statistics.arrangement import Arrangement, paired_as
from proton_bench.gate.statistics.decision import (
    FALSE_ALARMS,
    FEWEST_PAIRS_TO_FAIL,
    decide,
    weigh,
)
from proton_bench.gate.verdict.benchmarks import compared_runs, measured_runs
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.decided_checks import Context, GateChecks
from proton_bench.gate.verdict.result import (
    GateResult,
    GateRow,
    Note,
    Outcome,
    Reason,
    SuiteVerdict,
    Verdict,
    sum_up,
)
from proton_bench.model.profile import Profile
from proton_bench.support.units import count_text

# Enough for most paths of unchanged code to be certainly the same.
_FIRST_PAIRS = 4
# Of an experiment of pairs for which the user names no other limit: a busy machine needs more than
# ten, and unchanged code on a quiet one ends after four.
MOST_PAIRS = 20
# The noise of a few pairs says how many are needed within about this factor. Trying is worth it for
# a path that seems to have changed, and for those that alone keep the gate from passing.
HOPE = 2
# Clocks of fewer processes differ by chance.
_SURE_OF_CANARIES = 10
# Disturbed pairs that are replaced.
_MOST_LOST = 6
# More runs do not change these.
_HOPELESS = frozenset({Reason.NOT_COMPARABLE, Reason.NO_BASE})


class FreshRuns:
    """Runs of one command, each in a fresh process, recorded as they are asked for.

    Args:
        series: The runs so far.
        fewest: Runs before the first verdict; 0 for those that the policy needs.
        most: Runs at most.
    """

    def __init__(self, series: Series, *, fewest: int = 0, most: int = 0) -> None:
        self._series = series
        self.fewest, self.most = fewest, most

    def first(self, count: int) -> tuple[Run, ...]:
        """Return the profiles of so many runs, in the order in which they ran.

        Raises:
            TargetFailedError: A run failed or recorded nothing; the message has the end of its
                output.
            InterruptedExperimentError: A signal arrived; finished runs are kept.
            OutputError: Something cannot be written.
        """
        slots = new_alone(count)
        self._series.run(slots)
        runs = self._series.read(slots)
        return tuple(runs[slot] for slot in slots)

    def say(self, text: str) -> None:
        """Show one line between the progress."""
        self._series.progress.say(text)


@contextlib.contextmanager
def fresh_runs(
    command: Command,
    *,
    folder: Path,
    fewest: int = 0,
    most: int = 0,
    doing: str = "gate",
    progress: Progress | None = None,
) -> Iterator[FreshRuns]:
    """Yield the runs of a command; those already in the folder are not repeated.

    Args:
        command: What to run.
        folder: Folder for the runs, such as `new_folder("gate", store)`.
        fewest: See `FreshRuns`.
        most: How many are made at most; 0 if all are asked for at once.
        doing: Name of the calling command, for progress.
        progress: Gets the progress; stderr by default.

    Raises:
        UsageError: Another process records into the folder.
        OutputError: Something cannot be written.
    """
    description = {"doing": doing, "command": command.to_document()}
    exists = (folder / MANIFEST).exists()
    kept = KeptRuns.open(folder) if exists else KeptRuns.create(folder, description)
    with interruptible(), kept.in_use(), progress or open_progress(doing) as shown:
        series = Series(kept, {NEW: Arm(NEW, command)}, shown)
        series.plan(new_alone(most))
        yield FreshRuns(series, fewest=fewest, most=most)


def gate_recorded(
    base: RecordedRuns, new: Sequence[Run], policy: Policy, *, context: Context | None = None
) -> Outcome:
    """Compare runs that were recorded; the base may be missing.

    Raises:
        ProtonError: See `gate_result`.
    """
    if not new:
        nothing = GateResult(SuiteVerdict.NO_BASELINE, level=FALSE_ALARMS)
        return Outcome(nothing, problem=base.missing)
    result = gate_result(base.runs, new, policy, context=context)
    return Outcome(result, problem=base.missing)


def gate_fresh(
    base: RecordedRuns, fresh: FreshRuns, policy: Policy
) -> tuple[Outcome, tuple[Run, ...]]:
    """Compare as many fresh runs of a command as decide with a recorded base, and return them.

    Raises:
        ProtonError: See `FreshRuns.first` and `gate_result`.
    """
    for look in looks(fresh.most, fresh.fewest or policy.runs, is_asked=True):
        runs = fresh.first(look.pairs)
        context = Context(part=look.part, pairs=look.most)
        outcome = gate_recorded(base, runs, policy, context=context)
        if not look.goes_on(outcome.result, fresh.say):
            break
    return outcome, runs


@dataclass(frozen=True)
class PairedExperiment:
    """Two commands, run in turn, and a policy.

    Attributes:
        base: The command of the base.
        new: The command of the new side.
        policy: The policy.
        series: Runs both commands, and keeps their runs.
        runs: Pairs at most; 0 for `MOST_PAIRS`.
        revision: What the base is a checkout of, None for no revision.
        is_enough: Whether a result ends the experiment, whatever else is undecided.
    """

    base: Arm
    new: Arm
    policy: Policy
    series: Series
    runs: int = 0
    revision: Revision | None = None
    is_enough: Callable[[GateResult], bool] = lambda result: False

    def run(self) -> GateResult:
        """Record pairs, and compare both sides.

        Raises:
            TargetFailedError: A run failed or recorded nothing; the message names its side.
            InterruptedExperimentError: A signal arrived; finished runs are kept.
            ProtonError: See `gate_result`; or something cannot be written.
        """
        warm_up = pairs(Stage.WARM_UP, 1)
        most = self.runs or MOST_PAIRS
        self.series.plan([*warm_up, *self._slots(most)])
        self.series.run(warm_up)
        validity = check_validity(self.series.kept, self.revision)
        if validity.fatal:
            return _incomparable(validity)
        first, second = (self.series.read(warm_up)[slot] for slot in warm_up)
        hopeless = self._compared(paired_as([first], [second], [True]))
        if not _HOPELESS.isdisjoint(note.reason for note in hopeless.notes):
            return replace(hopeless, notes=(*hopeless.notes, *validity.notes))
        result, arrangement = self._decided(most)
        validity = check_validity(self.series.kept, self.revision)
        if validity.fatal:
            return _incomparable(validity)
        marked = _with_flips(result, compared_runs(arrangement, self.policy).arrangement)
        notes = (*marked.notes, *validity.notes, *self._with_itself(arrangement))
        return replace(marked, notes=notes)

    def _decided(self, most: int) -> tuple[GateResult, Arrangement]:
        """Add pairs until every path is decided, or none are left to add."""
        lost = 0
        for look in looks(most, self.policy.runs, is_asked=self.runs > 0):
            arrangement = self._pairs(look.pairs + lost)
            while lost < min(len(left_out(arrangement)), _MOST_LOST):
                lost = min(len(left_out(arrangement)), _MOST_LOST)
                arrangement = self._pairs(look.pairs + lost)
            result = self._compared(arrangement, look)
            if self.is_enough(result) or not look.goes_on(result, self.series.progress.say):
                break
        return result, arrangement

    def _compared(self, runs: Arrangement, look: Look | None = None) -> GateResult:
        part, most = (1.0, 0) if look is None else (look.part, look.most)
        context = Context(runs, part, most)
        return gate_result(runs.base, runs.new, self.policy, context=context)

    def _slots(self, count: int) -> tuple[Slot, ...]:
        return pairs(Stage.PAIR, count, seed=self.series.kept.folder.name)

    def _pairs(self, count: int) -> Arrangement:
        slots = self._slots(count)
        self.series.run(slots)
        runs = self.series.read(slots)
        base = sorted((slot for slot in slots if slot.arm == BASE), key=lambda slot: slot.pair)
        new = sorted((slot for slot in slots if slot.arm == NEW), key=lambda slot: slot.pair)
        return paired_as(
            [runs[slot] for slot in base],
            [runs[slot] for slot in new],
            [slot.base_first for slot in base],
        )

    def _with_itself(self, runs: Arrangement) -> tuple[Note, ...]:
        """Return a note on how often the gate fails a program that is compared with itself."""
        is_revision = self.base.revision or self.new.revision
        if is_revision or self.base.command != self.new.command:
            return ()
        if len(runs.base) < self.policy.runs:
            return ()
        rate = resample_false_alarms(runs, self.policy)
        text = (
            f"both sides are the same command: with sides drawn at random in each pair, "
            f"{rate.events} of {rate.trials} gates of these runs fail"
        )
        return (Note(Reason.NOTICE, text),)


def _incomparable(validity: Validity) -> GateResult:
    notes = (*validity.fatal, *validity.notes)
    return GateResult(SuiteVerdict.INCOMPARABLE, notes=notes, level=FALSE_ALARMS)


# -- looks ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Look:
    """One look.

    Attributes:
        pairs: Pairs so far, or runs of the new side if the base was recorded before.
        part: Share of the false alarms that noise may cause in this look.
        most: Pairs of the last look.
        is_first: Whether no other look came before.
        is_asked: Whether the user named the number of the last one: then only a gate with nothing
            undecided ends before.
    """

    pairs: int
    part: float
    most: int
    is_first: bool
    is_asked: bool = False

    def goes_on(self, result: GateResult, say: Callable[[str], None]) -> bool:
        """Return whether further looks may decide more, and say what is undecided until then.

        Args:
            result: The gate at this look.
            say: Shows one line.
        """
        undecided = self._undecided(result)
        if not undecided or self.pairs >= self.most:
            return False
        so_far = count_text(self.pairs, "pair" if result.paired else "run")
        say(f"{undecided} undecided after {so_far}")
        hidden = [note.text for note in result.notes if note.reason is Reason.TOO_NOISY]
        if self.is_first and hidden:
            say(hidden[0])
        return True

    def _undecided(self, result: GateResult) -> str:
        """Return what further looks may decide, "" for nothing."""
        if self.is_asked:
            rows = sum(row.is_undecided for row in result.rows)
            is_open = result.verdict is SuiteVerdict.INCONCLUSIVE
            return count_text(rows, "check") if rows else "gate" if is_open else ""
        if not result.canaries.moved:
            return _undecided_rows(result, self.most)
        return "speed of the machine" if self.pairs < _SURE_OF_CANARIES else ""


def looks(most: int, fewest: int = _FIRST_PAIRS, *, is_asked: bool = False) -> tuple[Look, ...]:
    """Return the looks of an experiment, two pairs apart.

    Args:
        most: Pairs of the last look.
        fewest: Pairs of the first look.
        is_asked: Whether the user named the number of the last one.
    """
    first = min(max(fewest + fewest % 2, _FIRST_PAIRS), most)
    counts = [*range(first, most, 2), most]
    before, found = 0, []
    for count in counts:
        part = 1.0
        if count >= FEWEST_PAIRS_TO_FAIL:
            part, before = (count - before) / most, count
        found.append(Look(count, part, most, is_first=count == first, is_asked=is_asked))
    return tuple(found)


def _undecided_rows(result: GateResult, most: int) -> str:
    """Return which rows that many pairs may decide, "" for none."""
    slower = [row.path for row in result.regressions]
    within = [
        row
        for row in result.rows
        if row.is_undecided and 0 < row.pairs_needed <= HOPE * most and not _is_around(row, slower)
    ]
    enough = 0  # a gate that is decided without paths that do not seem to have changed
    if result.verdict is SuiteVerdict.INCONCLUSIVE:
        enough = HOPE * most if _passes_without(result, within) else most
    rows = sum(row.pairs_needed <= enough or abs(row.change) > row.limit / 2.0 for row in within)
    return count_text(rows, "check") if rows else ""


def _passes_without(result: GateResult, within: Sequence[GateRow]) -> bool:
    """Return whether an inconclusive gate passes if it turns out that these rows did not change."""
    known = {id(row) for row in within}
    rows = [replace(row, verdict=Verdict.SAME) if id(row) in known else row for row in result.rows]
    notes = [note for note in result.notes if not note.voids]  # which more pairs may clear
    return sum_up(rows, result.structure, notes) is SuiteVerdict.PASS


def _is_around(row: GateRow, slower: Sequence[tuple[str, ...]]) -> bool:
    """Return whether one of these paths is below the row, whose total says nothing new then."""
    depth = len(row.path)
    return row.is_total and any(each[:depth] == row.path for each in slower)


# -- a program with itself -----------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Rate:
    """Events in a number of trials."""

    events: int
    trials: int

    @property
    def value(self) -> float:
        """The share of trials with the event, 0 of none."""
        return self.events / self.trials if self.trials else 0.0

    def bounds(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the exact interval of Clopper, Pearson 1934 (Biometrika 26:404)."""
        if not self.trials:
            return 0.0, 1.0
        tail = (1.0 - confidence) / 2.0
        misses = self.trials - self.events
        low = float(special.betaincinv(self.events, misses + 1, tail)) if self.events else 0.0
        high = float(special.betainccinv(self.events + 1, misses, tail)) if misses else 1.0
        return low, high


def resample_false_alarms(
    runs: Arrangement, policy: Policy, *, splits: int = 200, seed: int = 0
) -> Rate:
    """Return how often the times of one program fail if sides are drawn at random in each pair.

    The splits share their runs, so bounds for independent trials are too narrow. Absolute floors
    and what else keeps the gate from failing are not applied, which can only make alarms more
    frequent.

    Args:
        runs: Pairs; both sides ran the same code.
        policy: Policy of the gate.
        splits: How many gates to decide.
        seed: Of the splits.
    """
    compared = compared_runs(runs, policy)
    gate_checks = GateChecks(
        measured_runs(compared), compared.arrangement, compared.policy, Context()
    )
    decided = gate_checks.decided()
    base, new = decided.observations.logarithms()
    background = gate_checks.background(decided.checks, decided.observations)
    generator, alarms = np.random.default_rng(seed), 0
    for _ in range(splits):
        swapped = generator.random(len(base)) < 0.5
        evidence = weigh(
            np.where(swapped[:, None], new, base),
            np.where(swapped[:, None], base, new),
            np.where(swapped, -1.0, 1.0) * np.array(compared.arrangement.order),
            background=background,
            margin=decided.limits.margin,
            fewest_runs=compared.policy.runs,
        )
        alarms += bool(decide(evidence, decided.limits).worse.any())
    return Rate(alarms, splits)


# -- autotuners ----------------------------------------------------------------------------------
def _with_flips(result: GateResult, decided: Arrangement) -> GateResult:
    """Return the result with notes on autotuners that chose differently within a side."""
    flipped = {**flipped_paths(decided.base), **flipped_paths(decided.new)}
    if not flipped:
        return result
    rows = tuple(
        replace(row, reasons=(*row.reasons, Reason.CODE_CHANGED)) if row.path in flipped else row
        for row in result.rows
    )
    path, configs = next(iter(flipped.items()))
    more = f" and {len(flipped) - 1} more" if len(flipped) > 1 else ""
    text = (
        f"an autotuner chose differently in some runs of a side for {' > '.join(path)}{more} "
        f"({' or '.join(configs)}): a change may come from its choice and not from the code"
    )
    return replace(result, rows=rows, notes=(*result.notes, Note(Reason.NOTICE, text)))


def flipped_paths(runs: Iterable[Run]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the paths whose configurations differ between runs, with the configurations."""
    seen: dict[tuple[str, ...], set[frozenset[str]]] = {}
    for run in runs:
        for path, configs in _configs(run.profile).items():
            seen.setdefault(path, set()).add(frozenset(configs))
    return {
        path: tuple(sorted(frozenset().union(*choices)))
        for path, choices in seen.items()
        if len(choices) > 1
    }


def _configs(profile: Profile) -> dict[tuple[str, ...], set[str]]:
    shown = with_stable_names(drop_trials(profile))
    found: dict[tuple[str, ...], set[str]] = {}
    for row in range(len(shown)):
        variant = shown.variant(row)
        if variant is not None and variant.config:
            found.setdefault(shown.path(row), set()).add(variant.config)
    return found
