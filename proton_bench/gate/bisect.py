"""`proton bisect`: proves a regression, then lets ``git bisect`` find the revision that brought it.

git chooses the revisions, in a worktree of its own, and each is measured in turn with GOOD. With D
the median of ``ln(revision / GOOD)`` over R pairs and effect that of the pairs of the proof, both
without the cost of running second, a revision is bad if ``D > effect / 2`` and good if not, as soon
as the distance from ``effect / 2`` is beyond three standard errors, ``3.8 s / sqrt(R)``. s is twice
the median deviation of the proof's pairs or of its own, whichever is more, and R at least four: one
slow process decides nothing. A revision that does not run, or is undecided after `_MOST_PAIRS`
pairs, is skipped.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from scipy import special

from proton_bench.analysis.run import Run
from proton_bench.errors import TargetFailedError, UsageError
from proton_bench.gate.experiment import PairedExperiment
from proton_bench.gate.loaded import LoadedModule, loaded_alike
from proton_bench.gate.policy import Policy
from proton_bench.gate.processes import (
    Command,
    Revision,
    changed_files,
    find_revision,
    first_folders_of,
    git,
    interruptible,
    own_environment,
    worktree,
)
from proton_bench.gate.progress import Progress
from proton_bench.gate.runs import Arm, Disturbances, KeptRuns, Series, write_json
from proton_bench.gate.slot import BASE, NEW, Slot, Stage
from proton_bench.gate.statistics.arrangement import paired_as
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.decided_checks import Context
from proton_bench.gate.verdict.result import GateResult, GateRow, SuiteVerdict
from proton_bench.model.frame import escape_surrogates
from proton_bench.support.units import count_text

_SCHEMA, _VERSION = "proton_bench.bisect", (2, 0)
_TREES = {BASE: "good-tree", NEW: "tree"}
_MOST_PAIRS = 20
_LEAST_PAIRS = 4
# Standard errors between a revision and the middle of good and bad.
_CLEAR = 3.0
_OF_MEDIAN = 1.2533  # standard error of a median, in those of a mean: sqrt(pi / 2)
# Standard deviation in median deviations: 1.48, and more where medians follow few values.
_OF_DEVIATION = 2.0
_SHOWN = 3


# -- results -------------------------------------------------------------------------------------
class BisectVerdict(StrEnum):
    """The outcome of a search."""

    FOUND = "FOUND"
    RANGE = "RANGE"
    NO_REGRESSION = "NO-REGRESSION"
    INCONCLUSIVE = "INCONCLUSIVE"
    INCOMPARABLE = "INCOMPARABLE"


class State(StrEnum):
    """What is known of a revision."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One revision.

    Attributes:
        name: Full hash of the commit.
        title: First line of its message.
        author: Name of its author, "" if unknown.
        date: Author date in ISO 8601, "" if unknown.
    """

    name: str
    title: str = ""
    author: str = ""
    date: str = ""

    @property
    def short(self) -> str:
        """The beginning of its hash."""
        return self.name[:12]

    @property
    def text(self) -> str:
        """Its short name and its title."""
        return f"{self.short} {self.title}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One revision that was run.

    Attributes:
        revision: The revision.
        state: What is known of it.
        pairs: Pairs that were measured.
        change: Change against the good revision, as a share; NaN if unknown.
        low: Lower end of its 90 % interval.
        high: Upper end.
        reason: Why it was skipped; "" otherwise.
    """

    revision: Candidate
    state: State
    pairs: int = 0
    change: float = math.nan
    low: float = math.nan
    high: float = math.nan
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BisectResult:
    """The result of a search.

    Attributes:
        verdict: The outcome.
        proof: The gate between the good and the bad revision.
        good: The good revision.
        revisions: Number of revisions after it, up to the bad one.
        candidates: Revisions one of which is the first bad one; one if it is found, none if
            nothing was searched.
        parents: Revisions just before the first of them.
        path: The regressed path on one line; "" if nothing was searched.
        metric: Its metric; "" for a structural change.
        tested: Revisions that were run, in the order of the history.
        problem: Why nothing was searched; "" otherwise.
    """

    verdict: BisectVerdict
    proof: GateResult
    good: Candidate
    revisions: int
    candidates: tuple[Candidate, ...] = ()
    parents: tuple[Candidate, ...] = ()
    path: str = ""
    metric: str = ""
    tested: tuple[Measurement, ...] = ()
    problem: str = ""

    @property
    def exit_code(self) -> int:
        """0 found, 3 no regression or undecided, 4 incomparable, 5 no path in common."""
        if self.proof.verdict is SuiteVerdict.NO_BASELINE:
            return self.proof.exit_code
        codes = {BisectVerdict.FOUND: 0, BisectVerdict.INCOMPARABLE: 4}
        return codes.get(self.verdict, 3)

    @property
    def pairs(self) -> int:
        """Pairs of the search, without those of the proof."""
        return sum(tested.pairs for tested in self.tested)

    def of(self, revision: Candidate) -> Measurement | None:
        """Return what was measured of a revision, None if it was not run."""
        return next((tested for tested in self.tested if tested.revision == revision), None)

    def to_document(self) -> dict[str, Any]:
        """Return JSON values, with the schema's name and version; NaN becomes null."""
        return {
            "schema": _SCHEMA,
            "version": list(_VERSION),
            "exit_code": self.exit_code,
            "verdict": self.verdict.value,
            "problem": self.problem or None,
            "good": _document(self.good),
            "revisions": self.revisions,
            "candidates": [_document(candidate) for candidate in self.candidates],
            "parents": [_document(parent) for parent in self.parents],
            "path": self.path or None,
            "metric": self.metric or None,
            "pairs": self.pairs,
            "tested": [
                {
                    **_document(tested.revision),
                    "state": tested.state.value,
                    "pairs": tested.pairs,
                    "change": _known(tested.change),
                    "low": _known(tested.low),
                    "high": _known(tested.high),
                    "reason": tested.reason,
                }
                for tested in self.tested
            ],
            "proof": self.proof.to_document(),
        }


