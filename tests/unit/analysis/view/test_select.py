from __future__ import annotations

import msgspec
import numpy as np
import pytest
from fakes.profiles import deep_profile, metadata_literal, training_profile

from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.view.select import (
    MetricTree,
    Selection,
    build_tree,
    drop_metadata,
    drop_trials,
    prune,
    shown_rows,
)
from proton_bench.errors import UsageError
from proton_bench.formats.registry import find_format
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind


def test_shown_rows_are_those_without_metadata_and_trials() -> None:
    builder = ProfileBuilder()
    for name in ("a", "__proton_launch_metadata", "b", "<autotune>", "c"):
        scope = builder.add(0, name)
        builder.add(scope, "k", metrics={"time (ns)": 1})
    empty = builder.add(0, "empty")
    profile = builder.build()

    rows = shown_rows(profile)

    assert empty not in rows
    shown = drop_trials(drop_metadata(profile))
    assert [profile.path(row) for row in rows.tolist()] == [
        shown.path(row) for row in range(len(shown))
    ]
    assert len(shown) == 7


def names(tree: MetricTree) -> list[str]:
    return [tree.name(row) for row in range(len(tree))]


def selected(**selection: object) -> MetricTree:
    return build_tree(training_profile(), ["time/ms"], Selection(**selection))  # type: ignore[arg-type]


def test_everything_is_shown_without_a_selection() -> None:
    assert len(selected()) == len(training_profile())


def test_include_keeps_rows_above_and_below() -> None:
    tree = selected(include="forw.*")

    assert names(tree) == [
        "ROOT",
        "test_step",
        "forward",
        "/home/me/model.py:3@forward",
        "kernel_1",
        "kernel_3",
    ]


def test_include_matches_from_the_start_of_the_name() -> None:
    assert "kernel_3" not in names(selected(include=".*kernel_1"))
    with pytest.raises(UsageError, match="-i ernel"):
        selected(include="ernel")


def test_exclude_drops_rows_below_and_keeps_values_above() -> None:
    tree = selected(exclude="backward")

    assert "backward" not in names(tree)
    assert tree.metrics[0].to_list()[0] == pytest.approx(4.0)


def test_threshold_keeps_large_rows_and_those_above() -> None:
    tree = selected(threshold=2.0)

    assert names(tree) == [
        "ROOT",
        "test_step",
        "backward",
        "/home/me/model.py:7@backward",
        "kernel_3",
    ]


def test_negative_and_zero_thresholds_are_compared() -> None:
    assert len(selected(threshold=0.0)) == len(training_profile())
    assert len(selected(threshold=-5.0)) == len(training_profile())


def test_depth_counts_levels_and_what_is_cut() -> None:
    tree = selected(depth=2)

    assert names(tree) == ["ROOT", "test_step"]
    assert tree.cut == len(training_profile()) - 2


def test_include_and_exclude_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="Cannot specify both include and exclude"):
        Selection(include="a", exclude="b")


@pytest.mark.parametrize("expression", ["(", "*", "[z-a]"])
def test_malformed_expression_is_named(expression: str) -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        selected(include=expression)


def test_depth_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="depth of 0"):
        Selection(depth=0)


def test_threshold_needs_a_number() -> None:
    with pytest.raises(UsageError, match="'label'"):
        build_tree(training_profile(), ["label"], Selection(threshold=1.0))
    with pytest.raises(UsageError, match="needs a metric"):
        build_tree(training_profile(), [], Selection(threshold=1.0))


def test_launch_metadata_and_empty_rows_are_left_out_of_rows_and_sums() -> None:
    content = msgspec.json.encode(metadata_literal())
    profile = find_format("hatchet").decode(content, "test")

    tree = build_tree(profile, ["time"], Selection())

    assert names(tree) == ["ROOT", "scope", "triton_kernel"]
    assert tree.metrics[0].to_list() == [1600, 1600, 1600]


