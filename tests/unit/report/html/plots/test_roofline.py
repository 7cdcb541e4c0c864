from __future__ import annotations

import pytest
from fakes.profiles import training_profile
from fakes.runs import profile_of

from proton_bench.analysis.metrics.peak_rates import peak_rates
from proton_bench.analysis.view.select import Selection
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.html.plots.axes import HEIGHT, WIDTH
from proton_bench.report.html.plots.roofline import MAX_POINTS, roofline_plots

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
