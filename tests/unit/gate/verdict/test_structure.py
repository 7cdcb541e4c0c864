from __future__ import annotations

from fakes.gated import profile_of_times
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import (
    GateResult,
    Kind,
    Reason,
    StructuralChange,
    SuiteVerdict,
)


def runs_of(*launches: dict[str, int], time: float = 50_000.0) -> list[Run]:
    return [
        Run(profile_of_times({path: [time] * n for path, n in each.items() if n}), "x")
        for each in launches
    ]


def decided(
    base: list[Run], new: list[Run], *thresholds: str
) -> tuple[GateResult, dict[str, StructuralChange]]:
    result = gate_result(base, new, Policy().with_thresholds(thresholds))
    return result, {"/".join(each.path): each for each in result.structure}


def test_one_run_on_each_side_decides_structure() -> None:
    result, found = decided(
        runs_of({"a": 2, "b": 3, "c": 1}), runs_of({"a": 2, "b": 5, "d": 9}), "calls:0"
    )

    assert {path: each.kind for path, each in found.items()} == {
        "b": Kind.LAUNCHES,
        "c": Kind.REMOVED,
        "d": Kind.NEW,
    }
    assert (found["b"].base_calls, found["b"].new_calls) == ((3, 3), (5, 5))
    assert found["b"].change == 100_000.0
    assert (result.verdict, result.exit_code) == (SuiteVerdict.FAIL, 1)


def test_equal_structure_has_no_changes() -> None:
    result, found = decided(runs_of({"a": 2}), runs_of({"a": 2}), "calls:0")

    assert found == {}
    assert result.verdict is SuiteVerdict.PASS


def test_structure_is_shown_and_fails_only_on_request() -> None:
    result, found = decided(runs_of({"a": 2, "b": 1}), runs_of({"a": 3, "c": 9}))

    assert {each.kind for each in found.values()} == {
        Kind.LAUNCHES,
        Kind.REMOVED,
        Kind.NEW,
    }
    assert not any(each.fails for each in found.values())
    assert result.verdict is not SuiteVerdict.FAIL


def test_gates_of_launches_fail_for_new_and_removed_paths() -> None:
    result, found = decided(runs_of({"a": 2, "b": 1}), runs_of({"a": 2, "c": 900}), "calls:0")

    assert found["b"].fails
    assert found["c"].fails
    assert result.verdict is SuiteVerdict.FAIL


def test_a_kernel_in_another_scope_has_moved() -> None:
    _, found = decided(runs_of({"f/k": 4, "f/a": 1}), runs_of({"g/k": 4, "f/a": 1}))

    assert found["g/k"].kind is Kind.MOVED
    assert found["g/k"].former_path == ("f", "k")
    assert found["g/k"].change == 0.0


def test_a_kernel_with_another_name_has_moved_too() -> None:
    _, found = decided(runs_of({"f/k": 4, "f/a": 1}), runs_of({"f/k2": 4, "f/a": 1}))

    assert found["f/k2"].kind is Kind.MOVED
    assert found["f/k2"].former_path == ("f", "k")


def test_launches_that_vary_on_a_side_are_compared_by_their_range() -> None:
    base = runs_of({"a": 3}, {"a": 5})

    _, overlapping = decided(base, runs_of({"a": 4}, {"a": 9}), "calls:0")
    _, apart = decided(base, runs_of({"a": 6}, {"a": 9}), "calls:0")

    assert overlapping == {}
    assert apart["a"].kind is Kind.LAUNCHES
    assert apart["a"].base_calls == (3.0, 5.0)


def test_allowed_amounts_of_launches() -> None:
    base, new = runs_of({"a": 100, "b": 100}), runs_of({"a": 104, "b": 120})

    _, parts = decided(base, new, "calls:5%")
    _, counts = decided(base, new, "b@calls:30", "a@calls:3")

    assert {path: each.fails for path, each in parts.items()} == {"a": False, "b": True}
    assert {path: each.fails for path, each in counts.items()} == {"a": True, "b": False}


def test_quarantined_paths_do_not_fail() -> None:
    policy = Policy(quarantine=("a",)).with_thresholds(["calls:0"])

    result = gate_result(runs_of({"a": 1}), runs_of({"a": 2}), policy)

    assert result.structure[0].reasons[-1] is Reason.QUARANTINE
    assert not result.structure[0].fails


_LAUNCHES = st.dictionaries(st.sampled_from(["a", "b", "f/a", "f/c"]), st.integers(1, 4))


@given(_LAUNCHES, _LAUNCHES)
def test_exchanging_the_sides_exchanges_what_happened(
    before: dict[str, int], after: dict[str, int]
) -> None:
    before, after = {"z": 1, **before}, {"z": 1, **after}
    opposite = {
        Kind.NEW: Kind.REMOVED,
        Kind.REMOVED: Kind.NEW,
        Kind.LAUNCHES: Kind.LAUNCHES,
        Kind.MOVED: Kind.MOVED,
    }

    _, there = decided(runs_of(before), runs_of(after), "calls:0")
    _, back = decided(runs_of(after), runs_of(before), "calls:0")

    expected = sorted(opposite[each.kind] for each in there.values())
    assert expected == sorted(each.kind for each in back.values())
    assert sorted(each.change for each in there.values()) == sorted(
        -each.change for each in back.values()
    )
