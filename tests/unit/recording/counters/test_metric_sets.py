from __future__ import annotations

import numpy as np
import pytest
from fakes.mixtures import METRICS, Kind, kinds, recorded_burst

from proton_bench.errors import UsageError
from proton_bench.model.metrics.counter_columns import UNITS
from proton_bench.recording.counters.join import DeviceEstimates, join_bursts
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


# Their matrices stay in the second-level cache when Nsight Compute repeats one kernel alone, and
# come from memory in a mix. So its share of DRAM (below 1 %) is not what they do here.
WARM_THERE = ("mm256", "mm512", "mm1024", "mm2048")


INTERVALS = ("5us", "10us", "100us")


LAUNCHES = np.bincount(recorded_burst("10us")["nodes"])  # the same in all three


_WIDEST = 6.0


@pytest.fixture(scope="module", params=INTERVALS)
def mix(request: pytest.FixtureRequest) -> tuple[str, DeviceEstimates]:
    (estimates,) = join_bursts([recorded_burst(request.param)], METRICS)
    return request.param, estimates


def of(estimates: DeviceEstimates, quantity: str, node: int) -> tuple[float, float]:
    """Percent and half of the interval in points."""
    return 100 * estimates.shares[quantity][node], 196 * estimates.errors[quantity][node]


def at_record(kind: Kind, percent: float, estimates: DeviceEstimates, node: int) -> float:
    """Put an amount that Nsight Compute measured over the time that the activity record tells.

    Its own time holds about a microsecond of launch besides.
    """
    return percent * kind.duration_ns * LAUNCHES[node] / estimates.time_ns[node]


def test_tensor_use_is_that_of_nsight_compute(mix: tuple[str, DeviceEstimates]) -> None:
    _, estimates = mix
    for node, kind in enumerate(kinds()):
        percent, half = of(estimates, "tensor", node)
        truth = at_record(kind, kind.tensor_pct, estimates, node)

        assert percent == pytest.approx(truth, abs=half)
        if kind.duration_ns > 4_000 and half <= _WIDEST:
            assert percent == pytest.approx(truth, abs=2.0)


def test_dram_use_is_that_of_nsight_compute(mix: tuple[str, DeviceEstimates]) -> None:
    interval, estimates = mix
    for node, kind in enumerate(kinds()):
        percent, half = of(estimates, "dram", node)
        truth = at_record(kind, kind.dram_pct, estimates, node)

        if kind.name in WARM_THERE:
            assert percent > truth - half
        elif interval == "100us":
            assert percent == pytest.approx(truth, abs=half + 3.0)
        else:
            assert percent == pytest.approx(truth, abs=half)
        if kind.duration_ns > 50_000:
            assert percent == pytest.approx(truth, abs=0.7)
        elif kind.duration_ns > 9_000 and kind.name not in WARM_THERE:
            assert percent == pytest.approx(truth, abs=3.5)


def test_clocks_are_those_of_nsight_compute(mix: tuple[str, DeviceEstimates]) -> None:
    _, estimates = mix
    assert estimates.cycles_per_ns is not None
    for node, kind in enumerate(kinds()):
        if kind.duration_ns > 3_000:
            clock_mhz = 1e3 * estimates.cycles_per_ns[node]
            assert clock_mhz == pytest.approx(kind.sm_clock_mhz, rel=0.02)


def test_kernels_much_shorter_than_samples_are_not_resolved(
    mix: tuple[str, DeviceEstimates],
) -> None:
    _, estimates = mix
    tiny = [kind.name for kind in kinds()].index("tinyadd")
    assert of(estimates, "dram", tiny)[1] > _WIDEST


def test_long_kernels_are_known_well(mix: tuple[str, DeviceEstimates]) -> None:
    _, estimates = mix
    for node, kind in enumerate(kinds()):
        if kind.duration_ns > 200_000:
            assert all(of(estimates, each, node)[1] < 0.5 for each in ("dram", "tensor"))
        elif kind.duration_ns > 20_000:
            assert all(of(estimates, each, node)[1] < 4.0 for each in ("dram", "tensor"))


def test_a_clock_that_is_shifted_as_another_process_may_have_it_changes_little() -> None:
    burst = recorded_burst("10us")
    (right,) = join_bursts([burst], METRICS)
    moved = {name: burst[name] - 750 for name in ("start_ns", "end_ns")}
    (shifted,) = join_bursts([burst | moved], METRICS)

    resolved = [node for node, kind in enumerate(kinds()) if kind.duration_ns > 4_000]
    for quantity in ("dram", "tensor"):
        difference = 100 * (shifted.shares[quantity] - right.shares[quantity])[resolved]
        assert np.abs(difference).max() < 1.0
