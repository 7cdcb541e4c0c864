from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.profiles import training_profile
from fakes.runs import profile_of

from proton_bench.analysis.metrics.peak import peak_rates
from proton_bench.analysis.view.select import Selection
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.report.html.points import scopes_without_bytes
from proton_bench.report.html.roofline import HEIGHT, MAX_POINTS, WIDTH, roofline_plots

H100 = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 6144)


def working(*kernels: tuple[str, int, float, float], device: Device = H100) -> Profile:
    builder = ProfileBuilder()
    for name, time, flops, moved in kernels:
        metrics = {"time (ns)": time, "count": 1, "flops16": flops, "bytes": moved}
        builder.add(0, name, FrameKind.KERNEL, metrics=metrics, device=device)
    return builder.build()


def test_kernel_at_its_roof_stands_on_the_line() -> None:
    peaks = peak_rates(H100)
    flops = peaks["flops16"] * 1e-3  # a millisecond at the peak
    profile = working(("at the roof", 1_000_000, flops, flops / 1e6))

    (plot,) = roofline_plots(profile, Selection())

    (point,) = plot.points
    (roof,) = (each for each in plot.roofs if each.title.startswith("16 bit"))
    assert point.bound == "compute"
    assert f"{point.y}" == roof.points.split()[-1].split(",")[1]
    assert "1 x its attainable time, bound by compute" in point.text


def test_everything_stands_inside_of_the_drawing() -> None:
    profile = working(("a", 1, 1e3, 1e15), ("b", 10**12, 1e15, 1.0), ("c", 10**6, 1e9, 1e9))

    (plot,) = roofline_plots(profile, Selection())

    for point in plot.points:
        assert 0 <= point.x <= WIDTH
        assert 0 <= point.y <= HEIGHT
    for tick in plot.x_ticks:
        assert 0 <= tick.at <= WIDTH
    assert len(plot.x_ticks) <= 14


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("flops16", 5e-324),
        ("bytes", 1e308),
        ("counter_time (ns)", 1e308),
        ("dram_busy (ns)", 1e308),
    ],
)
def test_kernel_with_impossible_numbers_has_no_place(metric: str, value: float) -> None:
    counters = {"counter_time (ns)": 1e6, "dram_busy (ns)": 5e5, "dram_variance (ns^2)": 1.0}
    if not metric.startswith(("counter", "dram")):
        counters = {}
    builder = ProfileBuilder()
    work = {"time (ns)": 1e6, "count": 1, "flops16": 1e9}
    for name, more in (("possible", {"bytes": 1e6}), ("impossible", {**counters, metric: value})):
        builder.add(0, name, FrameKind.KERNEL, metrics={**work, **more}, device=H100)

    (plot,) = roofline_plots(builder.build(), Selection())

    assert [point.name for point in plot.points] == ["possible"]


def test_time_is_the_area_of_a_point() -> None:
    profile = working(("long", 4000, 1e9, 1e6), ("short", 1000, 1e9, 1e6))

    (plot,) = roofline_plots(profile, Selection())

    assert [point.name for point in plot.points] == ["long", "short"]
    assert plot.points[0].radius > plot.points[1].radius


def test_points_beyond_what_can_be_seen_are_counted() -> None:
    profile = working(*((f"k{place}", 1000 + place, 1e9, 1e6) for place in range(MAX_POINTS + 3)))

    (plot,) = roofline_plots(profile, Selection())

    assert len(plot.points) == MAX_POINTS
    assert plot.hidden == 3


DATA = Path(__file__).parents[3] / "data" / "counters"


def measured(*, named: float, dram: float, half: float = 0.01, asked: float = 0) -> Profile:
    """A kernel of a millisecond with operations, and bytes by its launches and by counters."""
    time_ns = 1e6
    metrics = {"time (ns)": time_ns, "count": 1, "flops16": 1e10, "counter_time (ns)": time_ns}
    metrics |= {"bytes": named} if named else {}
    metrics |= {"code_bytes": asked} if asked else {}
    metrics["dram_busy (ns)"] = dram * time_ns
    metrics["dram_variance (ns^2)"] = (half / 1.959964 * time_ns) ** 2
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=H100)
    return builder.build()


