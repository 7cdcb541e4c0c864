from __future__ import annotations

import numpy as np

from proton_bench.analysis.view.align import Alignment, LabelledTree, align


def tree(*rows: tuple[int, int], twins: list[int] | None = None) -> LabelledTree:
    """Return a tree of (parent, label) below a root."""
    parents = np.array([-1, *(parent for parent, _ in rows)], dtype="<i4")
    labels = np.array([0, *(label for _, label in rows)], dtype=np.int64)
    return LabelledTree(parents, labels, None if twins is None else np.array(twins))


def places(found: Alignment) -> list[list[int]]:
    return [side.tolist() for side in found.places]


def test_equal_labels_below_equal_parents_pair() -> None:
    found = align([tree((0, 1), (1, 2), (1, 3)), tree((0, 1), (1, 3), (1, 2))])

    assert found.parents.tolist() == [-1, 0, 1, 1]
    assert places(found) == [[0, 1, 2, 3], [0, 1, 3, 2]]


def test_equal_siblings_pair_in_their_order() -> None:
    found = align([tree((0, 1), (0, 1), (0, 1)), tree((0, 1), (0, 1))])

    assert places(found) == [[0, 1, 2, 3], [0, 1, 2]]


def test_what_one_tree_has_alone_stands_behind_its_siblings() -> None:
    found = align([tree((0, 2)), tree((0, 1), (0, 2))])

    assert found.parents.tolist() == [-1, 0, 0]
    assert places(found) == [[0, 1], [0, 2, 1]]


def test_twins_are_one_row_and_so_are_rows_below_them() -> None:
    found = align([tree((0, 1), (1, 5), (0, 1), (3, 5), twins=[0, 1, 2, 1, 4])])

    assert places(found) == [[0, 1, 2, 1, 2]]


def test_more_than_two_trees_are_laid_over_each_other() -> None:
    found = align([tree((0, 1)), tree((0, 2)), tree((0, 1), (0, 2))])

    assert places(found) == [[0, 1], [0, 2], [0, 1, 2]]


def test_deep_trees_align() -> None:
    chain = [(row, 1) for row in range(5000)]

    found = align([tree(*chain), tree(*chain[:4000])])

    assert len(found.parents) == 5001
    assert found.places[1].tolist() == list(range(4001))
