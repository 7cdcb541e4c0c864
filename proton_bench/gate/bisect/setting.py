"""Everything that a search works with, and the pairs of processes that it has kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.gate.bisect.history import Candidate, History
from proton_bench.gate.bisect.places import LazyArms, Places
from proton_bench.gate.bisect.request import BisectRequest
from proton_bench.gate.bisect.search import Seen
from proton_bench.gate.bisect.subject import Subject
from proton_bench.gate.experiment.folders.kept_runs import MANIFEST, KeptRun, KeptRuns
from proton_bench.gate.experiment.progress import Progress
from proton_bench.gate.experiment.series import Disturbances, Series
from proton_bench.gate.experiment.slot import BASE, NEW, Slot, Stage

__all__ = ["PAIR", "HomeSeries", "Setting"]

# The stage of the pairs of a search.
PAIR = Stage.PAIR

_REVISIONS = "revisions"


class HomeSeries(Series):
    """Runs in which files of a checkout have the names that they have in the repository."""

    def __init__(self, kept: KeptRuns, arms: LazyArms, setting: Setting) -> None:
        super().__init__(kept, arms, setting.progress, disturbances=setting.disturbances)
        self._places = setting.places

    def read(self, slots: Sequence[Slot]) -> dict[Slot, Run]:
        """Return the profiles of these slots."""
        return {slot: self._places.at_home(run) for slot, run in super().read(slots).items()}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a search works with.

    Attributes:
        request: The search.
        kept: Its folder, with the runs of the proof.
        progress: Gets the progress.
        good: The good revision.
        history: The revisions after it.
        places: Prepares revisions.
        arms: The good revision, prepared when it first runs.
        disturbances: What disturbs the machine.
    """

    request: BisectRequest
    kept: KeptRuns
    progress: Progress
    good: Candidate
    history: History
    places: Places
    arms: LazyArms
    disturbances: Disturbances = field(default_factory=Disturbances)

    def revision(self, place: int | None) -> Candidate:
        """Return a revision by its place; None is the good one."""
        return self.good if place is None else self.history.revisions[place]

    def has_runs(self, candidate: Candidate) -> bool:
        """Return whether runs of a revision were kept."""
        return (self._folder(candidate) / MANIFEST).exists()

    def runs_of(self, candidate: Candidate) -> KeptRuns:
        """Return the folder of a revision's runs, a new one if there is none."""
        if self.has_runs(candidate):
            return KeptRuns.open(self._folder(candidate))
        description = {"doing": "bisect", "revision": candidate.name}
        return KeptRuns.create(self._folder(candidate), description)

    def series(self, kept: KeptRuns, arms: LazyArms) -> HomeSeries:
        """Return the runs of a folder."""
        return HomeSeries(kept, arms, self)

    def pairs(self, kept: KeptRuns, subject: Subject) -> list[Seen]:
        """Return the complete pairs of a folder that have what is measured."""
        base, new = ({run.slot.pair: run for run in kept.of(PAIR, arm)} for arm in (BASE, NEW))
        numbers = sorted(base.keys() & new.keys())
        found = [self.seen(kept, (base[each], new[each]), subject) for each in numbers]
        return [each for each in found if math.isfinite(each.difference)]

    def seen(self, kept: KeptRuns, pair: tuple[KeptRun, KeptRun], subject: Subject) -> Seen:
        """Return what a pair says; NaN if one of its runs has not what is measured.

        Raises:
            UsageError: They cannot be compared.
        """
        before, after = (self.places.at_home(kept.read(each)) for each in pair)
        base_first = pair[0].slot.base_first
        found = subject.difference(before, after, self.request.policy, base_first=base_first)
        return Seen(found, base_first)

    def _folder(self, candidate: Candidate) -> Path:
        return self.kept.folder / _REVISIONS / candidate.name
