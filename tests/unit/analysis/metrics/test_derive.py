from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from fakes.profiles import cuda_literal, hip_literal, training_profile

from proton_bench.analysis.metrics.derive import available_metrics, default_metrics, derive
from proton_bench.analysis.metrics.peak import device_peaks
from proton_bench.errors import MetricError, PluginError
from proton_bench.formats.registry import find_format
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.manager import PluginManager


def decoded(literal: Any) -> Profile:
    return find_format("hatchet").decode(msgspec.json.encode(literal), "test")


def values(profile: Profile, *metrics: str) -> dict[str, list[Any]]:
    return {metric.title: metric.to_list() for metric in derive(profile, metrics)}


def test_times_are_inclusive_and_converted() -> None:
    shown = values(decoded(cuda_literal()), "time/s", "time/ms", "time/us", "time/ns")

    assert shown["time/s (inc)"] == pytest.approx([0.0004096, 0.0002048, 0.0002048])
    assert shown["time/ms (inc)"] == pytest.approx([0.4096, 0.2048, 0.2048])
    assert shown["time/us (inc)"] == pytest.approx([409.6, 204.8, 204.8])
    assert shown["time/ns (inc)"] == [409600.0, 204800.0, 204800.0]


def test_average_time_is_time_per_launch() -> None:
    shown = values(decoded(cuda_literal()), "avg_time/us")

    assert shown["avg_time/us"] == pytest.approx([409.6 / 11, 20.48, 204.8])


def test_rates_are_amounts_per_second() -> None:
    shown = values(decoded(cuda_literal()), "flop8/s", "gflop8/s", "tflop8/s", "gbyte/s")

    assert shown["flop8/s (inc)"] == pytest.approx([2.68554687e14, 4.8828125e14, 4.8828125e13])
    assert shown["gflop8/s (inc)"] == pytest.approx([268554.6875, 488281.25, 48828.125])
    assert shown["tflop8/s (inc)"] == pytest.approx([268.5546875, 488.28125, 48.828125])
    assert shown["gbyte/s (inc)"] == pytest.approx([268.5546875, 488.28125, 48.828125])


def test_utilization_stands_on_rows_with_a_device_only() -> None:
    shown = values(decoded(cuda_literal()), "util")["util"]

    assert shown[0] is None
    assert shown[1:] == pytest.approx([0.247044, 0.147830], rel=1e-5)


def test_utilization_needs_no_bytes() -> None:
    literal = cuda_literal()
    for node in (literal[0], *literal[0]["children"]):
        del node["metrics"]["bytes"]

    shown = values(decoded(literal), "util")["util"]

    assert shown[1] == pytest.approx(0.247044, rel=1e-5)


def test_utilization_of_hip_devices() -> None:
    # 1e10 operations at 104 * 1024 * 1.7e9 per second within 204.8 us.
    expected = 1e10 / (104 * 1024 * 1.7e9) / 204.8e-6

    assert values(decoded(hip_literal()), "util")["util"][2] == pytest.approx(expected)


def test_utilization_without_known_device_is_an_error() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"time (ns)": 1, "bytes": 1}, device=Device("CPU", 0))

    with pytest.raises(MetricError, match="CPU"):
        derive(builder.build(), ["util"])


def test_utilization_without_recorded_work_is_an_error() -> None:
    builder = ProfileBuilder()
    device = Device("CUDA", 0, "90", 132, 1_980_000, 3_201_000, 6144)
    builder.add(0, "k", metrics={"time (ns)": 1}, device=device)

    with pytest.raises(MetricError, match="none of bytes, flops8, flops16"):
        derive(builder.build(), ["util"])


def test_percent_of_inclusive_metric_is_the_share_of_the_root() -> None:
    assert values(decoded(cuda_literal()), "time/%")["time/% (inc)"] == [100.0, 50.0, 50.0]


def test_percent_of_exclusive_metric_is_the_share_of_all_rows() -> None:
    builder = ProfileBuilder()
    builder.declare("loss", Aggregation.EXCLUSIVE)
    for loss in (3, 5):
        builder.add(0, f"epoch {loss}", metrics={"loss": loss})

    assert values(builder.build(), "loss/%")["loss/%"] == [None, 37.5, 62.5]


