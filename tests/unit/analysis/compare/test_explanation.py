from __future__ import annotations

import pytest
from fakes.runs import Launched, run_of

from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.compare.explanation import Explanation, Kind, explain
from proton_bench.analysis.compare.pairing import RowState


def explained(base: list[Launched], new: list[Launched], metric: str = "time") -> Explanation:
    found = explain(compare([run_of(*base)], [run_of(*new)], CompareOptions(metric)))
    assert found is not None
    return found


def test_the_row_that_changed_most_is_the_cause() -> None:
    found = explained(
        [("s/a", 100, 10, ""), ("s/b", 900, 1, "")], [("s/a", 196, 14, ""), ("s/b", 904, 1, "")]
    )

    (cause,) = found.causes
    assert (cause.kind, cause.share, cause.places) == (Kind.ROW, 0.96, 1)
    assert cause.per_launch == pytest.approx(0.4)
    assert cause.new_count - cause.base_count == 4


def test_a_kernel_that_changed_in_many_places_is_the_cause() -> None:
    (cause,) = explained(
        [(f"layer{i}/softmax", 10, 1, "") for i in range(8)],
        [(f"layer{i}/softmax", 20, 1, "") for i in range(8)],
    ).causes

    assert (cause.kind, cause.share, cause.places) == (Kind.KERNEL, 1.0, 8)


def test_the_deepest_scope_that_holds_most_of_it_is_the_cause() -> None:
    kernels = [(f"model/layer/k{i}", 10 + i, 1, f"c{i}") for i in range(9)]

    (cause,) = explained(
        kernels, [(path, 2 * time, 1, code) for path, time, _, code in kernels]
    ).causes

    assert (cause.kind, cause.share) == (Kind.BELOW, 1.0)


def test_changes_that_nearly_cancel_are_both_named() -> None:
    found = explained(
        [("a", 1000, 1, "a"), ("b", 2000, 1, "b")], [("a", 2000, 1, "a"), ("b", 1010, 1, "b")]
    )

    assert found.cancels
    assert [cause.change for cause in found.causes] == [1000.0, -990.0]


def test_what_is_new_or_gone_says_so() -> None:
    (new,) = explained([("a", 5, 1, "")], [("a", 5, 1, ""), ("b", 50, 3, "")]).causes
    (gone,) = explained([("a", 5, 1, ""), ("b", 50, 3, "")], [("a", 5, 1, "")]).causes

    assert (new.state, gone.state) == (RowState.NEW, RowState.REMOVED)
    assert new.per_launch is None


def test_nothing_explains_no_change() -> None:
    assert explained([("a", 5, 1, "")], [("a", 5, 1, "")]).causes == ()


def test_what_does_not_add_up_has_no_causes() -> None:
    run = run_of(("a", 5, 1, ""))

    assert explain(compare([run], [run], CompareOptions("avg_time/us"))) is None
