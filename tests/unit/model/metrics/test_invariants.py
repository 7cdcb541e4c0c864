from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.invariants import violations
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

TIME = "time (ns)"


def recorded(samples: list[float], **metrics: float) -> Profile:
    builder = ProfileBuilder()
    builder.declare(TIME, Aggregation.INCLUSIVE)
    values = {TIME: sum(samples), "count": len(samples), **metrics}
    row = builder.add(0, "k", metrics=values)
    builder.set_distribution(row, TIME, Distribution.from_samples(samples))
    return builder.build()


def changed(profile: Profile, **fields: Any) -> Profile:
    table = profile.distributions[TIME]
    arrays = {name: np.array([value], getattr(table, name).dtype) for name, value in fields.items()}
    return replace(profile, distributions={TIME: replace(table, **arrays)})


@given(st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=200))
def test_what_was_recorded_contradicts_itself_nowhere(samples: list[float]) -> None:
    assert violations(recorded(samples)) == ()


@given(st.lists(st.lists(st.floats(0, 1e9), min_size=1, max_size=90), min_size=1, max_size=4))
def test_what_was_merged_contradicts_itself_nowhere(parts: list[list[float]]) -> None:
    merged = Profile.merge([recorded(part) for part in parts])

    assert violations(merged) == ()


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"minimum": 50.0}, "minimum <= maximum"),
        ({"minimum": 4.5}, "n x minimum <= sum"),
        ({"total": 25.0}, "sum <= n x maximum"),
        ({"zero_count": 4}, "non-positive samples <= n"),
        ({"sum_ln": 90.0}, "sum of squares >= square of sum / n"),
        ({"n": 2}, "no more samples kept than there were"),
        ({"maximum": 4.0}, "the outermost samples are minimum and maximum"),
        ({"maximum": 18.0}, "the outermost samples are minimum and maximum"),
        ({"total": 11.0}, "the sum is that of kept samples or buckets"),
        ({"sum_ln2": 90.0}, "sum of squares <= n x the largest"),
        ({"n": 4}, "samples <= calls of the row"),
        ({"total": 12.5}, "the samples add up to the value"),
    ],
)
def test_numbers_that_cannot_be_true_are_named(fields: dict[str, Any], rule: str) -> None:
    found = violations(changed(recorded([2.0, 4.0, 6.0]), **fields))

    assert rule in {each.rule for each in found}
    assert {(each.row, each.metric) for each in found} == {(1, TIME)}


def test_buckets_that_miss_samples_are_named() -> None:
    profile = recorded([float(value) for value in range(1, 100)], count=200)

    found = violations(changed(profile, n=98))

    assert "buckets hold n samples" in {each.rule for each in found}


def test_buckets_beyond_the_extremes_are_named() -> None:
    profile = recorded([float(value) for value in range(10, 200)])

    for extreme in ({"minimum": 20.0}, {"minimum": 5.0}, {"maximum": 150.0}, {"maximum": 300.0}):
        found = violations(changed(profile, **extreme))

        assert "the outermost samples are minimum and maximum" in {each.rule for each in found}


def test_sums_of_many_equal_samples_are_only_as_exact_as_floating_point() -> None:
    profile = recorded([3200.0] * 100)
    (count, ln) = (50_000_000, float(np.log(3200.0)))
    many = changed(
        profile,
        n=count,
        total=3200.0 * count,
        sum_ln=ln * count * (1 - 4e-9),
        sum_ln2=ln * ln * count,
        bucket_count=count,
    )
    columns = {
        name: replace(column, values=column.values * (count // 100))
        for name, column in many.columns.items()
    }

    assert violations(replace(many, columns=columns)) == ()


def test_a_sum_that_buckets_exclude_is_named() -> None:
    profile = recorded([float(value) for value in range(100, 200)])

    found = violations(changed(profile, total=100.0 * 100))

    assert "the sum is that of kept samples or buckets" in {each.rule for each in found}


def test_fewer_than_no_calls_are_named() -> None:
    found = violations(recorded([2.0], count=-1))

    assert {each.metric for each in found} == {"count", TIME}


def test_a_profile_without_samples_has_nothing_to_contradict() -> None:
    profile = replace(recorded([1.0]), distributions={TIME: DistributionTable.from_mapping({})})

    assert violations(profile) == ()


def test_time_that_its_calls_did_not_take_is_named() -> None:
    found = violations(recorded([2.0, 4.0], **{TIME: 60.0}))

    assert {each.rule for each in found} == {"the samples add up to the value"}
    # Of one call no sample was kept, which may be where files are merged.
    assert violations(recorded([2.0, 4.0], **{TIME: 60.0, "count": 3})) == ()
