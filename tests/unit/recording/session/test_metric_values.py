"""Values of many kinds, in the tree and in files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton
from proton_bench.errors import MetricError
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.recording.session.recording import known_session
from proton_bench.scope import thread_local_scopes


@pytest.fixture
def session(tmp_path: Path) -> Iterator[int]:
    """Start a session."""
    number = proton.start(tmp_path / "values", backend="cpu")
    assert number is not None
    yield number
    proton.finalize(number)


def give(*values: object, name: str = "m", scope: str = "s") -> None:
    """Add values one after the other."""
    for value in values:
        with proton.scope(scope, {name: value}):
            pass


def read(session: int, name: str = "m", scope: str = "s") -> tuple[Any, Any]:
    """Return the value of a scope, in the tree of upstream's form and in the profile."""
    nodes = proton.data.get(session)[0]["children"]
    node = next(each for each in nodes if each["frame"]["name"] == scope)
    profile = known_session(session).profile()
    row = next(row for row in range(len(profile)) if profile.path(row) == (scope,))
    return node["metrics"].get(name), profile.columns[name].get(row)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1, 1.5], 2.5),
        ([1.5, 1], 2.5),
        ([2**63 - 1, 1], 2.0**63),
        ([-(2**63), -1], -(2.0**63)),
        ([2**63], 2.0**63),
        ([2**64, 2**70], 2.0**64 + 2.0**70),
        ([True, 2], 3),
    ],
)
def test_numbers_that_meet_are_of_the_wider_type(
    session: int, values: list[object], shown: object
) -> None:
    give(*values)

    assert read(session) == (shown, shown)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([[1, 2], [0.5, 0.5]], [1.5, 2.5]),
        ([[2**63 - 1, 1], [1, 1]], [2.0**63, 2.0]),
        ([[2**63, 1]], [2.0**63, 1.0]),
    ],
)
def test_lists_that_meet_are_of_the_wider_type(
    session: int, values: list[object], shown: list[float]
) -> None:
    give(*values)

    assert read(session) == (shown, tuple(shown))


@pytest.mark.parametrize("suffix", ["exc", "pty"])
def test_the_newest_text_is_kept(session: int, suffix: str) -> None:
    give("fp32", "fp16", name=f"dtype ({suffix})")

    assert read(session, "dtype") == ("fp16", "fp16")
    column = known_session(session).profile().columns["dtype"]
    assert column.spec.aggregation is Aggregation(suffix)


def test_a_metric_that_is_a_text_somewhere_is_one_everywhere(session: int) -> None:
    give(1, scope="number", name="m (exc)")
    give([1.5, 2], scope="list", name="m (exc)")
    give("text", scope="text", name="m (exc)")

    assert read(session, scope="number") == ("1", "1")
    assert read(session, scope="list") == ("[1.5,2]", "[1.5,2]")
    assert read(session, scope="text") == ("text", "text")


def test_a_number_and_a_list_do_not_meet(session: int) -> None:
    give([1, 2])

    with pytest.raises(MetricError, match="type mismatch"):
        give(1)
    assert list(thread_local_scopes.scopes) == []
    assert read(session)[0] == [1, 2]


def test_a_name_with_two_aggregations_has_a_column_for_each(session: int) -> None:
    give(1)
    give(2, name="m (exc)")
    give(4)

    assert read(session)[0] == 5
    assert read(session, "m [exc]")[0] == 2
    columns = known_session(session).profile().columns
    assert columns["m"].spec.aggregation is Aggregation.INCLUSIVE
    assert columns["m [exc]"].spec.aggregation is Aggregation.EXCLUSIVE


def test_a_metric_called_as_one_of_ours_leaves_ours_alone(session: int) -> None:
    give(7, name="wall (ns)")

    columns = known_session(session).profile().columns
    assert columns["wall (ns)"].spec.aggregation is Aggregation.EXCLUSIVE
    assert read(session, "wall [inc] (ns)") == (7, 7)
    assert read(session, "wall (ns)")[1] != 7


def test_numbers_that_are_none_are_kept_in_our_file_and_null_in_upstreams(session: int) -> None:
    give(math.inf)

    assert read(session) == (None, math.inf)


def test_sums_over_the_tree_do_not_wrap(session: int) -> None:
    with proton.scope("outer"):
        give(2**63 - 1, scope="a")
        give(2**63 - 1, scope="b")

    profile = known_session(session).profile()
    assert profile.inclusive("m")[0] == 2.0**64
