from __future__ import annotations

import numpy as np
import pytest

from proton_bench.analysis.view.names import NameFilter, rows_above, rows_below
from proton_bench.errors import UsageError

# 0 ROOT > 1 a > 2 ab, 3 b; 0 > 4 c
NAMES = ("ROOT", "a", "ab", "b", "c")
ENDS = np.array([5, 4, 3, 4, 5], dtype="<i4")


def kept(names: NameFilter) -> list[int]:
    return np.flatnonzero(names.keep(NAMES, ENDS, lambda named: named)).tolist()


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (NameFilter(), [0, 1, 2, 3, 4]),
        (NameFilter(include="b"), [0, 1, 3]),
        (NameFilter(include="a$"), [0, 1, 2, 3]),
        (NameFilter(include="missing"), []),
        (NameFilter(exclude="a"), [0, 4]),
        (NameFilter(exclude=".*b"), [0, 1, 4]),
        (NameFilter(exclude="ROOT"), []),
        (NameFilter(include=""), [0, 1, 2, 3, 4]),
    ],
)
def test_rows_are_kept_with_those_above_and_below(names: NameFilter, rows: list[int]) -> None:
    assert kept(names) == rows


def test_expressions_end_on_any_names() -> None:
    names = NameFilter(include="(a|aa)+$")

    with pytest.raises(UsageError, match="too long"):
        names.keep(["a" * 60 + "b"], ENDS[:1], lambda named: named)
    assert kept(names) == [0, 1, 2, 3]


@pytest.mark.parametrize("expression", ["(", "[", "*", "(?P<x", "a{99999999999}"])
def test_malformed_expressions_are_reported(expression: str) -> None:
    with pytest.raises(UsageError, match="exclude"):
        kept(NameFilter(exclude=expression))


def test_both_expressions_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="Cannot specify both include and exclude"):
        NameFilter("a", "b")


def test_a_filter_says_what_it_is() -> None:
    assert str(NameFilter(include="a.*")) == "-i a.*"
    assert str(NameFilter(exclude="[b]")) == "-e [b]"
    assert not NameFilter()


@pytest.mark.parametrize(
    ("given", "is_lost"),
    [
        (NameFilter("h.1"), True),
        (NameFilter(exclude="h.1"), True),
        (NameFilter("h"), False),
        (NameFilter("other"), False),
        (NameFilter(exclude="h.1|k"), True),
        (NameFilter("k"), False),
        (NameFilter(), False),
    ],
)
def test_an_expression_is_lost_if_new_names_no_longer_match(
    given: NameFilter, *, is_lost: bool
) -> None:
    assert given.is_lost(["h.0", "h.1", "k"], ["h.*", "k"]) is is_lost


def test_rows_above_and_below_hold_the_rows_themselves() -> None:
    row = np.array([False, False, True, False, False])

    assert np.flatnonzero(rows_above(row, ENDS)).tolist() == [0, 1, 2]
    assert np.flatnonzero(rows_below(row, ENDS)).tolist() == [2]
