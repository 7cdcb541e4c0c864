from __future__ import annotations

from fakes.profiles import training_profile
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.model.builder import ProfileBuilder


def names(tree: MetricTree) -> list[str]:
    return [tree.name(row) for row in range(len(tree))]


def test_siblings_are_sorted_by_the_first_metric() -> None:
    tree = build_tree(training_profile(), ["time", "count"], Selection(by_size=True))

    assert names(tree)[2] == "backward"
    assert names(tree)[4:6] == ["kernel_3", "kernel_1"]
    assert tree.parents.tolist() == [-1, 0, 1, 2, 3, 3, 1, 6, 7, 7]


def test_rows_without_the_first_metric_are_sorted_by_the_next() -> None:
    builder = ProfileBuilder()
    builder.add(0, "sampled", metrics={"host_wall (ns)": 1})
    builder.add(0, "short", metrics={"time (ns)": 5})
    builder.add(0, "long", metrics={"time (ns)": 9})

    tree = build_tree(builder.build(), ["host_wall", "time"], Selection(by_size=True))

    assert names(tree)[1:] == ["sampled", "long", "short"]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 50)), max_size=12))
def test_sorting_keeps_rows_and_paths(rows: list[tuple[int, int]]) -> None:
    builder = ProfileBuilder()
    for number, (parent, time) in enumerate(rows):
        builder.add(min(parent, number), f"r{number}", metrics={"time (ns)": time})
    profile = builder.build()
    plain, ordered = (
        build_tree(profile, ["time"], Selection(by_size=by_size)) if rows else None
        for by_size in (False, True)
    )
    if plain is None or ordered is None:
        return

    def edges(tree: MetricTree) -> set[tuple[str, str]]:
        return {(tree.name(int(tree.parents[r])), tree.name(r)) for r in range(1, len(tree))}

    assert edges(plain) == edges(ordered)
    values = ordered.metrics[0].to_list()
    for row in range(1, len(ordered)):
        later = [r for r in range(row, len(ordered)) if ordered.parents[r] == ordered.parents[row]]
        assert all(values[row] >= values[r] for r in later)