def place(profile: Profile) -> tuple[str, float]:
    """Return where a kernel's bytes come from, and where it stands from the left."""
    (plot,) = roofline_plots(profile, Selection())
    (point,) = plot.points
    return point.source, point.x


def test_measured_bytes_come_before_those_that_launches_name() -> None:
    moved = 0.5e-3 * peak_rates(H100)["bytes"]
    at_moved, at_named = (place(working(("k", 1_000_000, 1e10, each))) for each in (moved, 9e9))

    assert place(measured(named=9e9, dram=0.5)) == ("measured", pytest.approx(at_moved[1]))
    assert place(measured(named=9e9, dram=0.5, half=0.07)) == at_named
    assert at_named[0] == "named"


def test_bytes_that_may_be_none_stand_at_the_end_of_their_interval() -> None:
    assert place(measured(named=0, dram=0.001, half=0.009)) == place(
        measured(named=0, dram=0.01, half=0.001)
    )


def test_difference_to_named_bytes_is_told() -> None:
    (plot,) = roofline_plots(measured(named=1e10, dram=0.5), Selection())

    assert "the rest came from caches" in plot.points[0].text


def test_difference_to_what_the_code_asks_for_is_told() -> None:
    profile = measured(named=0, asked=1e10, dram=0.5)
    (plot,) = roofline_plots(profile, Selection())

    assert "asks for 10 GB, DRAM moved" in plot.points[0].text
    assert place(profile) == place(measured(named=0, dram=0.5))


def test_kernels_that_name_nothing_stand_by_their_counters() -> None:
    profile = read_profile(DATA / "kernels_h100.proton")

    (plot,) = roofline_plots(profile, Selection())

    bounds = {point.name.split("<")[0].split("(")[0].strip(): point.bound for point in plot.points}
    assert {point.source for point in plot.points} == {"measured"}
    assert plot.sources == ("measured",)
    assert bounds["dfma"] == "compute"
    assert sorted(bound for bound in bounds.values() if bound == "memory") == ["memory"] * 3
    pipes = [roof.title for roof in plot.roofs if "pipe" in roof.title]
    assert len(pipes) == 2


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"ceilings": {"dram": 0.8}, "ceilings_measured": ["dram"]}, "measured"),
        ({"ceilings": {"dram": 0.8}, "ceilings_measured": []}, "usual"),
        ({}, ""),
    ],
    ids=["measured", "usual", "none"],
)
def test_ceilings_are_drawn_below_the_roofs(facts: dict[str, Any], said: str) -> None:
    profile = replace(working(("a", 1000, 1e9, 1e6)), provenance=Provenance(facts))

    (plot,) = roofline_plots(profile, Selection())

    assert plot.ceilings == said
    for roof in plot.roofs:
        assert bool(roof.reached) == bool(said)
        for each in roof.reached:  # further down is a larger y
            assert float(each.points.split(",")[-1]) > float(roof.points.split(",")[-1])


def test_units_of_one_rate_have_ceilings_of_their_own() -> None:
    profile = read_profile(DATA / "kernels_h100.proton")
    facts = {"ceilings": {"tensor": 0.7, "fp32": 0.9}, "ceilings_measured": ["tensor"]}

    (plot,) = roofline_plots(replace(profile, provenance=Provenance(facts)), Selection())

    (both,) = (roof for roof in plot.roofs if "64 bit and FP32 pipe" in roof.title)
    assert [each.title.split(" of ")[0] for each in both.reached] == [
        *("64 bit: 70 %", "FP32 pipe: 90 %"),
    ]


def test_kernel_without_bytes_has_no_place() -> None:
    profile = working(("a", 1000, 1e9, 1e6), ("no bytes", 1000, 1e9, 0.0))

    (plot,) = roofline_plots(profile, Selection())

    assert [point.name for point in plot.points] == ["a"]
    assert plot.hidden == 1


