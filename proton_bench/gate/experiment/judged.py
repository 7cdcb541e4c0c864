"""What `proton gate` and the gate of a test run do with two sides of runs: one and the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
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
    """Judge new runs by base runs, either of which may be missing.

    Args:
        base: Runs to compare with.
        new: Runs to judge; none where they were not made for want of a base.
        policy: What is asked.
        explain: Says in a sentence what explains a change of the whole.
        noise: Noise of the machine that the caller named.
        store: Folder below which noise of machines is kept, for where none was named; None leaves
            it alone.

    Raises:
        ProtonError: See `judge`; or noise that is kept cannot be read.
    """
    if not new.runs:
        shell = GateResult(SuiteVerdict.NO_BASELINE, level=policy.level)
        return Outcome(shell, problem=base.missing)
    if noise is None and store is not None:
        noise = noise_of_runs([*base.runs, *new.runs], store)
    result = judge(base.runs, new.runs, policy, context=Context(noise=noise))
    explains = result.metric and result.verdict is not SuiteVerdict.NO_BASELINE
    explanation = explain(_comparison(base, new, policy)) if explains else ""
    return Outcome(result, explanation, base.missing)


def compared(base: Side, new: Side, policy: Policy) -> Subject:
    """Return what of the runs of both sides is compared."""
    return subject_of(Arrangement(base.runs, new.runs), policy)


def _comparison(base: Side, new: Side, policy: Policy) -> Comparison:
    """Lay the runs of both sides over each other."""
    subject = compared(base, new, policy)
    options = CompareOptions(
        raw_names=policy.raw_names, ignore_devices=policy.ignore_devices, follow=subject.follows
    )
    runs = subject.arrangement
    return compare(runs.base, runs.new, options)
