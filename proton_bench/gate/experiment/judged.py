"""Judges two sides of runs, for `proton gate` and for the gate of pytest alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.readable import with_texts
from proton_bench.analysis.naming.readable import Readable
from proton_bench.gate.baseline.reference import Side
from proton_bench.gate.experiment.folders.noise_store import noise_of_runs
from proton_bench.gate.judge.benchmarks import Subject, subject_of
from proton_bench.gate.judge.judgement import judge
from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.judge.questions import Context
from proton_bench.gate.judge.result import GateResult
from proton_bench.gate.judge.verdict import SuiteVerdict
from proton_bench.gate.machine.noise import Noise
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.timing import FALSE_ALARMS

__all__ = ["compared", "judged"]


def judged(
    base: Side,
    new: Side,
    policy: Policy,
    *,
    explain: Callable[[Comparison], str],
    noise: Noise | None = None,
    store: Path | None,
) -> Outcome:
    """Compare new runs with base runs; either side may be missing.

    Args:
        base: Runs to compare with.
        new: Runs to judge; none if they were not made because there is no base.
        policy: The policy.
        explain: Returns a sentence that explains the change of the whole run.
        noise: Noise of the machine, given by the caller.
        store: Folder of stored noise, used if none was given; None uses none.

    Raises:
        ProtonError: See `judge`; or stored noise cannot be read.
    """
    if not new.runs:
        shell = GateResult(SuiteVerdict.NO_BASELINE, level=FALSE_ALARMS)
        return Outcome(shell, problem=base.missing)
    if noise is None and store is not None:
        noise = noise_of_runs([*base.runs, *new.runs], store)
    result = judge(base.runs, new.runs, policy, context=Context(noise=noise))
    explains = result.metric and result.verdict is not SuiteVerdict.NO_BASELINE
    explanation = ""
    if explains:
        readable = Readable(kernels=not policy.raw_names)
        explanation = explain(with_texts(_comparison(base, new, policy), readable))
    return Outcome(result, explanation, base.missing)


def compared(base: Side, new: Side, policy: Policy) -> Subject:
    """Return the parts of the runs that are compared."""
    return subject_of(Arrangement(base.runs, new.runs), policy)


def _comparison(base: Side, new: Side, policy: Policy) -> Comparison:
    """Align the runs of both sides."""
    subject = compared(base, new, policy)
    options = CompareOptions(
        raw_names=policy.raw_names, ignore_devices=policy.ignore_devices, follow=subject.follows
    )
    runs = subject.arrangement
    return compare(runs.base, runs.new, options)
