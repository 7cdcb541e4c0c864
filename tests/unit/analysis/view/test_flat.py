from __future__ import annotations

from dataclasses import replace

from fakes.profiles import training_profile
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.view.select import Selection, build_tree, flattened
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricSpec


def test_kernels_are_summed_over_all_paths_largest_first() -> None:
    tree = build_tree(training_profile(), ["time/ms", "count"], Selection(flat=True))

    assert [tree.name(row) for row in range(len(tree))] == ["ROOT", "kernel_3", "kernel_1"]
    assert [metric.to_list() for metric in tree.metrics] == [[4.0, 3.0, 1.0], [8, 6, 2]]


def test_lines_of_a_kernel_belong_to_it() -> None:
    builder = ProfileBuilder()
    kernel = builder.add(0, "k", FrameKind.KERNEL, metrics={"count": 1})
    builder.add(kernel, "k.py:3@k", FrameKind.LINE, metrics={"num_samples": 7})

    flat = flattened(builder.build())

    assert len(flat) == 2
    assert flat.inclusive("num_samples").tolist() == [7, 7]


def test_what_scopes_say_of_themselves_is_not_said_of_kernels() -> None:
    builder = ProfileBuilder()
    own = (MetricSpec("label", Aggregation.PROPERTY), MetricSpec("vector", Aggregation.EXCLUSIVE))
    scope = builder.add(0, "scope", FrameKind.SCOPE, metrics={"label": "s", "vector": [1.0, 2.0]})
    builder.add(
        scope, "k", FrameKind.KERNEL, metrics={"count": 1, "label": "k", "vector": [4.0, 8.0]}
    )
    profile = builder.build()
    columns = {spec.name: replace(profile.columns[spec.name], spec=spec) for spec in own}

    flat = flattened(replace(profile, columns={**profile.columns, **columns}))

    flat.self_check()
    assert [flat.columns["label"].get(row) for row in (0, 1)] == [None, "k"]
    assert [flat.columns["vector"].get(row) for row in (0, 1)] == [None, (4.0, 8.0)]


def test_profile_without_counts_is_flat_too() -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope", FrameKind.SCOPE)
    builder.add(scope, "a", metrics={"cycles": 7})

    assert [flattened(builder.build()).name(row) for row in (0, 1)] == ["ROOT", "a"]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3), st.integers(0, 99)), max_size=12))
def test_totals_do_not_change(rows: list[tuple[int, int, int]]) -> None:
    builder = ProfileBuilder()
    builder.add(0, "first", metrics={"time (ns)": 1, "count": 1})
    for number, (parent, name, time) in enumerate(rows):
        builder.add(min(parent, number), f"r{name}", metrics={"time (ns)": time, "count": time % 2})
    profile = builder.build()

    flat = flattened(profile)

    flat.self_check()
    assert flat.depths().max() == 1
    for metric in ("time (ns)", "count"):
        assert flat.inclusive(metric)[0] == profile.inclusive(metric)[0]