def test_trials_of_autotuners_are_one_row_unless_they_are_asked_for() -> None:
    builder = ProfileBuilder()
    layer = builder.add(0, "layer", kind=FrameKind.SCOPE)
    trials = builder.add(layer, "<autotune>", kind=FrameKind.STATE)
    builder.add(trials, "kernel", kind=FrameKind.KERNEL, metrics={"time (ns)": 70})
    builder.add(layer, "kernel", kind=FrameKind.KERNEL, metrics={"time (ns)": 5})

    tree = build_tree(builder.build(), ["time/ns"], Selection())
    whole = build_tree(builder.build(), ["time/ns"], Selection(trials=True))

    assert names(tree) == ["ROOT", "layer", "<autotune>", "kernel"]
    assert tree.metrics[0].to_list() == [75, 75, 70, 5]
    assert names(whole) == ["ROOT", "layer", "<autotune>", "kernel", "kernel"]
    assert whole.metrics[0].to_list() == [75, 75, 70, 70, 5]


def test_a_scope_with_a_metric_of_its_own_stays_without_its_empty_children() -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope", metrics={"loss": 0.5})
    builder.add(scope, "nothing")

    assert [drop_metadata(builder.build()).name(row) for row in range(2)] == ["ROOT", "scope"]


def test_rows_without_shown_metrics_are_left_out_of_what_people_read() -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "scope")
    builder.add(scope, "kernel", metrics={"time (ns)": 5})
    sampled = builder.add(0, "<not recorded>")
    builder.add(sampled, "import", metrics={"host_wall (ns)": 7})
    profile = builder.build()

    def shown(*metrics: str, readable: Readable | None = None) -> list[str]:
        return names(build_tree(profile, metrics, Selection(readable=readable)))

    assert shown("time", readable=Readable()) == ["ROOT", "scope", "kernel"]
    assert len(shown("time", "host_wall", readable=Readable())) == len(profile)
    assert len(shown("time")) == len(profile)


def test_empty_profile_keeps_its_root() -> None:
    assert len(drop_metadata(ProfileBuilder().build())) == 1


def test_pruning_keeps_vectors_and_strings_with_their_rows() -> None:
    builder = ProfileBuilder()
    for row in range(4):
        builder.add(0, f"row {row}", metrics={"v": [float(row)] * row, "s": f"text {row}"})
    profile = builder.build()

    pruned = prune(profile, np.array([True, False, True, False, True]))

    pruned.self_check()
    assert pruned.column("v").to_list() == [None, (1.0,), (3.0, 3.0, 3.0)]
    assert pruned.column("s").to_list() == [None, "text 1", "text 3"]


def test_variants_of_a_kernel_are_one_row() -> None:
    builder = ProfileBuilder()
    gpu = Device("CUDA", 0)
    for grid in (1, 2):
        builder.add(
            0,
            "k",
            FrameKind.KERNEL,
            metrics={"time (ns)": grid},
            device=gpu,
            variant=Variant(grid=(grid, 1, 1)),
        )

    tree = build_tree(builder.build(), ["time"], Selection())

    assert names(tree) == ["ROOT", "k"]
    assert tree.metrics[0].to_list() == [3, 3]
    assert tree.devices == ("", "CUDA:0")


def test_very_deep_tree_is_selected_without_recursion() -> None:
    tree = build_tree(deep_profile(10_000), ["time"], Selection(include="level 9999", depth=20_000))

    assert len(tree) == 10_001
    assert tree.metrics[0].to_list()[0] == 10_000


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({}, ["ROOT", "h.* (Block) x3", "k"]),
        ({"include": "h"}, ["ROOT", "h.* (Block) x3", "k"]),
        ({"include": "h.1"}, ["ROOT", "h.1 (Block)", "k"]),
        ({"exclude": "h.1"}, ["ROOT", "h.0 (Block)", "k", "h.2 (Block)", "k"]),
        ({"exclude": "h.1|k"}, ["ROOT", "h.0 (Block)", "h.2 (Block)"]),
    ],
)
def test_a_filter_by_the_number_of_a_layer_shows_each(
    selection: dict[str, str], expected: list[str]
) -> None:
    builder = ProfileBuilder()
    for number in range(3):
        layer = builder.add(0, f"h.{number} (Block)", FrameKind.LAYER)
        builder.add(layer, "k", FrameKind.KERNEL, metrics={"time (ns)": 1})

    tree = build_tree(builder.build(), ["time"], Selection(**selection, readable=Readable()))

    assert names(tree) == expected
