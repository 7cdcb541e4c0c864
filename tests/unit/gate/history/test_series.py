from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.histories import MACHINE, point

from proton_bench.gate.history.history import series_of
from proton_bench.gate.history.points import Point

A = ("step", "a")


def changed(found: Point, **facts: Any) -> Point:
    """Return a point whose values have other facts."""
    values = {subject: replace(value, **facts) for subject, value in found.values.items()}
    return replace(found, values=values)


def test_points_are_in_order_of_time() -> None:
    points = [point(number, {"step/a": 1e5 + number}) for number in (3, 1, 2)]

    (found,) = series_of(points, share=0.005)

    assert found.key.path == A
    assert found.values.tolist() == [1e5 + 1, 1e5 + 2, 1e5 + 3]


def test_without_a_time_the_given_order_counts() -> None:
    points = [point(3, {"step/a": 1.0e5}), point(1, {"step/a": 2.0e5}, time_ns=None)]

    (found,) = series_of(points, share=0.005)

    assert found.values.tolist() == [1.0e5, 2.0e5]


def test_a_point_without_a_time_stays_behind_the_one_before_it() -> None:
    points = [point(number, {"step/a": 1e5 + number}) for number in (3, 1, 2)]
    other = point(9, {"step/a": 1e5 + 9}, time_ns=None)
    first = point(8, {"step/a": 1e5 + 8}, time_ns=None)

    (found,) = series_of([first, *points[:2], other, points[2]], share=0.005)

    assert [value - 1e5 for value in found.values] == [1, 9, 2, 8, 3]


@pytest.mark.parametrize(
    "facts",
    [{"group": "other"}, {"machine": (*MACHINE, ("GPU uuid", "GPU-2"))}, {"machine": ()}],
)
def test_baselines_and_machines_have_series_of_their_own(facts: dict[str, Any]) -> None:
    points = [point(1, {"step/a": 1e5}), point(2, {"step/a": 1e5}, **facts)]

    found = series_of(points, share=0.005)

    assert [len(each.points) for each in found] == [1, 1]
    assert len({each.key.digest for each in found}) == 2


def test_units_are_never_mixed() -> None:
    points = [point(1, {"step/a": 1e5}), changed(point(2, {"step/a": 1e5}), unit="cycles")]

    assert [each.key.unit for each in series_of(points, share=0.005)] == ["ns", "cycles"]


def test_means_in_place_of_medians_are_a_series_of_their_own() -> None:
    medians = [point(number, {"step/a": 1e5}) for number in range(3)]
    means = [changed(point(number, {"step/a": 1.2e5}), metric="mean") for number in range(3, 5)]

    one, other = series_of([*medians, *means], share=0.005)

    assert [(each.metric, len(each.points)) for each in (one, other)] == [
        ("median", 3),
        ("mean", 2),
    ]
    (alone,), (of_means,) = (series_of(points, share=0.005) for points in (medians, means))
    assert of_means.metric == "mean"
    assert one.key.digest == alone.key.digest == of_means.key.digest != other.key.digest


def test_a_path_counts_if_it_is_large_enough_once() -> None:
    small = [changed(point(number, {"step/a": 1e5}), share=0.004) for number in range(3)]
    large = changed(point(3, {"step/a": 1e5}), share=0.006)

    assert series_of(small, share=0.005) == []
    (found,) = series_of([*small, large], share=0.005)
    assert len(found.points) == 4


def test_a_path_that_was_not_there_has_fewer_points() -> None:
    points = [point(1, {"step/a": 1e5}), point(2, {"step/b": 1e5}), point(3, {"step/a": 2e5})]

    found = {each.key.path[-1]: each for each in series_of(points, share=0.005)}

    assert [each.source for each in found["a"].points] == ["run1.proton", "run3.proton"]
    assert len(found["b"].points) == 1


@pytest.mark.parametrize(("least", "expected"), [(9.9e3, 10.5e3), (10.1e3, 10.1e3)])
def test_one_estimator_holds_for_a_whole_series(least: float, expected: float) -> None:
    points = [
        changed(point(1, {"step/a": 10.1e3}), as_short=10.5e3),
        changed(point(2, {"step/a": least}), as_short=least),
    ]

    (found,) = series_of(points, share=0.005)

    assert found.values[0] == expected
