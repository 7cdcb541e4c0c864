from __future__ import annotations

import numpy as np
import pytest
from fakes.gated import Kernel, process

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import Reason, SuiteVerdict, Verdict


def apart(*kernels: Kernel, shift: float = 0.0) -> tuple[list[Run], list[Run]]:
    """Return runs of two sessions, the second of which is slower in everything by ``shift``."""
    generator = np.random.default_rng(1)
    shifted = [Kernel(**{**vars(each), "slower": each.slower + shift}) for each in kernels]
    base = [process(kernels, generator, new=False, at=at) for at in range(6)]
    return base, [process(shifted, generator, new=True, at=at) for at in range(10, 16)]


QUIET = [Kernel(f"k{number}", between=0.003) for number in range(12)]
OWN = Kernel("own", between=0.003, slower=0.08)


def test_a_shift_of_everything_since_a_stored_base_is_undecided() -> None:
    result = gate_result(*apart(*QUIET, shift=0.05), Policy())

    rows = [row for row in result.rows if not row.is_extra]
    assert {row.verdict for row in rows} == {Verdict.INCONCLUSIVE}
    assert {row.reasons[0] for row in rows} == {Reason.MACHINE}
    assert all(row.downgraded for row in rows)
    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    assert {note.reason for note in result.notes} == {Reason.MACHINE}


def test_a_slowdown_beyond_the_shift_is_believed() -> None:
    result = gate_result(*apart(*QUIET, OWN, shift=0.03), Policy())

    assert {row.path for row in result.regressions} == {("own",)}


def test_canaries_that_stood_still_make_the_shift_the_programs() -> None:
    canary = Kernel("<canary>/fma", between=0.0005)
    slower = [Kernel(each.path, between=0.003, slower=0.05) for each in QUIET]

    result = gate_result(*apart(*slower, canary), Policy())

    assert len([row for row in result.regressions if row.path]) == 12
    assert result.verdict is SuiteVerdict.FAIL


def test_everything_faster_could_hide_a_slowdown() -> None:
    result = gate_result(*apart(*QUIET, shift=-0.05), Policy())

    rows = [row for row in result.rows if not row.is_extra]
    assert {row.verdict for row in rows} == {Verdict.INCONCLUSIVE}
    assert not any(row.downgraded for row in result.rows)
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_a_small_shift_is_ignored() -> None:
    assert gate_result(*apart(*QUIET, shift=0.01), Policy()).verdict is SuiteVerdict.PASS


@pytest.mark.parametrize("paths", [1, 7])
def test_few_paths_have_to_exceed_what_sessions_usually_differ_by(paths: int) -> None:
    small = gate_result(*apart(*QUIET[:paths], shift=0.04), Policy())
    large = gate_result(*apart(*QUIET[:paths], shift=0.1), Policy())
    nothing = gate_result(*apart(*QUIET[:paths]), Policy())

    assert {row.reasons[0] for row in small.rows if not row.is_extra} == {Reason.MACHINE}
    assert small.verdict is SuiteVerdict.INCONCLUSIVE
    assert len({row.path for row in large.regressions if row.path}) == paths
    assert nothing.verdict is SuiteVerdict.PASS
