from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from fakes.earlier import open_below
from fakes.runs import GPU, run_of
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.choices import QUANTILES
from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.metrics.measure import Measure, find_measure
from proton_bench.analysis.query.relations import LabelledRun, quantiles, relations
from proton_bench.analysis.run import Run, check_devices
from proton_bench.errors import MetricError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.metric import Aggregation

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


def run(source: str = "a", aggregation: str = "", **metrics: Any) -> Run:
    builder = ProfileBuilder()
    named = {
        name.replace("__", " (") + ")" if "__" in name else name: value
        for name, value in metrics.items()
    }
    for name in named:
        if aggregation:
            builder.declare(name, Aggregation(aggregation))
    builder.add(0, "k", metrics=named, device=GPU)
    return Run(builder.build(), source)


def test_default_is_a_time_in_its_own_unit() -> None:
    runs = [run(time__ns=5, count=1), run("b", time__ns=6, count=1)]

    assert find_measure(runs, None) == Measure("time (ns)", "time (ns)", 1.0, "ns")


def test_default_is_what_all_runs_have() -> None:
    runs = [run(time__ns=5, cycles=1), run("b", cycles=2)]

    assert find_measure(runs, None).source == "cycles"


def test_times_in_units_add_up() -> None:
    runs = [run(time__ns=5), run("b", time__ns=6)]

    assert find_measure(runs, "TIME/ms") == Measure("time/ms", "time (ns)", 1e6, "ns")


@pytest.mark.parametrize("name", ["avg_time/us", "time/%", "flop16/s"])
def test_rates_and_shares_do_not_add_up(name: str) -> None:
    runs = [run(time__ns=5, count=1, flops16=3), run("b", time__ns=6, count=2, flops16=4)]

    assert not find_measure(runs, name).is_additive


def test_metrics_of_a_row_alone_do_not_add_up() -> None:
    runs = [run(aggregation="exc", wall__ns=5), run("b", "exc", wall__ns=6)]

    assert not find_measure(runs, None).is_additive


@pytest.mark.parametrize(
    ("runs", "name", "error", "message"),
    [
        ([run(time__ns=5), run("b", time__us=5)], None, UsageError, "the units differ"),
        ([run(time__ns=5), run("b", time__us=5)], "time", UsageError, r"'time \(us\)'"),
        (
            [run(time__ns=5, count=1), run("b", time__us=5, count=1)],
            None,
            UsageError,
            "the units differ",
        ),
        ([run(time__ns=5), run("b", time__us=5)], "time/ms", UsageError, "the units differ"),
        ([run(time__ns=5), run("b", cycles=5)], None, UsageError, "no metric in common: 'a' has"),
        ([run(time__ns=5), run("b", cycles=5)], "time", MetricError, "'time' is not in 'b'"),
        ([run(time__ns=5), run("b", cycles=5)], "cycles", MetricError, "cycles is not found"),
        ([run(time__ns=5), run("b", cycles=5)], "cycles/ms", MetricError, "'cycles' is not in 'a'"),
        ([run(time__ns=5), run("b", time__ns=5)], "time/h", MetricError, "Unsupported unit h"),
        ([run(time__ns=5), run("b", time__ns=5)], "avg_time/us", MetricError, "'a': .*count"),
        ([run(cycles=5), run("b", cycles=5)], "cycles/ms", MetricError, "is not a time"),
        ([run(time__ns=5), run("b", time__ns=5)], "time,count", UsageError, "not one metric"),
        ([run(time__ns=5), run("b", time__ns=5)], " ", UsageError, "not one metric"),
        ([run(label="x"), run("b", label="y")], "label", MetricError, "not a number in 'a'"),
        ([run(label="x"), run("b", label="y")], None, UsageError, "no metric in common"),
        ([run(aggregation="exc", x=1), run("b", x=1)], "x", UsageError, "adds up over the tree"),
    ],
)
def test_what_cannot_be_compared_is_named(
    runs: list[Run], name: str | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        find_measure(runs, name)


@pytest.mark.parametrize(
    ("builder", "message"),
    [(ProfileBuilder(), "'b' is empty: it has no rows")],
)
def test_an_empty_run_is_an_error(builder: ProfileBuilder, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_measure([run(time__ns=5), Run(builder.build(), "b")], None)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (Device("HIP", 0, "gfx942"), "'a' ran on CUDA and 'b' on HIP"),
        (Device("CUDA", 0, "80", 108), "'b' on CUDA, architecture 80, 108 multiprocessors"),
    ],
)
def test_runs_on_different_devices_are_compared_on_request_only(
    device: Device, message: str
) -> None:
    runs = [
        run_of(("k", 5, 1, ""), source="a"),
        run_of(("k", 6, 1, ""), source="b", device=device),
    ]

    with pytest.raises(UsageError, match=f"{message}.*--ignore-devices"):
        compare(runs[:1], runs[1:], CompareOptions())
    found = compare(runs[:1], runs[1:], CompareOptions(ignore_devices=True))
    assert found.inclusive.change.tolist() == [1, 1]


def test_devices_without_known_facts_may_differ() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"time (ns)": 1})

    check_devices([run(time__ns=5), Run(builder.build(), "b")])

    assert builder.build().devices == ()


def test_a_side_without_runs_is_refused() -> None:
    with pytest.raises(UsageError, match="a run on each side"):
        compare([run(time__ns=5)], [], CompareOptions())
