from __future__ import annotations

import pytest

from proton_bench.analysis.view.align import subtract
from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device


def tree_of(*kernels: tuple[str, int], metrics: tuple[str, ...] = ("time",)) -> MetricTree:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope")
    for name, time in kernels:
        builder.add(scope, name, metrics={"time (ns)": time, "label": name})
    return build_tree(builder.build(), metrics, Selection())


def rows(tree: MetricTree) -> dict[str, object]:
    return {tree.name(row): value for row, value in enumerate(tree.metrics[0].to_list())}


def test_equal_paths_are_subtracted() -> None:
    difference = subtract(tree_of(("a", 5), ("b", 7)), tree_of(("b", 10), ("a", 1)))

    assert rows(difference) == {"ROOT": 1, "scope": 1, "a": 4, "b": -3}


def test_rows_of_one_side_are_not_lost() -> None:
    difference = subtract(tree_of(("old", 5)), tree_of(("new", 9)))

    assert rows(difference) == {"ROOT": -4, "scope": -4, "old": 5, "new": -9}


def test_rows_of_the_second_tree_alone_stand_behind_their_siblings() -> None:
    difference = subtract(tree_of(("a", 1)), tree_of(("b", 1), ("a", 1)))

    assert [difference.name(row) for row in range(len(difference))] == ["ROOT", "scope", "a", "b"]
    assert difference.parents.tolist() == [-1, 0, 1, 1]


def test_rows_on_different_devices_do_not_pair() -> None:
    trees = []
    for index in (0, 1):
        builder = ProfileBuilder()
        builder.add(0, "k", metrics={"time (ns)": 1}, device=Device("CUDA", index))
        trees.append(build_tree(builder.build(), ["time"], Selection()))

    assert subtract(*trees).devices == ("", "CUDA:0", "CUDA:1")


def test_texts_have_no_difference() -> None:
    one = tree_of(("a", 5), metrics=("label",))

    with pytest.raises(UsageError, match="'label'"):
        subtract(one, one)


def test_different_metrics_cannot_be_subtracted() -> None:
    with pytest.raises(UsageError, match="time/%"):
        subtract(tree_of(("a", 5)), tree_of(("a", 5), metrics=("time/%",)))
