"""Measures, from runs of one program, the noise of each path and the gate's false alarms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.judge.benchmarks import measure_subject, subject_of
from proton_bench.gate.judge.check import Check, choose_checks, lasting_keys, limits_of
from proton_bench.gate.judge.measured import Measured
from proton_bench.gate.judge.observations import Observations, observe_checks
from proton_bench.gate.machine.fingerprint import Tier, examine_runs, machine_of
from proton_bench.gate.machine.noise import Noise, PathNoise, Spread
from proton_bench.gate.machine.rate import Rate
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.arrangement import paired_as
from proton_bench.gate.statistics.contrast import Contrast, paired
from proton_bench.gate.statistics.evidence import Background, weigh
from proton_bench.gate.statistics.timing import decide

__all__ = ["FEWEST_RUNS", "measure_noise", "resample_false_alarms"]

Numbers = npt.NDArray[np.float64]

FEWEST_RUNS = 8


def measure_noise(runs: Sequence[Run], policy: Policy) -> Noise:
    """Return the noise of runs of one program, in the order in which they ran.

    Two consecutive runs are a pair. Its first run counts as the base in every second pair, as in a
    gate, so that drift is removed in the same way.

    Raises:
        UsageError: There are fewer than `FEWEST_RUNS`, or they are of different machines.
    """
    measured, checks, observations, order = _as_pairs(runs, policy)
    base, new = observations.logarithms()
    pair = paired(base, new, order, metrics=[check.threshold.metric for check in checks])
    everything = np.concatenate([base, new])
    counts = np.isfinite(everything).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        middles = np.nansum(everything, axis=0) / np.maximum(counts, 1)
        run_variance = np.nansum((everything - middles) ** 2, axis=0) / (counts - 1.0)
    run_freedom = np.maximum(counts - 1.0, 0.0)
    pair_variance = np.maximum(pair.variance, observations.tick_floor(paired=True))
    run_variance = np.maximum(run_variance, observations.tick_floor(paired=False))
    return Noise(
        machine=machine_of(runs[0].profile),
        paths=tuple(
            PathNoise(
                *key,
                Spread(float(pair_variance[at]), float(pair.freedom[at])),
                Spread(float(run_variance[at]), float(run_freedom[at])),
            )
            for at, key in enumerate(lasting_keys(measured, checks))
        ),
        runs=len(runs),
    )


def resample_false_alarms(
    runs: Sequence[Run], policy: Policy, *, splits: int = 1000, seed: int = 0
) -> Rate:
    """Return how often this gate fails runs of one program on this machine.

    Pairs stay together; each split makes another half of the first runs of pairs the base. The
    splits share their runs, so bounds for independent trials are too narrow. Absolute floors are
    not applied, which can only make alarms more frequent.

    Args:
        runs: Runs in the order in which they ran.
        policy: Policy of the gate.
        splits: How many gates to judge.
        seed: Of the splits.

    Raises:
        UsageError: There are fewer than `FEWEST_RUNS`, or they are of different machines.
    """
    _, checks, observations, order = _as_pairs(runs, policy)
    base, new = observations.logarithms()
    first = np.where(order[:, None] > 0, base, new)
    second = np.where(order[:, None] > 0, new, base)
    limits = limits_of(checks, observations.between())
    metrics = [check.threshold.metric for check in checks]
    background = Background(
        observations.tick_floor(paired=True), observations.resolution(), metrics
    )
    generator = np.random.default_rng(seed)
    alarms = 0
    for _ in range(splits):
        signs = generator.permutation(np.where(np.arange(len(order)) % 2 == 0, 1.0, -1.0))
        contrast = _signed(first, second, signs, metrics=metrics)
        evidence = weigh(contrast, background, fewest_runs=policy.runs)
        found = decide(evidence, limits)
        alarms += bool(found.worse.any())
    return Rate(alarms, splits)


def _signed(first: Numbers, second: Numbers, signs: Numbers, *, metrics: Sequence[str]) -> Contrast:
    is_first = signs[:, None] > 0
    base, new = np.where(is_first, first, second), np.where(is_first, second, first)
    return paired(base, new, signs, metrics=metrics)


def _as_pairs(
    runs: Sequence[Run], policy: Policy
) -> tuple[Measured, tuple[Check, ...], Observations, Numbers]:
    if len(runs) < FEWEST_RUNS:
        raise UsageError(
            f"{len(runs)} runs say too little about noise; record at least {FEWEST_RUNS} of one "
            "program"
        )
    findings = examine_runs(runs[:1], runs[1:])
    other = [each.fact for each in findings if each.tier in {Tier.HARD, Tier.UNIT}]
    if other:
        raise UsageError(f"the runs differ in {', '.join(other)}: noise must be of one machine")
    pairs = len(runs) // 2
    firsts, seconds = runs[0 : 2 * pairs : 2], runs[1 : 2 * pairs : 2]
    turns = [pair % 2 == 0 for pair in range(pairs)]
    base = [one if turn else two for one, two, turn in zip(firsts, seconds, turns, strict=True)]
    new = [two if turn else one for one, two, turn in zip(firsts, seconds, turns, strict=True)]
    subject = subject_of(paired_as(base, new, turns), policy)
    measured = measure_subject(subject)
    measured = measured.by_statistic(subject.policy.statistic)
    checks = choose_checks(measured, subject.policy)
    return measured, checks, observe_checks(measured, checks), np.array(subject.arrangement.order)
