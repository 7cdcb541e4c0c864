"""The peak of device memory: checked by default where it was recorded, and exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes.gated import Kernel, session

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import GateResult, GateRow, SuiteVerdict, Verdict
from proton_bench.model.metrics.memory import PEAK
from proton_bench.model.metrics.metric import MetricColumn, MetricSpec, ValueKind
from proton_bench.report.words.gate import row_text

KERNELS = [Kernel(f"f/k{number}", between=0.003) for number in range(12)]
HELD = 100 << 20


def with_peak(run: Run, *, of_first: float = 1.0) -> Run:
    """Return the run with 100 MiB below each row that launches, and other ones below the first."""
    profile = run.profile
    rows = np.flatnonzero(profile.columns["count"].valid)
    values = np.zeros(len(profile), dtype="<i8")
    values[rows] = HELD
    values[rows[0]] = round(HELD * of_first)
    column = MetricColumn(MetricSpec(PEAK), ValueKind.INT, values, values > 0)
    return replace(run, profile=replace(profile, columns={**profile.columns, PEAK: column}))


def gated(*thresholds: str, of_first: float = 1.0, seed: int = 1) -> GateResult:
    base, new = session(KERNELS, seed=seed)
    return gate_result(
        [with_peak(run) for run in base],
        [with_peak(run, of_first=of_first) for run in new],
        Policy().with_thresholds(thresholds),
    )


def peaks(result: GateResult) -> list[GateRow]:
    return [row for row in result.rows if row.metric == "peak"]


def test_the_peak_of_the_run_is_checked_without_being_asked_for() -> None:
    (row,) = peaks(gated())

    assert (row.path, row.verdict) == ((), Verdict.SAME)
    assert row.base == row.new == pytest.approx(12 * HELD)


def test_one_percent_more_fails_where_half_a_percent_is_allowed() -> None:
    result = gated("peak:0.5%", of_first=1.12)  # 1 % of the whole

    (row,) = peaks(result)
    assert result.verdict is SuiteVerdict.FAIL
    assert row.verdict is Verdict.REGRESSED
    assert row.change == pytest.approx(0.01, abs=1e-4)
    assert row.causes == ("+12 MiB in f > k0",)


def test_less_memory_is_better() -> None:
    (row,) = peaks(gated(of_first=0.3))

    assert row.verdict is Verdict.IMPROVED


@pytest.mark.parametrize("seed", range(40))
def test_equal_programs_pass(seed: int) -> None:
    result = gated("peak:0.5%", seed=seed)

    assert [row.verdict for row in peaks(result)] == [Verdict.SAME]


def test_a_path_is_checked_where_it_is_named() -> None:
    rows = peaks(gated("f/k0@peak:1%", of_first=1.02))

    assert {row.path: row.verdict for row in rows} == {
        (): Verdict.SAME,
        ("f", "k0"): Verdict.REGRESSED,
    }


def test_a_side_without_memory_is_not_checked_unless_it_is_asked_for() -> None:
    base, new = session(KERNELS)
    sides = base, [with_peak(run) for run in new]

    assert not peaks(gate_result(*sides, Policy()))
    asked = gate_result(*sides, Policy().with_thresholds(["peak:2%"]))
    assert asked.verdict is SuiteVerdict.INCONCLUSIVE
    assert any("peak" in note.text for note in asked.notes)


def test_peaks_are_shown_in_sizes() -> None:
    from proton_bench.gate.verdict.result import Outcome

    result = gated("peak:0.5%", of_first=1.12)
    (row,) = peaks(result)

    text = row_text(row, Outcome(result))
    assert "more" in text
    assert "1.172 GiB -> 1.184 GiB" in text
