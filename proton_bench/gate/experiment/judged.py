"""Judges two sides of recorded runs, or records the new side while it judges."""

from __future__ import annotations

from collections.abc import Callable

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.gate.baselines import Side
from proton_bench.gate.experiment.looks import Look, looks
from proton_bench.gate.experiment.replicates import Replicates
from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.decision import FALSE_ALARMS
from proton_bench.gate.verdict.benchmarks import ComparedRuns, compared_runs
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.decisions import Context
from proton_bench.gate.verdict.result import GateResult, Outcome, SuiteVerdict

__all__ = ["compared", "decided", "judged_afresh"]

_Explain = Callable[[Comparison], str]


def decided(
    base: Side,
    new: Side,
    policy: Policy,
    *,
    explain: _Explain,
    look: Look | None = None,
) -> Outcome:
    """Compare new runs with base runs; either side may be missing.

    Args:
        base: Runs to compare with.
        new: Runs to judge; none if they were not made because there is no base.
        policy: The policy.
        explain: Returns a sentence that explains the change of the whole run.
        look: Which of several looks at the new side this is, None for the only one.

    Raises:
        ProtonError: See `gate_result`.
    """
    if not new.runs:
        shell = GateResult(SuiteVerdict.NO_BASELINE, level=FALSE_ALARMS)
        return Outcome(shell, problem=base.missing)
    context = None if look is None else Context(part=look.part, pairs=look.most)
    result = gate_result(base.runs, new.runs, policy, context=context)
    seen = result.comparison
    said = "" if seen is None or result.verdict is SuiteVerdict.NO_BASELINE else explain(seen)
    return Outcome(result, said, base.missing)


def judged_afresh(
    base: Side,
    made: Replicates,
    policy: Policy,
    *,
    runs: tuple[int, int],
    explain: _Explain,
) -> tuple[Outcome, Side]:
    """Record the new side until every path is decided, and return the outcome with that side.

    Args:
        base: Runs to compare with.
        made: Records the new side.
        policy: The policy.
        runs: Runs of the new side, at least and at most.
        explain: See `decided`.

    Raises:
        ProtonError: See `decided` and `Replicates.first`.
    """
    fewest, most = runs
    for look in looks(most, fewest, is_asked=True):
        new = Side(made.first(look.pairs))
        outcome = decided(base, new, policy, explain=explain, look=look)
        if not look.goes_on(outcome.result, made.say):
            break
    return outcome, new


def compared(base: Side, new: Side, policy: Policy) -> ComparedRuns:
    """Return the parts of the runs that are compared."""
    return compared_runs(Arrangement(base.runs, new.runs), policy)
