"""The proof that the bad revision is slower, as `proton ab` finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proton_bench.gate.bisect.places import LazyArms
from proton_bench.gate.bisect.result import BisectResult, BisectVerdict
from proton_bench.gate.bisect.revisions import differing_files
from proton_bench.gate.bisect.search import Seen
from proton_bench.gate.bisect.setting import Setting
from proton_bench.gate.bisect.subject import Subject, is_proven, subject_of
from proton_bench.gate.experiment.ab import compare_arms
from proton_bench.gate.experiment.loaded import loaded_alike
from proton_bench.gate.experiment.slot import BASE, NEW, Stage
from proton_bench.gate.judge.result import GateResult
from proton_bench.gate.judge.verdict import SuiteVerdict

__all__ = ["Proof", "prove"]

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
