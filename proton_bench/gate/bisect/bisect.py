"""`proton bisect`: proves a regression, then searches the revision that brought it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.errors import ProfileFormatError, TargetFailedError, UsageError
from proton_bench.gate.bisect.history import Candidate, History
from proton_bench.gate.bisect.likeness import Codes, LoadedFiles, codes_of
from proton_bench.gate.bisect.places import LazyArms, Places
from proton_bench.gate.bisect.request import BisectRequest
from proton_bench.gate.bisect.result import BisectResult, BisectVerdict, State, Tested
from proton_bench.gate.bisect.revisions import can_matter, differing_files
from proton_bench.gate.bisect.search import UNLIKELY, Search, Seen
from proton_bench.gate.bisect.subject import Subject, subject_of
from proton_bench.gate.experiment.ab import compare_arms
from proton_bench.gate.experiment.folders.json_files import read_json, write_json
from proton_bench.gate.experiment.folders.kept_runs import MANIFEST, KeptRun, KeptRuns
from proton_bench.gate.experiment.loaded import loaded_alike
from proton_bench.gate.experiment.processes.interruption import interruptible
from proton_bench.gate.experiment.progress import Progress
from proton_bench.gate.experiment.series import Series
from proton_bench.gate.experiment.slot import BASE, NEW, Slot, Stage
from proton_bench.gate.judge.result import GateResult
from proton_bench.gate.judge.verdict import SuiteVerdict
from proton_bench.support.units import count_text

__all__ = ["run_bisect"]

_REVISIONS = "revisions"
_SKIPPED = "skipped.json"
_RESULT = "result.json"
_WARM_UP = Slot(Stage.WARM_UP, 0, NEW)
_CLEAR = 0.9
_VERDICTS = {
    SuiteVerdict.PASS: BisectVerdict.NO_REGRESSION,
    SuiteVerdict.INCOMPARABLE: BisectVerdict.INCOMPARABLE,
}


def run_bisect(
    request: BisectRequest, kept: KeptRuns, progress: Progress, *, store: Path
) -> BisectResult:
    """Run the missing runs of a search and return what it found.

    Args:
        request: The search.
        kept: Its folder; the runs of the proof are in it, those of revisions below it.
        progress: Gets the progress.
        store: The project's ``.proton``, which may have noise of this machine.

    Raises:
        TargetFailedError: A run of the good revision failed, or in the proof of the bad one.
        InterruptedExperimentError: A signal came; what had ended is kept.
        UsageError: A revision is unknown, or nothing can be measured.
        ProtonError: Something cannot be written.
    """
    with interruptible(), kept.in_use(), progress:
        good, history = request.history()
        places = Places(request, kept.folder)
        with LazyArms(places, {BASE: good}) as arms:
            result = _Bisection(request, kept, progress, store, good, history, places, arms).run()
    write_json(kept.folder / _RESULT, result.to_document())
    return result


class _HomeSeries(Series):
    """Runs whose checkouts are shown as the repository."""

    def __init__(
        self, kept: KeptRuns, arms: LazyArms, progress: Progress, *, places: Places
    ) -> None:
        super().__init__(kept, arms, progress)
        self._places = places

    def read(self, slots: Sequence[Slot]) -> dict[Slot, Run]:
        """Return the profiles of these slots."""
        return {slot: self._places.at_home(run) for slot, run in super().read(slots).items()}


@dataclass(eq=False)
class _Bisection:
    request: BisectRequest
    kept: KeptRuns
    progress: Progress
    store: Path
    good: Candidate
    history: History
    places: Places
    arms: LazyArms
    skipped: dict[str, str] = field(default_factory=dict)
    same: dict[int, str] = field(default_factory=dict)
    codes: dict[int | None, Codes] = field(default_factory=dict)
    loaded: LoadedFiles = field(init=False)

    def __post_init__(self) -> None:
        self.loaded = LoadedFiles(self.places.root)

    def run(self) -> BisectResult:
        """Prove, search, and return the result."""
        count = len(self.history)
        span = f"{self.request.good} and {self.request.bad}"
        self.progress.say(f"{count_text(count, 'revision')} to search, first {span} in turn")
        proof = self._prove()
        subject = subject_of(proof)
        alike = self._loaded_alike()
        if alike:
            return self._nothing(proof, BisectVerdict.INCOMPARABLE, _alike_text(alike))
        if proof.verdict is not SuiteVerdict.FAIL or subject is None:
            verdict = _VERDICTS.get(proof.verdict, BisectVerdict.INCONCLUSIVE)
            return self._nothing(proof, verdict, "")
        search = self._search(subject)
        return self._answer(proof, subject, search)

    def _nothing(self, proof: GateResult, verdict: BisectVerdict, problem: str) -> BisectResult:
        return BisectResult(verdict, proof, self.good, len(self.history), problem=problem)

    # The proof

    def _prove(self) -> GateResult:
        bad = self.history.revisions[-1]
        with LazyArms(self.places, {NEW: bad}, self.arms) as arms:
            series = _HomeSeries(self.kept, arms, self.progress, places=self.places)
            return compare_arms(self.request.proof, series, store=self.store)

    def _proof_pairs(self, subject: Subject) -> list[Seen]:
        """Return all pairs of the proof, whatever stage they are of."""
        found = []
        for stage in Stage:
            if stage is not Stage.WARM_UP:
                found += self._pairs(self.kept, stage, subject)
        return found

    def _pairs(self, kept: KeptRuns, stage: Stage, subject: Subject) -> list[Seen]:
        """Return the complete pairs of a folder that have what is measured."""
        by_arm: list[Mapping[int, KeptRun]] = [
            {run.slot.pair: run for run in kept.of(stage, arm)} for arm in (BASE, NEW)
        ]
        pairs = sorted(by_arm[0].keys() & by_arm[1].keys())
        found = [self._seen(kept, by_arm[0][pair], by_arm[1][pair], subject) for pair in pairs]
        return [each for each in found if math.isfinite(each.difference)]

    def _seen(self, kept: KeptRuns, base: KeptRun, new: KeptRun, subject: Subject) -> Seen:
        before, after = (self.places.at_home(kept.read(each)) for each in (base, new))
        base_first = base.slot.base_first
        found = subject.difference(before, after, self.request.policy, base_first=base_first)
        return Seen(found, base_first)

    def _loaded_alike(self) -> list[str]:
        """Return changed files of which both ends loaded the same version."""
        if self.request.package:
            return []
        ends = [self.kept.of(Stage.WARM_UP, arm) for arm in (BASE, NEW)]
        listed = [self.kept.modules(runs[0]) if runs else None for runs in ends]
        if None in listed:
            return []
        base, new = (self.places.modules_at_home(each or []) for each in listed)
        changed = differing_files(self.places.root, self.good.name, self.history.revisions[-1].name)
        return loaded_alike(base, new, changed, root=self.places.root)

    # The search

    def _search(self, subject: Subject) -> Search:
        search = Search(self.history, self._proof_pairs(subject))
        self.skipped = _read_skipped(self.kept.folder / _SKIPPED)
        for arm, place in ((BASE, None), (NEW, self.history.bad)):
            self._learn(self.kept, arm, place)
        self._weigh(search)
        for place, candidate in enumerate(self.history.revisions):
            if (self._folder(candidate) / MANIFEST).exists():
                self._restore(search, place, subject)
        while (place := search.next()) is not None:
            self._measure(search, place, subject)
        return search

    def _folder(self, candidate: Candidate) -> Path:
        return self.kept.folder / _REVISIONS / candidate.name

    def _open(self, candidate: Candidate) -> KeptRuns:
        folder = self._folder(candidate)
        if (folder / MANIFEST).exists():
            return KeptRuns.open(folder)
        return KeptRuns.create(folder, {"doing": "bisect", "revision": candidate.name})

    def _restore(self, search: Search, place: int, subject: Subject) -> None:
        """Take what earlier processes measured of a revision."""
        candidate = self.history.revisions[place]
        if candidate.name in self.skipped:
            search.skip(place)
            return
        kept = self._open(candidate)
        if _WARM_UP in kept:
            self._compare(search, place, kept)
        for pair in self._pairs(kept, Stage.CONFIRMING, subject):
            search.saw(place, pair)

    def _measure(self, search: Search, place: int, subject: Subject) -> None:
        """Measure a revision until another one says more."""
        candidate = self.history.revisions[place]
        kept = self._open(candidate)
        try:
            with LazyArms(self.places, {NEW: candidate}, self.arms) as arms:
                series = _HomeSeries(kept, arms, self.progress, places=self.places)
                if _WARM_UP not in kept:
                    self._run(series, _WARM_UP)
                    self._compare(search, place, kept)
                while search.next() == place:
                    self._run_pair(search, place, series, subject)
        except _CannotMeasureError as error:
            self.skipped[candidate.name] = str(error.__cause__)
            write_json(self.kept.folder / _SKIPPED, self.skipped)
            search.skip(place)
        self._tell(search, place)

    def _run(self, series: Series, slot: Slot) -> None:
        """Run one process; a failure of the candidate is no error of the search."""
        try:
            series.run([slot])
        except TargetFailedError as error:
            if slot.arm == BASE:
                raise
            raise _CannotMeasureError from error

    def _run_pair(self, search: Search, place: int, series: Series, subject: Subject) -> None:
        measured = sum(len(pairs) for pairs in search.seen.values())
        base_first = measured % 2 == 0
        # Half a pair of an interrupted process is not completed: its sides would not be in turn.
        number = max((run.slot.pair + 1 for run in series.kept.of(Stage.CONFIRMING)), default=0)
        slots = {arm: Slot(Stage.CONFIRMING, number, arm, base_first) for arm in (BASE, NEW)}
        for arm in (BASE, NEW) if base_first else (NEW, BASE):
            self._run(series, slots[arm])
        base, new = (
            next(run for run in series.kept.of(Stage.CONFIRMING, arm) if run.slot.pair == number)
            for arm in (BASE, NEW)
        )
        try:
            pair = self._seen(series.kept, base, new, subject)
        except UsageError as error:
            raise _CannotMeasureError from error
        if not math.isfinite(pair.difference):
            missing = f"it has no {subject.metric or 'launches'} of {subject.text}"
            raise _CannotMeasureError from UsageError(missing)
        search.saw(place, pair)

    # What is the same program

    def _learn(self, kept: KeptRuns, arm: str, place: int | None) -> None:
        """Note what the warm-up of a revision loaded, and the code of its kernels."""
        runs = kept.of(Stage.WARM_UP, arm)
        modules = kept.modules(runs[0]) if runs else None
        if modules is None:
            return
        self.loaded.add(self.places.modules_at_home(modules))
        self.codes[place] = codes_of(kept.read(runs[0]).profile)

    def _compare(self, search: Search, place: int, kept: KeptRuns) -> None:
        """Find out whether a revision runs the same program as one that was measured."""
        self._learn(kept, NEW, place)
        self._weigh(search)
        if self.request.package or place not in self.codes:
            return
        for other in (None, self.history.bad, *search.seen):
            if self._is_same(place, other):
                search.same(place, other)
                named = self.good if other is None else self.history.revisions[other]
                self.same[place] = f"runs the same code as {named.name[:12]}"
                return

    def _is_same(self, place: int, other: int | None) -> bool:
        if self.codes.get(other) != self.codes[place]:
            return False
        names = [
            self.good.name if each is None else self.history.revisions[each].name
            for each in (place, other)
        ]
        files = differing_files(self.places.root, names[0], names[1])
        return not can_matter(files, self.loaded, is_built=bool(self.request.setup))

    def _weigh(self, search: Search) -> None:
        """Make revisions unlikely that change nothing that runs."""
        if None not in self.codes:
            return  # what runs load is unknown
        built = bool(self.request.setup)
        search.weigh(
            [
                1.0
                if each.files is None or can_matter(each.files, self.loaded, is_built=built)
                else UNLIKELY
                for each in self.history.revisions
            ]
        )

    # The answer

    def _tell(self, search: Search, place: int) -> None:
        tested = self._tested(search, place)
        left = len(search.answer())
        self.progress.say(
            f"{tested.revision.name[:12]} is {tested.state}: {tested.revision.title}; "
            f"{count_text(left, 'revision')} left"
        )

    def _tested(self, search: Search, place: int) -> Tested:
        candidate = self.history.revisions[place]
        pairs = search.seen.get(place, [])
        p_bad = float(search.slower()[place])
        state = State.BAD if p_bad > _CLEAR else State.GOOD
        if 1.0 - _CLEAR <= p_bad <= _CLEAR:
            state = State.UNCLEAR
        reason = self.same.get(place, "")
        if place in search.skipped:
            state, reason = State.SKIPPED, self.skipped[candidate.name]
        if not pairs:
            return Tested(candidate, state, p_bad=p_bad, reason=reason)
        middle, reach = search.signal.estimate(pairs)
        change, low, high = (math.expm1(middle + each) for each in (0.0, -reach, reach))
        return Tested(candidate, state, len(pairs), change, low, high, p_bad, reason)

    def _answer(self, proof: GateResult, subject: Subject, search: Search) -> BisectResult:
        found = search.answer()
        tested = sorted({*search.seen, *search.skipped, *self.same})
        return BisectResult(
            BisectVerdict.FOUND if len(found) == 1 else BisectVerdict.RANGE,
            proof,
            self.good,
            len(self.history),
            candidates=tuple(self.history.revisions[place] for place in found),
            probability=float(search.posterior().max()),
            path=subject.text,
            metric=subject.metric,
            tested=tuple(self._tested(search, place) for place in tested),
        )


class _CannotMeasureError(Exception):
    """A candidate cannot be measured; the cause says why."""


def _read_skipped(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    document = read_json(path)
    if not isinstance(document, dict):
        raise ProfileFormatError(f"{str(path)!a} is damaged: begin anew with --restart")
    return {str(name): str(reason) for name, reason in document.items()}


def _alike_text(files: Sequence[str]) -> str:
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return (
        f"{', '.join(files[:3])}{more} differ between the two revisions, but both loaded the same "
        "version, so nothing can be measured. An installed package or a folder comes before the "
        "checkouts in the search path: give each revision its own environment with --setup 'pip "
        "install .'"
    )