def _document(candidate: Candidate) -> dict[str, Any]:
    return {key: value or None for key, value in asdict(candidate).items()}


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


# -- what is measured ----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Slowdown:
    """A regressed check, or a structural change that is not allowed, which has no metric."""

    path: tuple[str, ...]
    occurrence: int
    metric: str
    text: str

    def of_pair(self, base: Run, new: Run, policy: Policy) -> float:
        """Return ``ln`` of new over base, NaN if a run has no such path.

        For a structural change it is 1 if the pair has it, else 0.
        """
        # Every path is a check, however small its share is in this pair.
        whole = replace(policy, share=0.0)
        context = Context(arrangement=paired_as([base], [new], [True]))
        result = gate_result([base], [new], whole, context=context)
        if not self.metric:
            return float(any(change.fails for change in result.structure if self._is(change.path)))
        for row in result.rows:
            if self._is(row.path) and (row.occurrence, row.metric) == (
                self.occurrence,
                self.metric,
            ):
                is_known = row.base > 0.0 and row.new > 0.0
                return math.log(row.new) - math.log(row.base) if is_known else math.nan
        return math.nan

    def _is(self, path: tuple[str, ...]) -> bool:
        return path == self.path


def _slowdown_of(result: GateResult) -> _Slowdown | None:
    """Return the clearest regression of a gate, those of named paths first, None without one."""
    if result.regressions:
        row = max(result.regressions, key=_clearness)
        return _Slowdown(row.path, row.occurrence, row.metric, _text(row.path, result))
    for change in result.structure:
        if change.fails:
            return _Slowdown(change.path, 0, "", _text(change.path, result))
    return None


def _clearness(row: GateRow) -> tuple[bool, float]:
    reach = (math.log1p(row.high) - math.log1p(row.low)) / 2.0
    size = abs(math.log1p(row.change))
    return row.named, size / reach if reach > 0.0 else math.inf


def _text(path: Sequence[str], result: GateResult) -> str:
    return " > ".join(result.texts.get(name, name) for name in path) or "whole run"


def _is_proven(result: GateResult) -> bool:
    """Return whether a search may begin, although other paths may be undecided.

    Undecided paths that the policy names go before all others.
    """
    is_named = any(row.named for row in result.regressions)
    is_waiting = any(row.named and row.is_undecided for row in result.rows)
    return result.verdict is SuiteVerdict.FAIL and (is_named or not is_waiting)


# What a pair says, and whether the base ran first.
_Pair = tuple[float, bool]


# -- the search ----------------------------------------------------------------------------------
class _CannotMeasureError(Exception):
    """A revision is skipped, for this reason."""


