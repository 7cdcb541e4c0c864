from __future__ import annotations

from dataclasses import replace

import pytest

from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.ranking import Threshold, rank
from proton_bench.analysis.compare.readable import with_texts
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.name_filter import NameFilter
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.provenance import Provenance
from proton_bench.report.words.diff_rows import names, notes
from proton_bench.report.words.names import FrameFormat

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

    assert list(names(shown, ranking, FrameFormat.SHORT)) == [
        *("ROOT", "train.py:3 step", "b", "elementwise fill<double> vec4")
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
