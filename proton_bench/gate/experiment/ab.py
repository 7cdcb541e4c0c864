"""`proton ab`: runs both sides in turn on one machine and judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.errors import ProfileFormatError
from proton_bench.gate.experiment.autotune import flipped_paths
from proton_bench.gate.experiment.folders.json_files import write_json
from proton_bench.gate.experiment.folders.kept_runs import MANIFEST, KeptRuns
from proton_bench.gate.experiment.looks import MOST_PAIRS, looks
from proton_bench.gate.experiment.processes.interruption import interruptible
from proton_bench.gate.experiment.progress import Progress
from proton_bench.gate.experiment.request import Request
from proton_bench.gate.experiment.series import Series
from proton_bench.gate.experiment.sides import TREE, at_home, sides
from proton_bench.gate.experiment.slot import BASE, Slot, Stage, pairs
from proton_bench.gate.experiment.validity import Validity, check_validity
from proton_bench.gate.machine import left_out
from proton_bench.gate.statistics.arrangement import Arrangement, paired_as
from proton_bench.gate.statistics.decision import FALSE_ALARMS
from proton_bench.gate.verdict.benchmarks import compared_runs
from proton_bench.gate.verdict.calibration import resample_false_alarms
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.decisions import Context
from proton_bench.gate.verdict.result import GateResult, Note, Reason, SuiteVerdict

__all__ = ["begin_ab", "compare_arms", "resume_ab"]

# Disturbed pairs that are replaced.
_MOST_LOST = 6
# More runs do not change these.
_HOPELESS = frozenset({Reason.NOT_COMPARABLE, Reason.NO_BASE})


def begin_ab(request: Request, folder: Path, progress: Progress) -> GateResult:
    """Compare two sides and keep everything in a folder.

    Args:
        request: What is compared.
        folder: Folder of the runs.
        progress: Gets the progress.

    Raises:
        TargetFailedError: A run failed or recorded nothing; the message names its side.
        InterruptedExperimentError: A signal came; what had ended is kept.
        ProtonError: See `gate_result`; or something cannot be written.
    """
    return _run_ab(request, KeptRuns.create(folder, request.to_document()), progress)


def resume_ab(folder: Path, progress: Progress) -> GateResult:
    """Continue an interrupted experiment; see `begin_ab`.

    Raises:
        UsageError: There is none in the folder, or another process runs it.
        ProfileFormatError: Its manifest is damaged.
    """
    kept = KeptRuns.open(folder)
    try:
        request = Request.from_document(kept.description)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__} {error}"
        raise ProfileFormatError(f"{str(folder / MANIFEST)!a} is damaged: {what}") from error
    return _run_ab(request, kept, progress)


def _run_ab(request: Request, kept: KeptRuns, progress: Progress) -> GateResult:
    """Run the missing runs of an experiment and judge it; see `begin_ab`."""
    with (
        interruptible(),
        kept.in_use(),
        sides(request, kept.folder) as arms,
        progress,
    ):
        result = compare_arms(request, Series(kept, arms, progress))
    write_json(kept.folder / "result.json", result.to_document())
    return result


def compare_arms(
    request: Request,
    series: Series,
    *,
    is_enough: Callable[[GateResult], bool] = lambda result: False,
) -> GateResult:
    """Run the missing runs of both arms of a series and judge them; see `begin_ab`.

    Args:
        request: What is compared.
        series: The runs.
        is_enough: Whether a result ends the experiment, whatever else is undecided.
    """
    return _Experiment(request, series, is_enough).result()


@dataclass(frozen=True, slots=True, eq=False)
class _Experiment:
    request: Request
    series: Series
    is_enough: Callable[[GateResult], bool]

    def result(self) -> GateResult:
        warm_up = pairs(Stage.WARM_UP, 1)
        self.series.plan([*warm_up, *self._slots(self._most)])
        self.series.run(warm_up)
        validity = self._check_validity()
        if validity.fatal:
            return self._incomparable(validity)
        first, second = (self.series.read(warm_up)[slot] for slot in warm_up)
        hopeless = self._hopeless(first, second)
        if hopeless is not None:
            return replace(hopeless, notes=(*hopeless.notes, *validity.notes))
        result, decided = self._decided()
        validity = self._check_validity()
        if validity.fatal:
            return self._incomparable(validity)
        marked = _with_flips(result, compared_runs(decided, self.request.policy).arrangement)
        return replace(marked, notes=(*marked.notes, *validity.notes, *self._with_itself(decided)))

    def _with_itself(self, decided: Arrangement) -> tuple[Note, ...]:
        """Return a note on how often the gate fails a program that is compared with itself."""
        if (
            self.request.base != self.request.command
            or len(decided.base) < self.request.policy.runs
        ):
            return ()
        found = resample_false_alarms(decided, self.request.policy)
        text = (
            f"both sides are the same command: with sides drawn at random in each pair, "
            f"{found.events} of {found.trials} gates of these runs fail"
        )
        return (Note(Reason.NOTICE, text),)

    def _hopeless(self, base: Run, new: Run) -> GateResult | None:
        """Return a result if no number of runs can be decided, else None.

        Raises:
            UsageError: The runs have nothing to judge.
        """
        arrangement = paired_as([base], [new], [True])
        result = self._judge(arrangement, Context(arrangement=arrangement))
        reasons = {note.reason for note in result.notes}
        return None if reasons.isdisjoint(_HOPELESS) else result

    def _decided(self) -> tuple[GateResult, Arrangement]:
        """Add pairs until every path is decided, or none are left to add."""
        asked = self.request.runs > 0
        lost = 0
        for look in looks(self._most, self.request.policy.runs, is_asked=asked):
            seen = self._pairs(look.pairs + lost)
            while lost < min(len(left_out(seen)), _MOST_LOST):
                lost = min(len(left_out(seen)), _MOST_LOST)
                seen = self._pairs(look.pairs + lost)
            result = self._judge(seen, Context(seen, look.part, look.most))
            if self.is_enough(result) or not look.goes_on(result, self.series.progress.say):
                break
        return result, seen

    @property
    def _most(self) -> int:
        return self.request.runs or MOST_PAIRS

    def _judge(self, runs: Arrangement, context: Context) -> GateResult:
        return gate_result(runs.base, runs.new, self.request.policy, context=context)

    def _slots(self, count: int) -> tuple[Slot, ...]:
        return pairs(Stage.PAIR, count, seed=self.series.kept.folder.name)

    def _pairs(self, count: int) -> Arrangement:
        slots = self._slots(count)
        self.series.run(slots)
        recorded = {slot: self._at_home(run) for slot, run in self.series.read(slots).items()}
        base = [slot for slot in slots if slot.arm == BASE]
        new = [slot for slot in slots if slot.arm != BASE]
        return paired_as(
            _sorted(recorded, base), _sorted(recorded, new), [slot.base_first for slot in base]
        )

    def _at_home(self, run: Run) -> Run:
        revision = self.request.revision
        if revision is None:
            return run
        return at_home(run, self.series.kept.folder / TREE, revision.root)

    def _check_validity(self) -> Validity:
        return check_validity(self.series.kept, self.request)

    def _incomparable(self, validity: Validity) -> GateResult:
        notes = (*validity.fatal, *validity.notes)
        return GateResult(SuiteVerdict.INCOMPARABLE, notes=notes, level=FALSE_ALARMS)


def _sorted(recorded: dict[Slot, Run], slots: Sequence[Slot]) -> list[Run]:
    return [recorded[slot] for slot in sorted(slots, key=lambda slot: slot.pair)]


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