@dataclass(frozen=True, slots=True)
class Bisection:
    """A search for the first revision that is slower.

    Attributes:
        command: What to measure.
        good: Commit, branch or tag that is not slower.
        bad: One that is.
        first_parent: Whether a merge is one step.
        setup: Command that sets up an environment for each revision; "" for none.
        runs: Pairs of the proof at most; 0 for the default of `proton ab`.
        policy: The policy of the proof.
    """

    command: Command
    good: str
    bad: str
    first_parent: bool = False
    setup: str = ""
    runs: int = 0
    policy: Policy = field(default_factory=Policy)

    def ends(self) -> tuple[Revision, Revision]:
        """Return the good and the bad commit.

        Raises:
            UsageError: One is unknown, or the bad one does not contain the good one.
        """
        folder = self.command.options.folder
        good, bad = find_revision(self.good, folder), find_revision(self.bad, folder)
        if good.commit == bad.commit:
            raise UsageError("GOOD and BAD are one revision: give two different ones")
        try:
            common = git(bad.root, "merge-base", good.commit, bad.commit)
        except UsageError as error:
            raise UsageError(f"{good.ref} and {bad.ref} have no common commit") from error
        if common == bad.commit:
            raise UsageError(f"{bad.ref} is older than {good.ref}: give the good revision first")
        if common != good.commit:
            raise UsageError(
                f"{bad.ref} does not contain {good.ref}: give their common commit {common[:12]} "
                "as GOOD"
            )
        return good, bad

    def run(self, folder: Path, progress: Progress) -> BisectResult:
        """Prove the regression and search; every run is kept in the folder.

        Raises:
            TargetFailedError: A run of the good revision failed, or in the proof of the bad one.
            InterruptedExperimentError: A signal came.
            UsageError: Nothing can be measured.
            ProtonError: Something cannot be written.
        """
        good, bad = self.ends()
        kept = KeptRuns.create(folder, {"doing": "bisect", "good": good.commit, "bad": bad.commit})
        with (
            interruptible(),
            kept.in_use(),
            progress,
            worktree(good, folder / _TREES[BASE]) as good_tree,
            worktree(bad, folder / _TREES[NEW]) as tree,
        ):
            trees = {BASE: good_tree, NEW: tree}
            result = _Search(self, good, bad, trees, kept, progress).run()
        write_json(folder / "result.json", result.to_document())
        return result


