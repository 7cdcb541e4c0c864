"""The gate: runs of two sides and a policy in, a verdict out. Nothing is run, read or awaited."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.arrangement import Arrangement, arrange
from proton_bench.gate.canary import Canaries, log_clocks, observe
from proton_bench.gate.check import Check, choose_checks, limits_of
from proton_bench.gate.controls import Controls, examine
from proton_bench.gate.evidence import Background, contrast_of, weigh
from proton_bench.gate.fingerprint import Finding, examine_runs, machine_of
from proton_bench.gate.measured import Measured, measure
from proton_bench.gate.noise import Noise, Spread
from proton_bench.gate.notes import notes_on, unmatched, void_note
from proton_bench.gate.observations import Observations, observe_checks
from proton_bench.gate.policy import Policy
from proton_bench.gate.prior import NO_PRIOR
from proton_bench.gate.result import GateResult, Note
from proton_bench.gate.rows import Judged, answer
from proton_bench.gate.structure import find_structural_changes
from proton_bench.gate.suite import sum_up
from proton_bench.gate.timing import Evidence, Limits, decide, one_sided
from proton_bench.gate.verdict import Reason, SuiteVerdict

__all__ = ["Context", "judge"]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Context:
    """What a gate knows besides the runs.

    Attributes:
        noise: What is stored of this machine's noise.
        arrangement: How the runs pair, where somebody knows it better than their times.
        confirm: Paths that screening flagged; the others were found the same by it. None gates all.
    """

    noise: Noise | None = None
    arrangement: Arrangement | None = None
    confirm: Collection[tuple[str, ...]] | None = None


def judge(
    base_runs: Sequence[Run],
    new_runs: Sequence[Run],
    policy: Policy,
    *,
    context: Context | None = None,
) -> GateResult:
    """Judge new runs by base runs; each run is one fresh process.

    The same runs and policy give the same result, to the bit. One run on each side decides
    structure alone; timing takes ``policy.runs`` processes on each side, or stored noise.

    Args:
        base_runs: Runs to compare with; none gives NO-BASELINE.
        new_runs: Runs to judge.
        policy: What is asked.
        context: What is known besides.

    Raises:
        MetricError: A run lacks the metric, or it is no number.
        UsageError: There is no new run, a run is empty, units differ, or a threshold asks for an
            amount of time where no time was recorded.
    """
    if not new_runs:
        raise UsageError("a gate needs at least one new run")
    context = context or Context()
    shell = GateResult(
        SuiteVerdict.NO_BASELINE,
        base_runs=tuple(run.source for run in base_runs),
        new_runs=tuple(run.source for run in new_runs),
        level=policy.level,
        inconclusive_passes=policy.inconclusive_passes,
    )
    if not base_runs:
        return replace(shell, notes=(void_note(Reason.NO_BASE_RUNS),))
    findings = examine_runs(base_runs, new_runs)
    notes = notes_on(findings, policy)
    if any(note.reason is Reason.OTHER_DEVICE for note in notes):
        verdict = SuiteVerdict.INCOMPARABLE
        return replace(shell, verdict=verdict, notes=notes, findings=findings)
    arrangement = context.arrangement or arrange(base_runs, new_runs)
    measured = measure(
        arrangement, raw_names=policy.raw_names, ignore_devices=policy.ignore_devices
    )
    session = _Session(measured, arrangement, policy, context, findings)
    return session.result(replace(shell, findings=findings), notes)


@dataclass(frozen=True, slots=True, eq=False)
class _Session:
    """One gate, from aligned runs on."""

    measured: Measured
    arrangement: Arrangement
    policy: Policy
    context: Context
    findings: tuple[Finding, ...]

    def result(self, shell: GateResult, notes: tuple[Note, ...]) -> GateResult:
        policy, measured = self.policy, self.measured
        checks = choose_checks(measured, policy)
        structure = find_structural_changes(measured, policy)
        canaries = self._canaries()
        judged, controls = self._judged(checks)
        notes += unmatched(measured, policy, checks)
        notes += tuple(self._session_notes(judged, controls, canaries))
        blockers = tuple(note.reason for note in notes if note.reason in self._blocking())
        rows = answer(replace(judged, blockers=blockers), policy)
        return replace(
            shell,
            verdict=sum_up(rows, structure, notes, policy=policy),
            rows=rows,
            structure=structure,
            notes=notes,
            controls=controls,
            canaries=canaries,
            metric=measured.source,
            paired=self.arrangement.is_paired,
        )

    def _blocking(self) -> frozenset[Reason]:
        """What keeps a regression from being believed."""
        always = {Reason.DISTURBED, Reason.CONTROLS_MOVED, Reason.CANARY_MOVED}
        if not self.arrangement.is_paired:
            always.add(Reason.OTHER_UNIT)
        return frozenset(always)

    def _judged(self, checks: tuple[Check, ...]) -> tuple[Judged, Controls]:
        observations = observe_checks(self.measured, checks)
        base, new = observations.logarithms()
        background = self._background(checks, observations)
        evidence = weigh(
            contrast_of(base, new, self.arrangement.order),
            background,
            fewest_runs=self.policy.runs,
        )
        typical = np.sqrt(np.prod(np.stack(observations.typical()), axis=0))
        limits = limits_of(checks, typical, self.policy)
        same_binary = self._same_binary(checks)
        screened = self._screened(checks)
        controls = examine(evidence, limits, same_binary, level=self.policy.level)
        evidence = replace(
            evidence, tested=evidence.tested & ~screened, null_scale=controls.null_scale
        )
        decisions = decide(
            evidence, limits, level=self.policy.level, dependence=self.policy.dependence
        )
        judged = Judged(
            measured=self.measured,
            checks=checks,
            observations=observations,
            evidence=evidence,
            limits=limits,
            decisions=decisions,
            same_binary=same_binary,
            clock_explains=_about_time(checks)
            & self._clock_explains((base, new), background, evidence, limits=limits),
            screened=screened,
        )
        return judged, controls

    def _background(self, checks: Sequence[Check], observations: Observations) -> Background:
        paired = self.arrangement.is_paired
        floor = observations.tick_floor(paired=paired)
        noise = self._noise()
        if noise is None:
            return Background(floor, [Spread(float("nan"), 0.0)] * len(checks), NO_PRIOR)
        tree = self.measured.comparison.tree
        keys = [(tree.path(each.row), each.occurrence, each.threshold.metric) for each in checks]
        return Background(
            floor, noise.spreads(keys, paired=paired), noise.pair if paired else noise.run
        )

    def _noise(self) -> Noise | None:
        noise = self.context.noise
        runs = self.measured.runs
        fits = noise is not None and all(noise.fits(machine_of(run.profile)) for run in runs)
        return noise if fits else None

    def _same_binary(self, checks: Sequence[Check]) -> Mask:
        tree = self.measured.comparison.tree
        rows = np.array([check.row for check in checks], dtype=np.intp)
        base, new = tree.base, tree.new
        alike = (base.codes[rows] > 0) & (base.codes[rows] == new.codes[rows])
        launched = (base.variants[rows] >= 0) & (base.variants[rows] == new.variants[rows])
        found: Mask = alike & launched & _about_time(checks)
        return found

    def _screened(self, checks: Sequence[Check]) -> Mask:
        chosen = self.context.confirm
        if chosen is None:
            return np.zeros(len(checks), dtype=np.bool_)
        tree, flagged = self.measured.comparison.tree, {tuple(path) for path in chosen}
        return np.array([tree.path(each.row) not in flagged for each in checks], dtype=np.bool_)

    def _clock_explains(
        self,
        logs: tuple[Numbers, Numbers],
        background: Background,
        evidence: Evidence,
        *,
        limits: Limits,
    ) -> Mask:
        """Tell where a change of time is none when it is counted in cycles of the SM clock."""
        nothing = np.zeros(len(limits.margin), dtype=np.bool_)
        if self.measured.unit != "ns":
            return nothing
        clocks = log_clocks(self.arrangement.base), log_clocks(self.arrangement.new)
        if not all(np.isfinite(each).all() for each in clocks):
            return nothing
        cycles = [side + clock[:, None] for side, clock in zip(logs, clocks, strict=True)]
        counted = weigh(
            contrast_of(cycles[0], cycles[1], self.arrangement.order),
            background,
            fewest_runs=self.policy.runs,
        )
        grew = np.sign(evidence.contrast.effect)
        p_values = one_sided(
            grew * counted.contrast.effect,
            limits.margin,
            error=counted.error * evidence.null_scale,
            freedom=counted.noise.freedom,
        )
        return ~(p_values <= self.policy.level)

    def _canaries(self) -> Canaries:
        measured = self.measured
        rows = np.flatnonzero(measured.canary & measured.present.all(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = measured.totals[:, rows] / np.maximum(measured.calls[:, rows], 1.0)
            logs = np.where(each > 0, np.log(each), np.nan)
        base, new = measured.sides(logs)
        return observe(contrast_of(base, new, self.arrangement.order).effect)

    def _session_notes(self, judged: Judged, controls: Controls, canaries: Canaries) -> list[Note]:
        found = []
        if self.arrangement.is_confounded:
            found.append(void_note(Reason.ORDER_CONFOUNDED))
        if self.context.noise is not None and self._noise() is None:
            found.append(void_note(Reason.NOISE_OF_ANOTHER_MACHINE))
        if controls.invalid:
            found.append(void_note(Reason.CONTROLS_MOVED))
        if canaries.moved:
            found.append(void_note(Reason.CANARY_MOVED))
        if _is_global(judged):
            found.append(void_note(Reason.GLOBAL_SHIFT))
        return found


def _about_time(checks: Sequence[Check]) -> Mask:
    others = {"mem", "cycles", "flops", "gbps"}
    return np.array([each.threshold.metric not in others for each in checks], dtype=np.bool_)


def _is_global(judged: Judged) -> bool:
    """Tell whether four of five paths, and eight at least, changed alike."""
    tested = judged.evidence.tested
    effect = judged.evidence.contrast.effect[tested]
    margin = judged.limits.margin[tested]
    count = len(effect)
    most = max(int((effect > margin).sum()), int((-effect > margin).sum()))
    return count >= 8 and most >= 0.8 * count