def test_share_of_a_range_is_that_of_the_outermost_ranges() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (us)", Aggregation.EXCLUSIVE)
    train = builder.add(0, "train", FrameKind.SCOPE, metrics={"wall (us)": 60})
    frame = builder.add(train, "model.py:3@f", FrameKind.PYTHON)
    builder.add(frame, "forward", FrameKind.SCOPE, metrics={"wall (us)": 45})
    builder.add(0, "save", FrameKind.SCOPE, metrics={"wall (us)": 20})

    shown = values(builder.build(), "wall/%", "self_wall/us", "self_wall/%")

    assert shown["wall/% (inc)"] == [100.0, 75.0, 56.25, 56.25, 25.0]
    assert shown["self_wall/us"] == [None, 15.0, None, 45.0, 20.0]
    assert shown["self_wall/%"] == [None, 18.75, None, 56.25, 25.0]


def test_operators_have_their_time_beside_ranges_of_the_host() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    scope = builder.add(0, "step", FrameKind.SCOPE, metrics={"wall (ns)": 9000})
    builder.add(
        scope,
        "conv",
        FrameKind.OP,
        metrics={"time (ns)": 7000, "count": 2},
        device=Device("CPU", 0),
    )
    builder.add(0, "wait", FrameKind.SCOPE, metrics={"wall (ns)": 4000})
    profile = builder.build()

    metrics = default_metrics(profile)

    assert metrics == ("wall/us", "wall/%", "self_wall/us", "count")
    shown = values(profile, *metrics[:3:2])
    assert shown["wall/us (inc)"] == pytest.approx([13.0, 9.0, 7.0, 4.0])
    assert shown["self_wall/us"][1:] == pytest.approx([2.0, 7.0, 4.0])


def test_ranges_that_overlap_have_no_negative_self_time() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    gather = builder.add(0, "gather", FrameKind.SCOPE, metrics={"wall (ns)": 10})
    for name in ("a", "b"):
        builder.add(gather, name, FrameKind.SCOPE, metrics={"wall (ns)": 8})

    assert values(builder.build(), "self_wall/ns") == {"self_wall/ns": [None, 0.0, 8.0, 8.0]}


def test_percent_of_nothing_has_no_value() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics={"time (ns)": 0})

    assert values(builder.build(), "time/%") == {"time/% (inc)": [None, None]}


def test_exclusive_metric_stays_on_its_row() -> None:
    builder = ProfileBuilder()
    builder.declare("loss", Aggregation.EXCLUSIVE)
    outer = builder.add(0, "a", metrics={"loss": 0.5})
    builder.add(outer, "b", metrics={"loss": 0.25})

    (loss,) = derive(builder.build(), ["loss"])

    assert loss.title == "loss"
    assert loss.aggregation is Aggregation.EXCLUSIVE
    assert loss.to_list() == [None, 0.5, 0.25]


def test_property_is_shown_as_it_is() -> None:
    assert values(training_profile(), "label")["label"][2] == "l-forward"


def test_text_has_no_derived_metrics() -> None:
    with pytest.raises(MetricError, match="not a number"):
        derive(training_profile(), ["label/%"])


def test_integers_stay_exact() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics={"time (ns)": 2**60 + 1})

    (time,) = derive(builder.build(), ["time"])

    assert time.to_list() == [2**60 + 1, 2**60 + 1]


@pytest.mark.parametrize("aggregation", [Aggregation.EXCLUSIVE, Aggregation.INCLUSIVE])
@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_finite_number_is_shown_and_has_no_share(
    aggregation: Aggregation, odd: float
) -> None:
    builder = ProfileBuilder()
    builder.declare("loss", aggregation)
    builder.add(0, "a", metrics={"loss": odd})
    builder.add(0, "b", metrics={"loss": 0.5})

    loss, share = derive(builder.build(), ["loss", "loss/%"])

    whole = odd if aggregation is Aggregation.INCLUSIVE else None
    assert str(loss.to_list()) == str([whole, odd, 0.5])
    assert [str(value) for value in share.to_list()[1:]] == ["nan", "nan"]


@pytest.mark.parametrize("name", ["nope", "nope/ms", "nope/%", "byte/s", "avg_wall/ms"])
def test_metric_that_was_not_recorded_is_named_with_those_that_were(name: str) -> None:
    with pytest.raises(MetricError, match="count, flops16, label, time, wall"):
        derive(training_profile(), [name])