@dataclass(eq=False)
class _Search:
    bisection: Bisection
    good: Revision
    bad: Revision
    trees: Mapping[str, Path]
    kept: KeptRuns
    progress: Progress

    def __post_init__(self) -> None:
        self._disturbances = Disturbances()
        self.root, self.tree = self.bad.root, str(self.trees[NEW])
        self._git_dir = git(self.tree, "rev-parse", "--absolute-git-dir")
        self._script = self._tracked_script()
        self._steps = ["--first-parent"] if self.bisection.first_parent else []
        span = f"{self.good.commit}..{self.bad.commit}"
        listed = git(self.root, "rev-list", "--topo-order", "--reverse", *self._steps, span)
        self.order = listed.split()

    def run(self) -> BisectResult:
        """Prove the regression, and search for what brought it."""
        count = count_text(len(self.order), "revision")
        self.progress.say(f"{count} to search, first {self.good.ref} and {self.bad.ref} in turn")
        with self._arm(BASE, self.good.commit, self.good.ref) as self._base:
            return self._result()

    def _result(self) -> BisectResult:
        good = Candidate(self.good.commit, escape_surrogates(self.good.ref))
        with self._arm(NEW, self.bad.commit, self.bad.ref) as new:
            series = self._series(self.kept, new)
            experiment = PairedExperiment(
                self._base,
                new,
                self.bisection.policy,
                series=series,
                runs=self.bisection.runs,
                is_enough=_is_proven,
            )
            proof = experiment.run()
        result = BisectResult(_verdict(proof), proof, good, len(self.order))
        if alike := self._loaded_alike():
            return replace(result, verdict=BisectVerdict.INCOMPARABLE, problem=_alike_text(alike))
        slowdown = _slowdown_of(proof)
        if proof.verdict is not SuiteVerdict.FAIL or slowdown is None:
            return result
        tested = self._tested(slowdown, self._differences(series, slowdown))
        left = self._left()
        parents = git(self.root, "rev-parse", f"{left[0]}^@").split()
        return replace(
            result,
            verdict=BisectVerdict.FOUND if len(left) == 1 else BisectVerdict.RANGE,
            candidates=tuple(map(self._candidate, left)),
            parents=tuple(
                good if name == good.name else self._candidate(name)
                for name in parents[: 1 if self._steps else None]
                if name == good.name or name in self.order
            ),
            path=slowdown.text,
            metric=slowdown.metric,
            tested=tuple(sorted(tested, key=lambda each: self.order.index(each.revision.name))),
        )

    # -- git bisect ------------------------------------------------------------------------------
    def _tested(self, slowdown: _Slowdown, proof: Sequence[_Pair]) -> list[Measurement]:
        """Mark revisions until git has no more to test."""
        self.progress.limit(None)  # how many follow depends on what they measure
        self._git("bisect", "start", *self._steps, self.bad.commit, self.good.commit)
        tested: list[Measurement] = []
        done = {self.bad.commit}
        while not done.issuperset(left := self._left()):
            name = self._git("rev-parse", "HEAD")
            if name in done:
                raise UsageError(f"git bisect in {self.tree!a} does not go on from {name[:12]}")
            measured = self._measured(self._candidate(name), slowdown, proof)
            tested.append(measured)
            done.add(name)
            # What a setup left there would be in the way of the next checkout.
            self._git("reset", "--quiet", "--hard")
            self._git("clean", "-ffdxq")
            word = "skip" if measured.state is State.SKIPPED else measured.state.value
            with contextlib.suppress(UsageError):  # it fails where only skipped ones are left
                self._git("bisect", word, name)
            left = self._left()
            self.progress.say(
                f"{measured.state}: {measured.revision.text}; "
                f"{count_text(len(left), 'revision')} left"
            )
        return tested

    def _left(self) -> list[str]:
        """Return the revisions one of which is the first bad one, oldest first."""
        good = "--glob=refs/bisect/good-*"
        return self._git(
            "rev-list", "--topo-order", "--reverse", *self._steps, "refs/bisect/bad", "--not", good
        ).split()

    def _git(self, *words: str) -> str:
        # If a setup removes .git there, git must not take the repository around it for the tree.
        return git(self.tree, f"--git-dir={self._git_dir}", "--work-tree=.", *words)

    def _candidate(self, name: str) -> Candidate:
        words = ("log", "-1", "--no-color", "--no-show-signature", "--encoding=UTF-8")
        shown = escape_surrogates(git(self.root, *words, "--format=%an%n%aI%n%s", name))
        author, date, title = (*shown.split("\n"), "", "")[:3]
        return Candidate(name, title, author, date)

    # -- measuring -------------------------------------------------------------------------------
    def _measured(
        self, revision: Candidate, slowdown: _Slowdown, proof: Sequence[_Pair]
    ) -> Measurement:
        folder = self.kept.folder / "revisions" / revision.name
        kept = KeptRuns.create(folder, {"doing": "bisect", "revision": revision.name})
        try:
            with contextlib.ExitStack() as stack:
                try:
                    arm = stack.enter_context(self._arm(NEW, revision.name, revision.text))
                except TargetFailedError as error:
                    raise _CannotMeasureError(_reason(error)) from error
                return self._decided(revision, self._series(kept, arm), slowdown, proof=proof)
        except _CannotMeasureError as error:
            reason = escape_surrogates(str(error))
            return Measurement(revision, State.SKIPPED, reason=reason)

    def _decided(
        self, revision: Candidate, series: Series, slowdown: _Slowdown, *, proof: Sequence[_Pair]
    ) -> Measurement:
        effect, noise = _level(proof)
        self._run(series, Slot(Stage.WARM_UP, 0, NEW))
        for pair in range(_MOST_PAIRS):
            is_base_first = pair % 2 == 0
            for arm in (BASE, NEW) if is_base_first else (NEW, BASE):
                self._run(series, Slot(Stage.PAIR, pair, arm, is_base_first))
            if is_base_first or pair + 1 < _LEAST_PAIRS:
                continue  # both orders, so that running second costs both sides as much
            found = self._differences(series, slowdown)
            if not all(math.isfinite(value) for value, _ in found):
                what = slowdown.metric or "launches"
                raise _CannotMeasureError(f"it has no {what} of {slowdown.text}")
            change, own_noise = _level(found)
            error = _OF_MEDIAN * max(noise, own_noise) / math.sqrt(len(found))
            towards_bad = math.copysign(1.0, effect) * (change - effect / 2.0)
            if abs(towards_bad) > _CLEAR * error:
                break
        else:
            raise _CannotMeasureError(f"{_MOST_PAIRS} pairs do not tell it from good or bad")
        reach = float(special.stdtrit(max(len(proof) - 2, 1), 0.95)) * error
        low, high = math.expm1(change - reach), math.expm1(change + reach)
        state = State.BAD if towards_bad > 0.0 else State.GOOD
        return Measurement(revision, state, len(found), math.expm1(change), low, high)

    def _run(self, series: Series, slot: Slot) -> None:
        try:
            series.run([slot])
        except TargetFailedError as error:
            if slot.arm == BASE:
                raise
            raise _CannotMeasureError(_reason(error)) from error

    def _differences(self, series: Series, slowdown: _Slowdown) -> list[_Pair]:
        """Return what the pairs of a folder say; NaN where a run lacks what is measured."""
        slots = [run.slot for run in series.kept.of(Stage.PAIR)]
        runs = series.read(slots)
        sides: dict[int, dict[str, Run]] = {slot.pair: {} for slot in slots}
        for slot in slots:
            sides[slot.pair][slot.arm] = runs[slot]
        first = {slot.pair: slot.base_first for slot in slots}
        policy = self.bisection.policy
        try:
            return [
                (slowdown.of_pair(side[BASE], side[NEW], policy), first[pair])
                for pair, side in sides.items()
            ]
        except UsageError as error:
            raise _CannotMeasureError(str(error)) from error

    def _series(self, kept: KeptRuns, new: Arm) -> Series:
        own = str(self._environment("own"))
        homes = {str(tree): self.root for tree in self.trees.values()}
        homes |= {str(self._environment(arm)): own for arm in _TREES}
        arms = {BASE: self._base, NEW: new}
        return Series(kept, arms, self.progress, homes=homes, disturbances=self._disturbances)

    # -- where revisions run ---------------------------------------------------------------------
    @contextlib.contextmanager
    def _arm(self, name: str, commit: str, label: str) -> Iterator[Arm]:
        """Yield a side that runs what is checked out in its tree."""
        tree, command = self.trees[name], self.bisection.command
        if self._script:
            options = replace(command.options, target=str(tree / self._script))
            command = replace(command, options=options)
        front = first_folders_of(Revision(self.root, label, commit), tree)
        arm = Arm(name, command, label, front, revision=commit)
        if not self.bisection.setup:
            yield arm
            return
        with own_environment(self._environment(name), tree, self.bisection.setup) as own:
            yield arm.inside(own)

    def _environment(self, name: str) -> Path:
        return self.kept.folder / f"{name}-environment"

    def _tracked_script(self) -> str:
        """Return the script from the top folder if both ends have it and no edit is uncommitted.

        Then each revision runs its own one.
        """
        if not self.bisection.command.script:
            return ""
        script = os.path.relpath(os.path.realpath(self.bisection.command.script), self.root)
        if script.startswith(os.pardir):
            return ""
        try:
            for end in (self.good, self.bad):
                git(self.root, "cat-file", "-e", f"{end.commit}:{script}")
            edited = git(self.root, "status", "--porcelain", "--", f":(literal,top){script}")
        except UsageError:
            return ""
        return "" if edited else script

    def _loaded_alike(self) -> list[str]:
        """Return changed files of which both ends loaded the same version."""
        listed = []
        for arm in (BASE, NEW):
            runs = self.kept.of(Stage.WARM_UP, arm)
            modules = self.kept.modules(runs[0]) if runs else None
            if modules is None:
                return []
            away = os.path.realpath(self.trees[arm]) + os.sep
            listed.append(
                [
                    LoadedModule(
                        each["name"],
                        os.path.join(self.root, each["file"].removeprefix(away)),
                        each["sha256"],
                    )
                    for each in modules
                ]
            )
        changed = changed_files(self.good, self.bad.commit)
        return loaded_alike(listed[0], listed[1], changed, root=self.root)


