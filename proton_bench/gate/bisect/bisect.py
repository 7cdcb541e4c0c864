"""`proton bisect`: proves a regression, then searches the revision that brought it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proton_bench.errors import ProfileFormatError, TargetFailedError, UsageError
from proton_bench.gate.bisect.history import Candidate, History
from proton_bench.gate.bisect.likeness import Codes, LoadedFiles, codes_of
from proton_bench.gate.bisect.places import LazyArms, Places
from proton_bench.gate.bisect.request import BisectRequest
from proton_bench.gate.bisect.result import BisectResult, BisectVerdict, Measurement, State
from proton_bench.gate.bisect.revisions import can_matter, differing_files
from proton_bench.gate.bisect.search import UNLIKELY, Search, Seen
from proton_bench.gate.bisect.setting import PAIR, Setting
from proton_bench.gate.bisect.subject import Subject, is_proven, subject_of
from proton_bench.gate.experiment.ab import compare_arms
from proton_bench.gate.experiment.folders.json_files import read_json, write_json
from proton_bench.gate.experiment.folders.kept_runs import KeptRuns
from proton_bench.gate.experiment.loaded import loaded_alike
from proton_bench.gate.experiment.processes.interruption import interruptible
from proton_bench.gate.experiment.progress import Progress
from proton_bench.gate.experiment.series import Series
from proton_bench.gate.experiment.slot import BASE, NEW, Slot, Stage
from proton_bench.gate.judge.result import GateResult
from proton_bench.gate.judge.verdict import SuiteVerdict
from proton_bench.model.frame import escape_surrogates
from proton_bench.support.units import count_text

__all__ = ["run_bisect"]

_SHOWN = 3
_VERDICTS = {
    SuiteVerdict.PASS: BisectVerdict.NO_REGRESSION,
    SuiteVerdict.INCOMPARABLE: BisectVerdict.INCOMPARABLE,
}


@dataclass(frozen=True, slots=True)
class Proof:
    """A regression that was proven.

    Attributes:
        result: The gate between both revisions.
        subject: What got slower.
        pairs: All pairs.
    """

    result: GateResult
    subject: Subject
    pairs: Sequence[Seen]


def prove(setting: Setting) -> Proof | BisectResult:
    """Run both ends in turn; return the proof, or the result of a search without one.

    Raises:
        TargetFailedError: A run failed or recorded nothing.
        ProtonError: See `compare_arms`.
    """
    bad = setting.revision(setting.history.bad)
    with LazyArms(setting.places, {NEW: bad}, setting.arms) as arms:
        series = setting.series(setting.kept, arms)
        result = compare_arms(setting.request.proof, series, is_enough=is_proven)
    alike = _loaded_alike(setting)
    if alike:
        return _nothing(setting, result, BisectVerdict.INCOMPARABLE, problem=_alike_text(alike))
    subject = subject_of(result)
    if result.verdict is not SuiteVerdict.FAIL or subject is None:
        return _nothing(setting, result, _verdict(result))
    return Proof(result, subject, setting.pairs(setting.kept, subject))


def _verdict(result: GateResult) -> BisectVerdict:
    # A gate may pass with a few undecided paths, one of which may be what the user looks for.
    if result.verdict is SuiteVerdict.PASS and any(row.is_undecided for row in result.rows):
        return BisectVerdict.INCONCLUSIVE
    return _VERDICTS.get(result.verdict, BisectVerdict.INCONCLUSIVE)


def _nothing(
    setting: Setting, result: GateResult, verdict: BisectVerdict, *, problem: str = ""
) -> BisectResult:
    return BisectResult(verdict, result, setting.good, len(setting.history), problem=problem)


def _loaded_alike(setting: Setting) -> list[str]:
    """Return changed files of which both ends loaded the same version."""
    if setting.request.package:
        return []
    listed = []
    for arm in (BASE, NEW):
        runs = setting.kept.of(Stage.WARM_UP, arm)
        modules = setting.kept.modules(runs[0]) if runs else None
        if modules is None:
            return []
        listed.append(setting.places.modules_at_home(modules))
    root = setting.places.root
    bad = setting.revision(setting.history.bad)
    changed = differing_files(root, setting.good.name, bad.name)
    return loaded_alike(listed[0], listed[1], changed, root=root)


def _alike_text(files: Sequence[str]) -> str:
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return (
        f"{', '.join(files[:_SHOWN])}{more} changed between the two revisions, but both loaded the "
        "same version, so nothing can be measured. An installed package or a folder comes before "
        "the checkouts in the search path: give each revision its own environment with --setup "
        "'pip install .'"
    )


_SKIPPED = "skipped.json"
_RESULT = "result.json"
_WARM_UP = Slot(Stage.WARM_UP, 0, NEW)
# A revision is called good or bad from this probability on.
_CLEAR = 0.9


def run_bisect(
    request: BisectRequest,
    kept: KeptRuns,
    progress: Progress,
    *,
    revisions: tuple[Candidate, History],
) -> BisectResult:
    """Run the missing runs of a search and return what it found.

    Args:
        request: The search.
        kept: Its folder; the runs of the proof are in it, those of revisions below it.
        progress: Gets the progress.
        revisions: The good revision and those after it, from `BisectRequest.history`.

    Raises:
        TargetFailedError: A run of the good revision failed, or in the proof of the bad one.
        InterruptedExperimentError: A signal came; what had ended is kept.
        UsageError: Nothing can be measured.
        ProtonError: Something cannot be written.
    """
    with interruptible(), kept.in_use(), progress:
        good, history = revisions
        places = Places(request, kept.folder)
        count = count_text(len(history), "revision")
        progress.say(f"{count} to search, first {request.good} and {request.bad} in turn")
        with LazyArms(places, {BASE: good}) as arms:
            setting = Setting(request, kept, progress, good, history, places, arms)
            proof = prove(setting)
            result = _Bisection(setting, proof).run() if isinstance(proof, Proof) else proof
    write_json(kept.folder / _RESULT, result.to_document())
    return result


class _CannotMeasureError(Exception):
    """A candidate cannot be measured; the cause says why."""


@dataclass(eq=False)
class _Bisection:
    """A search in progress.

    Attributes:
        setting: What it works with.
        proof: What is searched.
        search: What is known.
        skipped: Why revisions cannot be measured, by name.
        same: What revisions run the same code as, by place.
        codes: Code of the kernels of revisions by place; None is the good one.
        loaded: Files that runs loaded.
    """

    setting: Setting
    proof: Proof
    search: Search = field(init=False)
    skipped: dict[str, str] = field(init=False)
    same: dict[int, str] = field(default_factory=dict)
    codes: dict[int | None, Codes] = field(default_factory=dict)
    loaded: LoadedFiles = field(init=False)

    def __post_init__(self) -> None:
        setting = self.setting
        self.search = Search(setting.history, self.proof.pairs)
        self.skipped = _read_skipped(setting.kept.folder / _SKIPPED)
        self.loaded = LoadedFiles(setting.places.root)

    def run(self) -> BisectResult:
        """Measure what is missing, and return the result."""
        setting = self.setting
        self._learn(setting.kept, BASE, None)
        self._learn(setting.kept, NEW, setting.history.bad)
        self._weigh()
        setting.progress.limit(None)  # how many follow depends on what they say
        for place in range(len(setting.history)):
            if setting.has_runs(setting.revision(place)):
                self._restore(place)
        while (wanted := self.search.next()) is not None:
            self._measure(wanted)
        return self._result()

    # Measuring

    def _restore(self, place: int) -> None:
        """Take what earlier processes measured of a revision."""
        candidate = self.setting.revision(place)
        if candidate.name in self.skipped:
            self.search.skip(place)
            return
        kept = self.setting.runs_of(candidate)
        if _WARM_UP in kept:
            self._compare(place, kept)
        for pair in self.setting.pairs(kept, self.proof.subject):
            self.search.saw(place, pair)

    def _measure(self, place: int) -> None:
        """Measure a revision until another one says more."""
        candidate = self.setting.revision(place)
        kept = self.setting.runs_of(candidate)
        try:
            with LazyArms(self.setting.places, {NEW: candidate}, self.setting.arms) as arms:
                series = self.setting.series(kept, arms)
                if _WARM_UP not in kept:
                    _run(series, _WARM_UP)
                    self._compare(place, kept)
                while self.search.next() == place:
                    self._run_pair(place, series)
        except _CannotMeasureError as error:
            self.skipped[candidate.name] = _reason(error.__cause__)
            write_json(self.setting.kept.folder / _SKIPPED, self.skipped)
            self.search.skip(place)
        tested, left = self._tested(place), len(self.search.answer())
        self.setting.progress.say(
            f"{tested.state}: {candidate.text}; {count_text(left, 'revision')} left"
        )

    def _run_pair(self, place: int, series: Series) -> None:
        measured = sum(len(pairs) for pairs in self.search.seen.values())
        base_first = measured % 2 == 0
        # Half a pair of an interrupted process is not completed: its sides would not be in turn.
        number = max((run.slot.pair + 1 for run in series.kept.of(PAIR)), default=0)
        slots = {arm: Slot(PAIR, number, arm, base_first) for arm in (BASE, NEW)}
        for arm in (BASE, NEW) if base_first else (NEW, BASE):
            _run(series, slots[arm])
        runs = {run.slot: run for run in series.kept.of(PAIR)}
        subject = self.proof.subject
        try:
            pair = self.setting.seen(series.kept, (runs[slots[BASE]], runs[slots[NEW]]), subject)
        except UsageError as error:
            raise _CannotMeasureError from error
        if not math.isfinite(pair.difference):
            missing = UsageError(f"it has no {subject.metric or 'launches'} of {subject.text}")
            raise _CannotMeasureError from missing
        self.search.saw(place, pair)

    # What is the same program

    def _learn(self, kept: KeptRuns, arm: str, place: int | None) -> None:
        """Note what the warm-up of a revision loaded, and the code of its kernels."""
        runs = kept.of(Stage.WARM_UP, arm)
        modules = kept.modules(runs[0]) if runs else None
        if modules is not None:
            self.loaded.add(self.setting.places.modules_at_home(modules))
            self.codes[place] = codes_of(kept.read(runs[0]).profile)

    def _compare(self, place: int, kept: KeptRuns) -> None:
        """Find out whether a revision runs the same program as one that was measured."""
        self._learn(kept, NEW, place)
        self._weigh()
        if self.setting.request.package or place not in self.codes:
            return
        for other in (None, self.setting.history.bad, *self.search.seen):
            if self._is_same(place, other):
                self.search.same(place, other)
                name = self.setting.revision(other).short
                self.same[place] = f"runs the same code as {name}"
                return

    def _is_same(self, place: int, other: int | None) -> bool:
        setting = self.setting
        if self.codes.get(other) != self.codes[place]:
            return False
        names = [setting.revision(each).name for each in (place, other)]
        files = differing_files(setting.places.root, names[0], names[1])
        return not can_matter(files, self.loaded, is_built=bool(setting.request.setup))

    def _weigh(self) -> None:
        """Make revisions unlikely that change nothing that runs."""
        if None not in self.codes:
            return  # what runs load is unknown
        built = bool(self.setting.request.setup)
        prior = []
        for each in self.setting.history.revisions:
            matters = each.files is None or can_matter(each.files, self.loaded, is_built=built)
            prior.append(1.0 if matters else UNLIKELY)
        self.search.weigh(prior)

    # The answer

    def _tested(self, place: int) -> Measurement:
        candidate, search = self.setting.revision(place), self.search
        p_bad = float(search.slower()[place])
        state = State.BAD if p_bad > _CLEAR else State.GOOD
        if 1.0 - _CLEAR <= p_bad <= _CLEAR:
            state = State.UNCLEAR
        reason = self.same.get(place, "")
        if place in search.skipped:
            state, reason = State.SKIPPED, self.skipped[candidate.name]
        pairs = search.seen.get(place, [])
        if not pairs:
            return Measurement(candidate, state, p_bad=p_bad, reason=reason)
        middle, reach = search.estimate(place)
        change, low, high = (math.expm1(middle + each) for each in (0.0, -reach, reach))
        return Measurement(candidate, state, len(pairs), change, low, high, p_bad, reason)

    def _result(self) -> BisectResult:
        setting, search, subject = self.setting, self.search, self.proof.subject
        found = search.answer()
        tested = sorted({*search.seen, *search.skipped, *self.same})
        before = setting.revision(found[0]).parents or (None,)
        return BisectResult(
            BisectVerdict.FOUND if len(found) == 1 else BisectVerdict.RANGE,
            self.proof.result,
            setting.good,
            len(setting.history),
            candidates=tuple(setting.revision(place) for place in found),
            probability=float(search.posterior().max()),
            parents=tuple(setting.revision(place) for place in before),
            path=subject.text,
            metric=subject.metric,
            tested=tuple(self._tested(place) for place in tested),
        )


def _run(series: Series, slot: Slot) -> None:
    """Run one process; a failure of the candidate is not an error of the search."""
    try:
        series.run([slot])
    except TargetFailedError as error:
        if slot.arm == BASE:
            raise
        raise _CannotMeasureError from error


def _reason(error: BaseException | None) -> str:
    """Return why a revision cannot be measured, first the last line of what it printed."""
    lines = [line.strip() for note in getattr(error, "__notes__", ()) for line in note.splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    return escape_surrogates(f"{last}; {error}" if last else str(error))


def _read_skipped(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    document = read_json(path)
    if not isinstance(document, dict):
        raise ProfileFormatError(f"{str(path)!a} is damaged: begin anew with --restart")
    return {str(name): str(reason) for name, reason in document.items()}