def test_a_rate_of_flops_is_one_of_all_widths() -> None:
    builder = ProfileBuilder()
    both = {"time (ns)": 2, "flops16": 6e12, "flops32": 4e12}
    builder.add(0, "both", FrameKind.KERNEL, metrics=both)
    builder.add(0, "one", FrameKind.KERNEL, metrics={"time (ns)": 1, "flops16": 1e12})
    builder.add(0, "none", FrameKind.KERNEL, metrics={"time (ns)": 1})
    profile = builder.build()

    (rates,) = derive(profile, ["tflops"])

    assert rates.name == "tflop/s"
    assert rates.to_list() == [pytest.approx(2.75e9), pytest.approx(5e9), pytest.approx(1e9), None]
    assert "tflop/s" in available_metrics(profile).derivable


def test_time_unit_of_something_else_is_an_error() -> None:
    with pytest.raises(MetricError, match="'count'"):
        derive(training_profile(), ["count/ms"])


def test_available_metrics_distinguish_inclusive_and_exclusive() -> None:
    available = available_metrics(training_profile())

    assert set(available.inclusive) == {"time (ns)", "count", "flops16"}
    assert set(available.exclusive) == {"wall (ns)", "label"}
    assert "tflop16/s" in available.derivable


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"time (ns)": 5_000_000, "count": 1, "cycles": 5}, ("time/ms", "time/%", "count")),
        ({"time (ns)": 5_000, "count": 1}, ("time/us", "time/%", "count")),
        ({"time (ns)": 500_000_000_000}, ("time/s", "time/%")),
        ({"cycles": 5, "wall (ns)": 5}, ("cycles", "cycles/%")),
        ({"cpu_time (ns)": 5_000_000, "x": 1}, ("cpu_time/ms", "cpu_time/%")),
        ({"loss": 0.5, "accuracy": 1}, ("loss",)),
        ({"label": "x"}, ()),
    ],
)
def test_default_metrics_fit_what_was_recorded(
    metrics: dict[str, Any], expected: tuple[str, ...]
) -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics=metrics)

    assert default_metrics(builder.build()) == expected


@pytest.mark.parametrize("own", ["idle", "host_wall", "idle (mb)", "host_wall (mb)", "time"])
@pytest.mark.parametrize("recorded", [(), ("idle (ns)",), ("host_wall (ns)",)])
def test_metrics_of_the_program_with_names_of_ours_leave_the_default_readable(
    own: str, recorded: tuple[str, ...]
) -> None:
    builder = ProfileBuilder()
    builder.add(0, "a", metrics=dict.fromkeys((*recorded, "time (ns)", own), 2000.0))
    profile = builder.build()

    chosen = default_metrics(profile)

    assert chosen[0].startswith("host_wall" if "host_wall (ns)" in recorded else "time")
    assert all(0.0 < metric.values[1] <= 100.0 for metric in derive(profile, chosen))


class PeaksAndMetrics:
    @hookimpl
    def proton_device_peaks(self) -> Any:
        return {("ACME", "x1"): {"flops16": 1e12, "bytes": 1e12}}

    @hookimpl
    def proton_metrics(self) -> Any:
        return {
            "rows": lambda profile: np.arange(len(profile)),
            "short": lambda profile: np.zeros(len(profile) + 1),
            "broken": lambda profile: 1 / 0,
        }


@pytest.fixture
def with_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = PluginManager((), entry_points=False)
    manager.register(PeaksAndMetrics(), "acme")
    monkeypatch.setattr("proton_bench.plugin.manager.get_plugin_manager", lambda: manager)


@pytest.mark.usefixtures("with_plugin")
def test_plugin_offers_peak_rates() -> None:
    device = Device("ACME", 0, "x1")
    builder = ProfileBuilder()
    metrics = {"time (ns)": 1_000_000_000, "flops16": 5e11, "bytes": 1e11}
    builder.add(0, "k", metrics=metrics, device=device)

    assert device_peaks(device)["flops16"] == 1e12
    assert values(builder.build(), "util")["util"] == [None, 0.5]


@pytest.mark.usefixtures("with_plugin")
def test_plugin_offers_metrics() -> None:
    shown = values(training_profile(), "rows")["rows"]

    assert shown[:3] == [0.0, 1.0, 2.0]


@pytest.mark.usefixtures("with_plugin")
def test_wrong_metric_of_a_plugin_is_named() -> None:
    with pytest.raises(MetricError, match=r"'short' .*shape"):
        derive(training_profile(), ["short"])
    with pytest.raises(PluginError, match=r"'broken' .*ZeroDivision"):
        derive(training_profile(), ["broken"])