def _level(pairs: Sequence[_Pair]) -> tuple[float, float]:
    """Return median and standard deviation of pairs, without what running second costs."""
    orders = [[value for value, first in pairs if first is order] for order in (True, False)]
    known = [values for values in orders if values]
    medians = [statistics.median(values) for values in known]
    deviations = [
        abs(value - median)
        for values, median in zip(known, medians, strict=True)
        for value in values
    ]
    return statistics.fmean(medians), _OF_DEVIATION * statistics.median(deviations)


def _verdict(proof: GateResult) -> BisectVerdict:
    # A gate may pass with a few undecided paths, one of which may be what the user looks for.
    is_open = any(row.is_undecided for row in proof.rows)
    if proof.verdict is SuiteVerdict.PASS and not is_open:
        return BisectVerdict.NO_REGRESSION
    if proof.verdict is SuiteVerdict.INCOMPARABLE:
        return BisectVerdict.INCOMPARABLE
    return BisectVerdict.INCONCLUSIVE


def _alike_text(files: Sequence[str]) -> str:
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return (
        f"{', '.join(files[:_SHOWN])}{more} changed between the two revisions, but both loaded the "
        "same version, so nothing can be measured. An installed package or a folder comes before "
        "the checkouts in the search path: give each revision its own environment with --setup "
        "'pip install .'"
    )


def _reason(error: BaseException) -> str:
    """Return why a revision cannot be measured, first the last line of what it printed."""
    lines = [line.strip() for note in getattr(error, "__notes__", ()) for line in note.splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    return f"{last}; {error}" if last else str(error)
