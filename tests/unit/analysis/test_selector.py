from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.compare.pairing import PairedTree
from proton_bench.analysis.run import Run
from proton_bench.analysis.selector import Selectors
from proton_bench.model.arrays import Indexes
from proton_bench.model.builder import ProfileBuilder

NAMES = st.text(alphabet="ab*?[]/\\.", min_size=1, max_size=4)
PATHS = st.lists(NAMES, max_size=5).map(tuple)


class Chain:
    """A tree of one path below its root."""

    def __init__(self, path: Sequence[str]) -> None:
        self.strings = ("", *path)
        self.parents = np.arange(-1, len(path), dtype=np.int32)

    def frames(self) -> Indexes:
        return self.parents + np.int32(1)


def selects(selector: str, path: Sequence[str]) -> bool:
    return bool(Selectors([selector]).of_tree(Chain(path))[-1])


@pytest.mark.parametrize(
    ("selector", "path", "expected"),
    [
        ("", ("a",), True),
        ("softmax*", ("fwd", "softmax_kernel"), True),
        ("softmax*", ("softmax", "other"), False),
        ("fwd/**/softmax*", ("fwd", "softmax"), True),
        ("fwd/**/softmax*", ("fwd", "a", "b", "softmax_k"), True),
        ("fwd/**/softmax*", ("bwd", "softmax"), False),
        ("fwd/**", ("fwd", "a", "b"), True),
        ("/fwd/*", ("fwd", "a"), True),
        ("fwd/*", ("fwd", "a", "b"), False),
        ("**/k", ("k",), True),
        ("a/**/b/**/c", ("a", "b", "x", "b", "c"), True),
        ("a/**/b/**/c", ("a", "x", "c"), False),
        ("test_a[1024]", ("test_a[1024]",), True),
        ("k?", ("k1",), True),
        ("k?", ("k",), False),
        (r"a\*", ("a*",), True),
        (r"a\*", ("ab",), False),
        (r"lib\/f.py:3@g/k", ("lib/f.py:3@g", "k"), True),
        ("Softmax", ("softmax",), False),
        ("k", (), False),
    ],
)
def test_globs(selector: str, path: tuple[str, ...], expected: bool) -> None:
    assert selects(selector, path) is expected


@given(PATHS)
def test_escaped_names_select_their_own_path(path: tuple[str, ...]) -> None:
    def escaped(name: str) -> str:
        return "".join(f"\\{character}" for character in name)

    if path:
        assert selects("/".join(["**", *(escaped(name) for name in path)]), path)
        assert selects("/" + "/".join(escaped(name) for name in path), path)


@given(st.text(alphabet="ab*?", min_size=1, max_size=6), st.text(alphabet="abc", max_size=6))
def test_a_glob_of_one_name_is_that_of_fnmatch(glob: str, name: str) -> None:
    if glob != "**":
        assert selects(glob, ("x", name)) == fnmatch.fnmatchcase(name, glob)


@given(st.text(alphabet="ab*?/\\", max_size=8), PATHS)
def test_any_text_is_a_glob(selector: str, path: tuple[str, ...]) -> None:
    assert selects(selector, path) in {True, False}


def tree_of(builder: ProfileBuilder) -> PairedTree:
    run = Run(builder.build(), "a")
    return compare([run], [run], CompareOptions(raw_names=True)).tree


@given(
    st.lists(st.text(alphabet="ab*?/", max_size=6), max_size=4),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), min_size=1, max_size=12),
)
def test_a_whole_tree_is_selected_as_its_paths_are(
    globs: list[str], rows: list[tuple[int, str]]
) -> None:
    builder = ProfileBuilder()
    for place, name in rows:
        builder.add(place % len(builder), name, metrics={"time (ns)": 1})
    tree = tree_of(builder)

    selectors = Selectors(globs)
    selected = selectors.of_tree(tree)

    assert len(selected) == len(tree)
    for row in range(1, len(tree)):
        wanted = [place for place, glob in enumerate(globs) if selects(glob, tree.path(row))]
        assert list(selectors.chosen(selected[row])) == wanted


def test_names_at_any_depth_take_as_long_as_the_tree_is_large() -> None:
    builder = ProfileBuilder()
    row = 0
    for _ in range(20_000):
        row = builder.add(row, "scope")
    builder.add(row, "kernel", metrics={"time (ns)": 1})
    tree = tree_of(builder)

    selected = Selectors(["**/scope/**/kernel", "**/*/**/*/**/none"]).of_tree(tree)

    assert [row for row, bits in enumerate(selected) if bits] == [len(tree) - 1]
