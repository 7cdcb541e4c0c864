"""The roofline plot of each device: rates of kernels against the limits of the device.

Geometry only; the page draws it. Both axes are logarithmic: operations per byte to the right,
operations per second upwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.metrics.peak import offered_peaks
from proton_bench.analysis.metrics.peak_rates import peak_rates
from proton_bench.analysis.metrics.roofline import Roofline, roofline
from proton_bench.analysis.naming.readable import texts_of
from proton_bench.analysis.view.flat import flattened
from proton_bench.analysis.view.select import Selection, drop_metadata, drop_trials
from proton_bench.errors import MetricError
from proton_bench.model.device import Device
from proton_bench.model.profile import Profile
from proton_bench.report.html.plots.axes import Axes, Tick, scaled
from proton_bench.support.text import visible
from proton_bench.support.units import duration_text

__all__ = ["Point", "Roof", "RooflinePlot", "roofline_plots"]

# Further kernels take almost no time, and a plot of thousands is unreadable.
MAX_POINTS = 200
_MAX_NAME = 120
_MIN_RADIUS, _MAX_RADIUS = 3.5, 13.0


@dataclass(frozen=True, slots=True)
class Roof:
    """The upper limit: along the memory's slope, then flat at a peak.

    Attributes:
        title: Width of the operands, with the peak.
        points: The line, as SVG points.
        label_x: Where its title ends.
        label_y: Baseline of its title.
    """

    title: str
    points: str
    label_x: float
    label_y: float


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel: its position, its size by its share of the time, and its text."""

    x: float
    y: float
    radius: float
    bound: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RooflinePlot:
    """One device's plot.

    Attributes:
        device: "CUDA:0 (90)".
        roofs: A line per width of operands.
        points: Kernels, the most time first.
        x_ticks: Marks of operations per byte.
        y_ticks: Marks of operations per second.
        hidden: Kernels with known work that are not drawn: no operations, no bytes, or too many.
    """

    device: str
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    hidden: int


def roofline_plots(profile: Profile, selection: Selection) -> tuple[RooflinePlot, ...]:
    """Return a plot for each device with known peaks whose kernels have known work.

    Known work means operations and bytes.
    """
    shown = drop_metadata(profile)
    kernels = flattened(shown if selection.trials else drop_trials(shown))
    try:
        found = roofline(kernels)
    except MetricError:
        return ()
    texts = kernels.strings
    if selection.readable is not None:
        rows = [(kernels.frames, kernels.kinds)]
        texts = texts_of(texts, rows, selection.readable, provenance=profile.provenance)
    kernels = replace(kernels, strings=texts)
    plots = (_plot(kernels, found, place) for place in range(len(kernels.devices)))
    return tuple(plot for plot in plots if plot is not None)


@dataclass(frozen=True, slots=True)
class _Kernel:
    name: str
    intensity: float
    rate: float
    seconds: float
    distance: float
    bound: str


def _plot(profile: Profile, found: Roofline, place: int) -> RooflinePlot | None:
    device = profile.devices[place]
    # The rates of the roofline; upstream's rates, which `util` uses, differ for some.
    peaks = offered_peaks(device) or peak_rates(device)
    rows = np.flatnonzero((profile.device_rows == place) & found.valid)
    kernels = sorted(_kernels(profile, found, rows.tolist()), key=lambda kernel: -kernel.seconds)
    if not kernels or "bytes" not in peaks or len(peaks) == 1:
        return None
    drawn = kernels[:MAX_POINTS]
    axes = _axes(drawn, peaks)
    most = max(kernel.seconds for kernel in drawn)
    return RooflinePlot(
        device=_device_text(device),
        roofs=tuple(_roofs(axes, peaks)),
        points=tuple(_point(axes, kernel, most) for kernel in drawn),
        x_ticks=tuple(axes.x_ticks()),
        y_ticks=tuple(axes.y_ticks("FLOP/s")),
        hidden=len(rows) - len(drawn),
    )


def _device_text(device: Device) -> str:
    arch = f" ({device.arch})" if device.arch else ""
    return visible(f"{device.kind}:{device.index}{arch}")


def _kernels(profile: Profile, found: Roofline, rows: Sequence[int]) -> Iterator[_Kernel]:
    bounds = found.bounds()
    for row in rows:
        flops, moved = float(found.operations[row]), float(found.moved_bytes[row])
        time = float(found.time_seconds[row])
        if flops <= 0 or moved <= 0 or time <= 0:
            continue
        distance = time / float(found.seconds[row])
        yield _Kernel(
            visible(profile.name(row)),
            flops / moved,
            flops / time,
            time,
            distance,
            str(bounds[row]),
        )


def _axes(kernels: Sequence[_Kernel], peaks: Mapping[str, float]) -> Axes:
    rates = [rate for name, rate in peaks.items() if name != "bytes"]
    ridges = [rate / peaks["bytes"] for rate in rates]
    return Axes.around(
        [*(kernel.intensity for kernel in kernels), *ridges],
        [*(kernel.rate for kernel in kernels), *rates],
    )


def _roofs(axes: Axes, peaks: Mapping[str, float]) -> Iterator[Roof]:
    bandwidth = peaks["bytes"]
    rates = sorted((rate, name) for name, rate in peaks.items() if name != "bytes")
    for rate in dict.fromkeys(rate for rate, _ in rates):
        widths = [name.removeprefix("flops") for same, name in rates if same == rate]
        ridge = rate / bandwidth
        # Where the slope enters: at the left edge or at the lower one.
        start = max(axes.left, axes.bottom / bandwidth)
        corners = [(start, start * bandwidth), (ridge, rate), (max(ridge, axes.right), rate)]
        line = " ".join(f"{axes.x(x)},{axes.y(y)}" for x, y in corners)
        title = f"{' and '.join(widths)} bit: {scaled(rate)}FLOP/s"
        yield Roof(title, line, axes.x(axes.right), axes.y(rate) - 5)


def _point(axes: Axes, kernel: _Kernel, most: float) -> Point:
    # Areas grow with times, from the smallest that a pointer can hit.
    radius = _MIN_RADIUS + (_MAX_RADIUS - _MIN_RADIUS) * math.sqrt(kernel.seconds / most)
    text = (
        f"{visible(kernel.name, _MAX_NAME)}: {scaled(kernel.rate)}FLOP/s at "
        f"{kernel.intensity:.3g} FLOP per byte, "
        f"{duration_text(kernel.seconds * 1e9)} in all, {kernel.distance:.3g} x its attainable "
        f"time, bound by {kernel.bound}"
    )
    x, y = axes.x(kernel.intensity), axes.y(kernel.rate)
    return Point(x, y, round(radius, 2), kernel.bound, kernel.name, text)
