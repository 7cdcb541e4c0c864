from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.ranking import Threshold, rank
from proton_bench.analysis.compare.readable import with_equal_layers_folded, with_texts
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.names import NameFilter
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.provenance import Provenance
from proton_bench.report.words.diff import names, notes

FILL = "void at::native::vectorized_elementwise_kernel<{0}, at::native::FillFunctor<{1}>, int>(int)"
FRAME = "/me/x/train.py:3@step"
FLOAT, DOUBLE = FILL.format(4, "float"), FILL.format(4, "double")


def run(*kernels: tuple[str, str], time_ns: int = 100) -> Run:
    builder = ProfileBuilder()
    frame = builder.add(0, FRAME, FrameKind.PYTHON)
    for scope, kernel in kernels:
        above = builder.add(frame, scope, FrameKind.SCOPE)
        metrics = {"time (ns)": time_ns, "count": 1}
        builder.add(above, kernel, FrameKind.KERNEL, metrics=metrics)
    profile = replace(builder.build(), provenance=Provenance({"directory": "/me/x"}))
    return Run(profile, "run")


def test_rows_have_texts_and_keep_recorded_names_for_filters() -> None:
    base = run(("a", FLOAT), ("b", DOUBLE))
    comparison = compare([base], [run(("a", FLOAT), ("b", DOUBLE), time_ns=150)], CompareOptions())

    shown = with_texts(comparison, Readable())
    names_filter = NameFilter(include="void at::.*double")
    ranking = rank(shown, Threshold(0.0), 100, names=names_filter)

    assert list(names(shown, ranking)) == [
        *(("ROOT",), ("train.py:3 step",), ("b",), ("elementwise fill<double> vec4",))
    ]
    assert shown.tree.texts() == {
        FRAME: "train.py:3 step",
        FLOAT: "elementwise fill<float> vec4",
        DOUBLE: "elementwise fill<double> vec4",
    }
    assert comparison.tree.texts() == {}


def test_kernels_of_both_sides_are_told_apart() -> None:
    renamed = FLOAT.replace(", int>", ", long>")
    comparison = compare([run(("a", FLOAT))], [run(("a", renamed))], CompareOptions())

    texts = with_texts(comparison, Readable()).tree.texts()

    assert texts[FLOAT] == "elementwise fill<float> vec4 {int}"
    assert texts[renamed] == "elementwise fill<float> vec4 {long}"


def test_texts_have_no_running_numbers_of_inductor() -> None:
    one, other = "triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_3"
    comparison = compare([run(("a", one))], [run(("a", other))], CompareOptions())

    shown = with_texts(comparison, Readable())
    raw = with_texts(comparison, Readable(kernels=False))

    assert set(shown.tree.texts()) == {FRAME, one, other}
    assert shown.tree.texts()[other] == "triton_poi_fused_add_mul"
    assert set(raw.tree.texts()) == {FRAME}


@pytest.mark.parametrize("several_are_new", [True, False])
def test_running_numbers_that_tell_kernels_of_one_side_apart_stay(several_are_new: bool) -> None:
    one, two = ("a", "triton_poi_fused_add_0"), ("a", "triton_poi_fused_add_1")
    sides = [run(one), run(one, two)]
    base, new = sides if several_are_new else reversed(sides)

    shown = with_texts(compare([base], [new], CompareOptions()), Readable())
    ranking = rank(shown, Threshold(0.0), 100)

    assert list(names(shown, ranking))[3::2] == [(two[1],), (one[1],)]


def test_former_places_are_readable_too() -> None:
    base = run(("a", FLOAT), ("b", DOUBLE))
    comparison = compare([base], [run(("c", FLOAT), ("b", DOUBLE))], CompareOptions())

    shown = with_texts(comparison, Readable())

    said = [note for row in range(len(shown)) for note in notes(shown, row)]
    assert "MOVED from train.py:3 step > a" in said


def test_names_stay_recorded_where_nothing_is_to_be_readable() -> None:
    comparison = compare([run(("a", FLOAT))], [run(("a", FLOAT))], CompareOptions())

    shown = with_texts(comparison, Readable(kernels=False, frames=False))

    assert shown.tree.strings == comparison.tree.strings


@pytest.mark.parametrize(
    ("folds", "states"), [(True, {RowState.MATCHED}), (False, {RowState.MATCHED, RowState.NEW})]
)
def test_library_frames_of_another_release_are_the_same_rows(
    folds: bool, states: set[RowState]
) -> None:
    def through(*frames: str) -> Run:
        builder = ProfileBuilder()
        above = builder.add(0, FRAME, FrameKind.PYTHON)
        for frame in frames:
            site = "/env/lib/python3.11/site-packages"
            above = builder.add(above, f"{site}/torch/{frame}", FrameKind.PYTHON)
        builder.add(above, FLOAT, FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})
        return Run(builder.build(), "run")

    base = through("a.py:1@a", "b.py:2@b")
    new = through("a.py:1@a", "more.py:1@more", "b.py:2@b")

    tree = compare([base], [new], CompareOptions(fold_frames=folds)).tree

    assert states <= (found := set(map(RowState, tree.states.tolist())))
    assert (RowState.NEW in found) is not folds


