"""Judges two sides of runs, for `proton gate` and for the gate of pytest alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.gate.baseline.reference import Side
from proton_bench.gate.experiment.folders.noise_store import noise_of_runs
from proton_bench.gate.judge.benchmarks import Subject, subject_of
from proton_bench.gate.judge.judgement import judge
from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.judge.questions import Context
from proton_bench.gate.judge.result import GateResult
from proton_bench.gate.judge.verdict import SuiteVerdict
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
    store: Path | None,
) -> Outcome:
    """Compare new runs with base runs; either side may be missing.

    Args:
        base: Runs to compare with.
        new: Runs to judge; none if they were not made because there is no base.
        policy: The policy.
        explain: Returns a sentence that explains the change of the whole run.
        store: Folder of stored noise; None uses none.

    Raises:
        ProtonError: See `judge`; or stored noise cannot be read.
    """
    if not new.runs:
        shell = GateResult(SuiteVerdict.NO_BASELINE, level=FALSE_ALARMS)
        return Outcome(shell, problem=base.missing)
    noise = None if store is None else noise_of_runs([*base.runs, *new.runs], store)
    result = judge(base.runs, new.runs, policy, context=Context(noise=noise))
    seen = result.comparison
    said = "" if seen is None or result.verdict is SuiteVerdict.NO_BASELINE else explain(seen)
    return Outcome(result, said, base.missing)


def compared(base: Side, new: Side, policy: Policy) -> Subject:
    """Return the parts of the runs that are compared."""
    return subject_of(Arrangement(base.runs, new.runs), policy)
