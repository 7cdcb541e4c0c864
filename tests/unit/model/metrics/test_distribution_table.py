from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from reference.profile_view import distribution_view

from proton_bench.errors import ProfileFormatError
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable

ENTRIES = {
    7: Distribution.from_samples([1.0, 2.0]),
    2: Distribution.from_samples(range(1, 100)),
    5: Distribution.from_samples([]),
}


def test_entries_come_back_by_row() -> None:
    table = DistributionTable.from_mapping(ENTRIES)

    assert table.rows.tolist() == [2, 5, 7]
    for row, entry in ENTRIES.items():
        found = table.get(row)
        assert found is not None
        assert distribution_view(found) == distribution_view(entry)
    assert [row for row, _ in table] == [2, 5, 7]


def test_rows_without_samples_have_no_distribution() -> None:
    table = DistributionTable.from_mapping(ENTRIES)

    assert [table.get(row) for row in (0, 3, 8)] == [None, None, None]


def test_empty_table_fits_any_profile() -> None:
    table = DistributionTable.from_mapping({})

    table.self_check(1)
    assert len(table) == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rows", np.array([2, 5, 99], "<i4")),
        ("rows", np.array([-1, 5, 7], "<i4")),
        ("rows", np.array([2, 2, 7], "<i4")),
        ("n", np.array([1], "<i8")),
        ("n", np.array([1, -1, 1], "<i8")),
        ("sample_offsets", np.array([0, 9, 3, 66], "<i4")),
        ("bucket_offsets", np.array([], "<i4")),
        ("bucket_count", np.array([], "<i8")),
        ("gamma", float("nan")),
        ("gamma", 1.0),
        ("value_error", 1.0),
        ("value_error", float("nan")),
        ("collapses", np.array([40, 0, 0], "|u1")),
        ("collapses", np.array([0], "|u1")),
        ("bucket_index", np.full(len(ENTRIES[2].bucket_index), 7, "<i4")),
    ],
)
def test_self_check_refuses_what_does_not_fit(field: str, value: Any) -> None:
    broken = replace(DistributionTable.from_mapping(ENTRIES), **{field: value})

    with pytest.raises(ProfileFormatError):
        broken.self_check(10)


def test_buckets_of_different_width_become_those_of_the_widest() -> None:
    coarse = Distribution.from_samples(range(1, 100)).with_gamma(1.06)

    table = DistributionTable.from_mapping({1: coarse, 2: ENTRIES[2], 3: ENTRIES[7]})

    assert table.gamma == 1.06
    for row, middle in ((1, 50), (2, 50), (3, 1.5)):
        found = table.get(row)
        assert found is not None
        assert found.quantile(0.5) == pytest.approx(middle, rel=found.relative_error)
