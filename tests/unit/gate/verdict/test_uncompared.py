"""Rows of one side only are not passed over: lost work, and renamed and slower kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.gated import Kernel, reasons_of, session

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import GateResult, Kind, Reason, SuiteVerdict
from proton_bench.model.builder import ProfileBuilder

QUIET = [Kernel(f"f/k{number}", between=0.003) for number in range(12)]


def decided(
    before: list[Kernel], after: list[Kernel], *thresholds: str, **keys: object
) -> GateResult:
    policy = Policy(**keys).with_thresholds(thresholds)  # type: ignore[arg-type]
    return gate_result(session(before)[0], session(after)[1], policy)


def test_runs_that_lost_most_of_their_work_do_not_pass() -> None:
    result = decided(QUIET, QUIET[:1])

    assert reasons_of(result) == {Reason.PATHS_DIFFER}
    assert result.notes[0].text.startswith("92 % of the base's time is in paths")
    assert result.notes[0].text.endswith(" and 8 more")
    assert (result.verdict, result.exit_code) == (SuiteVerdict.INCONCLUSIVE, 3)


FUSED = [*QUIET[:8], Kernel("f/fused", 250_000.0, between=0.003)]


@pytest.mark.parametrize(
    "after",
    [
        FUSED,
        QUIET[:9],
        [*[Kernel(f"f/v2_{n}", 96_000.0, between=0.003) for n in range(9)], *QUIET[9:]],
        [Kernel("f/everything", 700_000.0, between=0.003), QUIET[0]],
    ],
    ids=["fused", "fused into others", "renamed", "one kernel"],
)
def test_less_work_by_other_kernels_passes(after: list[Kernel]) -> None:
    result = decided(QUIET, after)

    assert result.verdict is SuiteVerdict.PASS
    assert any(each.kind is Kind.REMOVED for each in result.structure)


def test_work_of_other_kernels_that_takes_longer_fails() -> None:
    slower = [*QUIET[:8], Kernel("f/fused", 500_000.0, between=0.003)]

    assert decided(QUIET, slower).verdict is SuiteVerdict.FAIL


def test_removed_work_of_an_undecided_total_stays_undecided() -> None:
    noisy = [replace(each, between=0.3) for each in QUIET]

    result = decided(noisy, [Kernel("f/other", 400_000.0, between=0.3), *noisy[4:]])

    assert Reason.PATHS_DIFFER in reasons_of(result)
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_a_base_of_little_of_the_work_does_not_pass() -> None:
    result = decided(QUIET[:1], QUIET)

    assert result.verdict is SuiteVerdict.FAIL  # the run takes twelve times as long


def test_kernels_that_are_renamed_and_slower_do_not_pass() -> None:
    renamed = [Kernel(f"g/z{n}", between=0.003, slower=0.5) for n in range(11)]

    result = decided(QUIET, [*QUIET[:1], *renamed])

    assert result.verdict is SuiteVerdict.FAIL


def test_a_little_work_may_come_and_go() -> None:
    small = Kernel("f/small", 20_000.0, between=0.003)

    assert decided([*QUIET, small], QUIET).verdict is SuiteVerdict.PASS
    assert decided(QUIET, [*QUIET, small]).verdict is SuiteVerdict.PASS


def test_a_path_that_the_policy_names_may_not_go_unseen() -> None:
    small = Kernel("f/small", 20_000.0, between=0.003)

    gone = decided([*QUIET, small], QUIET, "median:3%", "small@median:3%")
    other = decided([*QUIET, small], QUIET, "median:3%", "k1@median:3%")

    assert reasons_of(gone) == {Reason.PATHS_DIFFER}
    assert gone.verdict is SuiteVerdict.INCONCLUSIVE
    assert other.verdict is SuiteVerdict.PASS


@pytest.mark.parametrize("launch_ns", [float(2**63), -1e5])
def test_a_damaged_time_does_not_hide_the_other_paths(launch_ns: float) -> None:
    damage = {"time (ns)": launch_ns, "count": 1.0}
    before = [*QUIET, Kernel("f/damaged", metrics=damage)]
    after = [replace(before[0], slower=0.5), *before[1:]]

    result = decided(before, after)

    assert result.verdict is not SuiteVerdict.PASS
    assert Reason.NO_VALUES in reasons_of(result)
    (note,) = [each for each in result.notes if each.reason is Reason.NO_VALUES]
    assert note.text.endswith("Damaged: f > damaged")


def test_what_is_quarantined_may_go() -> None:
    assert decided(QUIET, QUIET[:11], quarantine=("k11",)).verdict is SuiteVerdict.PASS


def without_counts(runs: list[Run], *names: str) -> list[Run]:
    """Return the runs without the launches of these kernels, or of all."""
    found = []
    for run in runs:
        builder, profile = ProfileBuilder(), run.profile
        for row in range(1, len(profile)):
            value = profile.columns["time (ns)"].get(row)
            metrics = {} if value is None else {"time (ns)": value}
            count = profile.columns["count"].get(row)
            if count is not None and names and profile.name(row) not in names:
                metrics["count"] = count
            builder.add(
                int(profile.parents[row]), profile.name(row), profile.kind(row), metrics=metrics
            )
        found.append(Run(builder.build(), run.source))
    return found


@pytest.mark.parametrize("threshold", ["calls:0", "k1@calls:0"])
def test_uncounted_launches_do_not_pass(threshold: str) -> None:
    base, new = (without_counts(side) for side in session(QUIET))

    result = gate_result(base, new, Policy().with_thresholds([threshold]))

    assert reasons_of(result) == {Reason.NO_VALUES}
    assert threshold in result.notes[0].text
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


@pytest.mark.parametrize("runs", [1, 6])
@pytest.mark.parametrize("side", [0, 1])
def test_launches_that_one_side_lacks_are_not_the_same(side: int, runs: int) -> None:
    sides = [without_counts(each, "none") for each in session(QUIET)]
    sides[side] = [*without_counts(sides[side][:runs], "k1"), *sides[side][runs:]]

    results = [
        gate_result(*sides, Policy(**keys).with_thresholds(["calls:0"]))  # type: ignore[arg-type]
        for keys in ({}, {"quarantine": ("k1",)})
    ]

    assert reasons_of(results[0]) == {Reason.NO_VALUES}
    assert results[0].notes[0].text.endswith(": f > k1")
    assert [each.verdict for each in results] == [SuiteVerdict.INCONCLUSIVE, SuiteVerdict.PASS]


@pytest.mark.parametrize("side", [0, 1])
def test_a_new_or_removed_path_with_unknown_launches_is_not_the_same(side: int) -> None:
    sides = [without_counts(each, "none") for each in session(QUIET)]
    small = Kernel("f/small", 20_000.0, between=0.003)
    sides[side] = without_counts(session([*QUIET, small])[side], "small")

    result = gate_result(*sides, Policy().with_thresholds(["calls:0"]))

    assert reasons_of(result) == {Reason.NO_VALUES}
    assert result.notes[0].text.endswith(": f > small")
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_launches_that_neither_side_counts_leave_those_of_other_paths() -> None:
    sides = [without_counts(each, "k1") for each in session(QUIET)]

    assert gate_result(*sides, Policy().with_thresholds(["calls:0"])).verdict is SuiteVerdict.PASS


def test_counted_launches_of_some_paths_are_enough() -> None:
    kernels = [*QUIET, Kernel("f/one", launches=1)]

    assert decided(kernels, kernels, "calls:0").verdict is SuiteVerdict.PASS
