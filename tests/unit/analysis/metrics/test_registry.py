"""Entries of the registry of metrics."""

from __future__ import annotations

import pytest
from fakes.counted import Kernel, counted_profile

from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.analysis.metrics.formula import (
    Divisor,
    derivable_names,
    find_metric,
    parse_formula,
    unknown_metric,
)
from proton_bench.analysis.metrics.registry import REGISTRY
from proton_bench.errors import MetricError, UnknownMetricError
from proton_bench.model.profile import Profile


def counted_work() -> Profile:
    """Return a run with counters, operations and bytes."""
    return counted_profile(
        Kernel(
            path="net (Net)/aten::mm/gemm",
            time_ns=1e6,
            units={"tensor": 0.8, "dram": 0.3},
            metrics={"flops16": 1e9, "bytes": 1e6},
        )
    )


def test_an_offered_name_has_one_entry_that_computes_it() -> None:
    profile = counted_work()
    numbers = available_metrics(profile).recorded

    for metric in REGISTRY:
        for name in metric.offered(profile, numbers):
            entries = [each for each in REGISTRY if each.names.fullmatch(name)]
            is_in_unit = not entries and name.startswith("self_")  # a formula of the one without
            assert entries == [metric] or is_in_unit
            assert len(derive(profile, [name])[0].values) == len(profile)


@pytest.mark.parametrize("name", ["SELF_TIME", " Bound ", "Tensor_PCT"])
def test_case_and_blanks_do_not_matter(name: str) -> None:
    profile = counted_work()

    assert derive(profile, [name])[0].name == name.strip().lower()


def test_an_unknown_self_time_suggests_a_known_one() -> None:
    with pytest.raises(UnknownMetricError, match="self_time"):
        derive(counted_work(), ["self_tim"])


@pytest.mark.parametrize(
    ("name", "source", "divisor", "scale"),
    [
        ("time/s", "time", Divisor.NOTHING, 1.0),
        ("TIME/MS", "time", Divisor.NOTHING, 1e-3),
        ("wall/us", "wall", Divisor.NOTHING, 1e-6),
        ("avg_time/us", "time", Divisor.COUNT, 1e-6),
        ("avg_cpu_time/ns", "cpu_time", Divisor.COUNT, 1e-9),
        ("flop/s", "flops", Divisor.SECONDS, 1.0),
        ("gflop16/s", "flops16", Divisor.SECONDS, 1e9),
        ("tflop8/s", "flops8", Divisor.SECONDS, 1e12),
        ("gbyte/s", "bytes", Divisor.SECONDS, 1e9),
        ("dram_gbyte/s", "dram_bytes", Divisor.SECONDS, 1e9),
        ("pipe_tflop/s", "pipe_flops", Divisor.SECONDS, 1e12),
        ("util", "", Divisor.PEAK, 1.0),
        ("cycles/%", "cycles", Divisor.TOTAL, 0.01),
    ],
)
def test_name_is_read_as_formula(name: str, source: str, divisor: Divisor, scale: float) -> None:
    formula = parse_formula(name)

    assert formula is not None
    assert (formula.source, formula.divisor, formula.scale) == (source, divisor, scale)


@pytest.mark.parametrize("name", ["time", "count", "my metric (ns)"])
def test_plain_name_is_not_a_formula(name: str) -> None:
    assert parse_formula(name) is None


@pytest.mark.parametrize("name", ["time/minutes", "flop7/s/x", "count/"])
def test_unknown_unit_is_an_error(name: str) -> None:
    with pytest.raises(MetricError, match="Unsupported unit"):
        parse_formula(name)


@pytest.mark.parametrize("name", ["time", "TIME", "time (ns)", "Time (NS)", "time (ns) (inc)"])
def test_metric_is_found_without_case_and_unit(name: str) -> None:
    assert find_metric(name, ["count", "time (ns)"]) == "time (ns)"


def test_exact_name_wins_over_a_base_name() -> None:
    assert find_metric("t (s)", ["t (ns)", "t (s)"]) == "t (s)"


def test_unknown_metric_names_what_there_is() -> None:
    error = unknown_metric("nope", ["time (ns)", "count"])

    assert "Metric nope is not found" in str(error)
    assert "recorded are count, time" in str(error)


def test_hostile_metric_names_stay_on_one_short_line() -> None:
    error = unknown_metric("no\npe", ["x\x1b[31my\x00 (ns)", "m" * 5000])

    assert "Metric no\\npe is not found" in str(error)
    assert "x\\x1b[31my\\x00" in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 300


def test_derivable_names_follow_from_what_was_recorded() -> None:
    assert "util" not in derivable_names(["time (ns)", "count"])
    assert derivable_names(["cycles"]) == ()

    names = derivable_names(["time (ns)", "count", "flops16", "bytes", "wall (ns)"])

    assert {"time/ms", "avg_time/us", "tflop16/s", "gbyte/s", "util", "wall/s"} <= set(names)
    assert not {"flop8/s", "avg_wall/ms"} & set(names)