@pytest.mark.parametrize(
    "profile",
    [
        profile_of(("s/a", 10, 1, "")),
        training_profile(),  # operations, and no bytes
        working(("a", 10, 1e9, 1e6), device=Device("ACME", 0, "x1")),
        ProfileBuilder().build(),
    ],
    ids=["no work", "no bytes", "unknown device", "empty"],
)
def test_nothing_is_drawn_without_work_or_peaks(profile: Profile) -> None:
    assert roofline_plots(profile, Selection()) == ()


def test_every_device_has_its_plot() -> None:
    builder = ProfileBuilder()
    for index in (0, 1):
        metrics = {"time (ns)": 10, "count": 1, "flops16": 1e9, "bytes": 1e6}
        device = Device("CUDA", index, "90", 132, 1_980_000, 2_619_000, 6144)
        builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=device)

    plots = roofline_plots(builder.build(), Selection())

    assert [plot.device for plot in plots] == ["CUDA:0 (90)", "CUDA:1 (90)"]


def test_names_are_made_visible() -> None:
    (plot,) = roofline_plots(working(("a\n<b>", 10, 1e9, 1e6)), Selection())

    assert plot.points[0].name == "a\\n<b>"


def with_scopes(*scopes: tuple[str, float, float], device: Device, **time: float) -> Profile:
    """Return scopes with their operations and bytes, each around a kernel of 2 us."""
    builder = ProfileBuilder()
    for name, flops, moved in scopes:
        metrics = {"flops32": flops, "bytes": moved, **time}
        scope = builder.add(0, name, FrameKind.SCOPE, metrics=metrics)
        kernel = {"time (ns)": 2000, "count": 1}
        builder.add(scope, "k", FrameKind.KERNEL, metrics=kernel, device=device)
    return builder.build()


CPU = Device("CPU", 0, "")


def test_scopes_that_name_their_work_stand_without_roofs_on_a_cpu() -> None:
    profile = with_scopes(("fit", 4e6, 1e3), ("fit", 4e6, 1e3), ("test", 1e6, 1e3), device=CPU)

    (plot,) = roofline_plots(profile, Selection())

    assert [point.name for point in plot.points] == ["fit", "test"]
    assert plot.points[0].text == "fit: 2 TFLOP/s at 4e+03 FLOP per byte, 4 us in all"
    assert plot.roofs == ()
    assert all(0 < point.x < WIDTH and 0 < point.y < HEIGHT for point in plot.points)


def test_scopes_on_a_gpu_stand_below_its_roofs() -> None:
    profile = with_scopes(("fit", 4e6, 1e3), device=H100)

    (plot,) = roofline_plots(profile, Selection())

    (point,) = plot.points
    assert (plot.device, point.name, point.bound) == ("CUDA:0 (90)", "fit", "compute")
    assert "x its attainable time, bound by compute" in point.text
    assert plot.roofs


def test_a_timed_scope_has_its_own_time() -> None:
    builder = ProfileBuilder()
    metrics = {"flops64": 3e6, "bytes": 1e6, "cpu_time (ns)": 1e6}
    builder.add(0, "step", FrameKind.SCOPE, metrics=metrics)

    (plot,) = roofline_plots(builder.build(), Selection())

    assert plot.points[0].text == "step: 3 GFLOP/s at 3 FLOP per byte, 1 ms in all"


def test_scopes_without_bytes_are_told_what_they_lack() -> None:
    profile = with_scopes(("a\nb", 1e6, 0.0), ("c", 1e6, 0.0), ("d", 1e6, 1e3), device=CPU)

    said = scopes_without_bytes(profile)

    assert said.startswith("a\\nb and 1 other scope without bytes beside their operations")
    assert scopes_without_bytes(with_scopes(("d", 1e6, 1e3), device=CPU)) == ""
    assert scopes_without_bytes(ProfileBuilder().build()) == ""