def model(times: Sequence[float], class_: str = "Block") -> Run:
    builder = ProfileBuilder()
    add_model(builder, 0, times, class_)
    return Run(builder.build(), "run")


def add_model(builder: ProfileBuilder, below: int, times: list[int], class_: str = "Block") -> None:
    above = builder.add(below, "Model", FrameKind.LAYER)
    for number, time_ns in enumerate(times):
        layer = builder.add(above, f"h.{number} ({class_})", FrameKind.LAYER)
        metrics = {"time (ns)": time_ns, "count": 1}
        builder.add(layer, "k", FrameKind.KERNEL, metrics=metrics)


@pytest.mark.parametrize(
    ("times", "is_folded"),
    [
        ([150] * 12, True),
        ([100] * 12, True),
        ([140, 160] * 6, True),
        ([150, *[100] * 11], False),
        ([*[150] * 4, *[101] * 8], False),
        ([100] * 13, False),
    ],
    ids=["all", "none", "all, not equally", "one", "a third", "a new one"],
)
def test_equal_layers_are_one_row_if_they_changed_alike(
    times: list[int], *, is_folded: bool
) -> None:
    comparison = compare([model([100] * 12)], [model(times)], CompareOptions())

    tree = with_equal_layers_folded(comparison, CompareOptions()).tree

    found = {tree.name(row) for row in range(len(tree))}
    assert ("h.* (Block) x12" in found) is is_folded
    assert ("h.0 (Block)" in found) is not is_folded


def test_layers_that_are_all_new_are_one_row_and_let_others_be_one() -> None:
    base = model([100] * 12)
    builder = ProfileBuilder()
    add_model(builder, 0, [150] * 12)
    add_model(builder, builder.add(0, "step", FrameKind.SCOPE), [100] * 12)
    comparison = compare([base], [Run(builder.build(), "run")], CompareOptions())

    tree = with_equal_layers_folded(comparison, CompareOptions()).tree

    names = [tree.name(row) for row in range(len(tree))]
    assert names.count("h.* (Block) x12") == 2
    assert not [name for name in names if name.startswith("h.1")]


@pytest.mark.parametrize("metric", ["time/ms", "avg_time/us"])
def test_layers_are_no_single_row_if_their_changes_would_cancel(metric: str) -> None:
    options = CompareOptions(metric)

    def is_folded(times: list[float]) -> bool:
        comparison = compare([model([1000] * 4)], [model(times)], options)
        return with_equal_layers_folded(comparison, options) is not comparison

    assert not is_folded([1500, 500] * 2)
    assert is_folded([1500, 1400] * 2)
    assert is_folded([1000.5, 999.5] * 2)


def test_layers_are_no_single_row_if_a_file_does_not_say_that_they_are_layers() -> None:
    base, new = model([100] * 4), model([150] * 4)
    kinds = np.where(new.profile.kinds == FrameKind.LAYER, FrameKind.SCOPE, new.profile.kinds)
    comparison = compare(
        [base], [replace(new, profile=replace(new.profile, kinds=kinds))], CompareOptions()
    )

    assert with_equal_layers_folded(comparison, CompareOptions()) is comparison


def test_layers_of_a_model_that_is_new_or_removed_as_a_whole_are_one_row() -> None:
    models = [model([100] * 3), model([100] * 3, "Other")]

    for base, new in (models, models[::-1]):
        comparison = compare([base], [new], CompareOptions(follow=False))
        tree = with_equal_layers_folded(comparison, CompareOptions(follow=False)).tree
        found = {tree.name(row): RowState(tree.states[row]).name for row in range(len(tree))}

        names = [f"h.* ({class_}) x3" for class_ in ("Block", "Other")]
        states = [found[name] for name in names]
        assert sorted(states) == ["NEW", "REMOVED"]


def test_two_layers_changed_alike_if_both_changed() -> None:
    def rows(*times: int) -> int:
        comparison = compare([model([100, 100])], [model([*times])], CompareOptions())
        return len(with_equal_layers_folded(comparison, CompareOptions()))

    assert rows(150, 150) == len(("ROOT", "Model", "h.*", "k"))
    assert rows(150, 101) == len(("ROOT", "Model", "h.0", "k", "h.1", "k"))
