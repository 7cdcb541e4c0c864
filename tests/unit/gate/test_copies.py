"""A copy of a run does not count as a second run."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.gated import Kernel, process, session

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.machine import check_replicates
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import SuiteVerdict


def run(pid: int | None, *, at: int = 0, name: str = "a.proton") -> Run:
    facts = {} if pid is None else {"pid": pid}
    made = process([Kernel("k")], np.random.default_rng(at), new=False, at=at, **facts)
    return Run(made.profile, name)


@pytest.mark.parametrize("side", ["base", "new", "both"])
def test_one_run_twice_is_refused_with_both_names(side: str) -> None:
    copies = [run(7), run(7, name="b.proton")]
    others = [run(8, at=1), run(9, at=2)]
    sides = {"base": (copies, others), "new": (others, copies), "both": (copies[:1], copies[1:])}

    with pytest.raises(UsageError, match=r"'a.proton' and 'b.proton' .*process 7 "):
        gate_result(*sides[side], Policy())


def test_runs_of_other_times_or_processes_are_runs_of_their_own() -> None:
    check_replicates([run(7), run(8), run(7, at=1)])
    names = [each.source for each in session([Kernel("k")])[0]]

    assert len(set(names)) == 6


def test_runs_without_an_identity_are_believed() -> None:
    base, new = [run(None), run(None)], [run(None, at=1)] * 2

    assert gate_result(base, new, Policy()).verdict is SuiteVerdict.INCONCLUSIVE
