from __future__ import annotations

import pytest

from proton_bench.errors import UsageError
from proton_bench.model.metrics.counter_columns import UNITS
from proton_bench.recording.counters.metric_sets import (
    ELAPSED_CYCLES,
    METRIC_SETS,
    Basis,
    meaning_of,
    metric_candidates,
)

EVERY = [metrics for sets in METRIC_SETS.values() for metrics in sets]


@pytest.mark.parametrize("metrics", EVERY, ids=len)
def test_every_metric_of_a_set_says_something_once(metrics: tuple[str, ...]) -> None:
    assert metrics[0] == ELAPSED_CYCLES
    meanings = [meaning_of(name) for name in metrics[1:]]
    quantities = [meaning.quantity for meaning in meanings if meaning is not None]

    assert len(quantities) == len(metrics) - 1
    assert len(set(quantities)) == len(quantities)
    assert set(quantities) <= set(UNITS)


@pytest.mark.parametrize("sets", METRIC_SETS.values(), ids=METRIC_SETS)
def test_later_candidates_ask_for_less(sets: tuple[tuple[str, ...], ...]) -> None:
    assert [len(each) for each in sets] == sorted({len(each) for each in sets}, reverse=True)


def test_units_with_a_clock_of_their_own_are_counted_by_time() -> None:
    meaning = meaning_of("dram__throughput.avg.pct_of_peak_sustained_elapsed")
    assert meaning is not None
    assert (meaning.quantity, meaning.basis) == ("dram", Basis.TIME)


@pytest.mark.parametrize(
    "metric",
    [
        ELAPSED_CYCLES,
        "pcie__read_bytes.sum",
        "sm__cycles_active.sum",
        "dram__throughput.avg.pct_of_peak_sustained_active",
        "",
    ],
)
def test_metrics_that_are_no_shares_of_a_peak_mean_nothing(metric: str) -> None:
    assert meaning_of(metric) is None


def test_metrics_can_be_named_one_by_one() -> None:
    names = "lts__t_sectors.avg.pct_of_peak_sustained_elapsed, dram__bytes_read.sum"

    assert metric_candidates(names) == ((ELAPSED_CYCLES, *names.split(", ")),)
    assert metric_candidates(f"{ELAPSED_CYCLES},{names}") == metric_candidates(names)


@pytest.mark.parametrize("asked", ["", "speed", "dram", "a,b", "sm__cycles_active"])
def test_other_texts_are_refused(asked: str) -> None:
    with pytest.raises(UsageError):
        metric_candidates(asked)
