from __future__ import annotations

import math

import numpy as np
import pytest
from fakes.earlier import open_below
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.choices import QUANTILES
from proton_bench.analysis.query.relations import LabelledRun, quantiles, relations
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable

# More than 64 samples have buckets.
SAMPLES = st.lists(st.floats(0, 1e9, width=32), min_size=1, max_size=90)


@given(st.lists(SAMPLES, max_size=6))
def test_they_are_those_of_each_distribution(samples: list[list[float]]) -> None:
    entries = [Distribution.from_samples(each) for each in samples]
    table = DistributionTable.from_mapping(dict(enumerate(entries)))

    found = quantiles(table)

    assert found.shape == (len(entries), len(QUANTILES))
    for line, entry in zip(found.tolist(), entries, strict=True):
        expected = [entry.quantile(q) for q in QUANTILES.values()]
        assert line == pytest.approx(expected, rel=1e-12)


def test_what_kept_moments_only_or_is_empty_has_none() -> None:
    moments = Distribution(5, 0, 50.0, 1.0, 20.0, 10.0, 25.0)
    table = DistributionTable.from_mapping({0: moments, 3: Distribution.from_samples([])})

    assert np.isnan(quantiles(table)).all()


def test_those_among_collapsed_samples_are_not_known() -> None:
    table = DistributionTable.from_mapping({3: open_below(range(1, 5001), 1024)})

    found = dict(zip(QUANTILES, quantiles(table)[0].tolist(), strict=True))

    assert math.isnan(found["p5"])
    assert found["median"] == pytest.approx(2500.5, rel=0.002)


def test_queries_see_them_as_columns() -> None:
    builder = ProfileBuilder()
    rows = [builder.add(0, name, metrics={"time (ns)": 5}) for name in "kl"]
    builder.set_distribution(rows[0], "time (ns)", Distribution.from_samples(range(1, 102)))
    builder.set_distribution(rows[1], "time (ns)", Distribution(5, 0, 50.0, 1, 20, 10.0, 25.0))

    (found,) = relations(LabelledRun("r", "r", builder.build()), ["distributions"], [])

    median, p95 = found.columns["median"], found.columns["p95"]
    assert float(median[0]) == pytest.approx(51, rel=0.001)
    assert float(p95[0]) == pytest.approx(96, rel=0.001)
    assert (np.ma.getmaskarray(median).tolist(), math.isnan(float(p95[0]))) == (
        [False, True],
        False,
    )
