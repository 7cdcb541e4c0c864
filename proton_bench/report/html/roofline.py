"""The roofline plot of each device: rates of kernels against the limits of the device.

Geometry only; the page draws it. Both axes are logarithmic: operations per byte to the right,
operations per second upwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.metrics.peak import pipe_rates
from proton_bench.analysis.metrics.roofline import roofline_peaks
from proton_bench.analysis.naming.readable import texts_of
from proton_bench.analysis.view.select import Selection, drop_metadata, drop_trials, flattened
from proton_bench.analysis.why.row_facts import SOURCE, Ceilings
from proton_bench.model.device import Device
from proton_bench.model.profile import Profile
from proton_bench.report.html.points import (
    KnownWork,
    PlottedKernel,
    known_work,
    plotted_kernel,
    plotted_scopes,
    scaled,
)
from proton_bench.support.text import visible
from proton_bench.support.units import duration_text

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 76, 32, 16, 48
_MAX_TICKS = 12
# Room for the marks around each value.
_MARGIN = 1.5


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: its position and text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Axes:
    """Powers of ten between which the axes run."""

    x_low: int
    x_high: int
    y_low: int
    y_high: int

    @classmethod
    def around(cls, xs: Sequence[float], ys: Sequence[float]) -> Axes:
        """Return axes that include all values, which are above 0."""
        return cls(*_decades(xs), *_decades(ys))

    @property
    def left(self) -> float:
        """The value at the left edge."""
        return float(10.0**self.x_low)

    @property
    def right(self) -> float:
        """The value at the right edge."""
        return float(10.0**self.x_high)

    @property
    def bottom(self) -> float:
        """The value at the lower edge."""
        return float(10.0**self.y_low)

    def x(self, value: float) -> float:
        """Return the position of a value from the left edge of the drawing."""
        share = (math.log10(value) - self.x_low) / (self.x_high - self.x_low)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 2)

    def y(self, value: float) -> float:
        """Return the position of a value from the upper edge of the drawing."""
        share = (math.log10(value) - self.y_low) / (self.y_high - self.y_low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 2)

    def x_ticks(self) -> Iterator[Tick]:
        """Yield the marks of the lower edge."""
        for value in _marks(self.x_low, self.x_high):
            yield Tick(self.x(value), scaled(value).rstrip() if value >= 1 else f"{value:g}")

    def y_ticks(self, unit: str) -> Iterator[Tick]:
        """Yield the marks of the left edge."""
        for value in _marks(self.y_low, self.y_high):
            yield Tick(self.y(value), f"{scaled(value)}{unit}")


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = min(values) / _MARGIN, max(values) * _MARGIN
    return math.floor(math.log10(low)), math.ceil(math.log10(high))


def _marks(low: int, high: int) -> Iterator[float]:
    for power in range(low, high + 1, max(1, math.ceil((high - low) / _MAX_TICKS))):
        yield float(10.0**power)


# Further kernels take almost no time, and a plot of thousands is unreadable.
MAX_POINTS = 200
_MAX_NAME = 120
_MIN_RADIUS, _MAX_RADIUS = 3.5, 13.0


@dataclass(frozen=True, slots=True)
class Reached:
    """What a GPU reaches of a roof: the line, and in words."""

    points: str
    title: str


@dataclass(frozen=True, slots=True)
class Roof:
    """The upper limit: along the memory's slope, then flat at a peak.

    Attributes:
        title: Width of the operands, with the peak.
        points: The line, as SVG points.
        reached: What the GPU reaches of it, a line for each unit; none where that is not known.
        label_x: Where its title ends.
        label_y: Baseline of its title.
    """

    title: str
    points: str
    reached: tuple[Reached, ...]
    label_x: float
    label_y: float


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel: its position, its size by its share of the time, and its text.

    ``source`` is where its bytes come from: ``measured`` or ``named``.
    """

    x: float
    y: float
    radius: float
    bound: str
    source: str
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
        sources: Where bytes come from: ``measured``, ``named`` or both.
        ceilings: What the lines of what is reached stand for: ``measured`` on this GPU, ``usual``
            for such a GPU, "" without them.
    """

    device: str
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    hidden: int
    sources: tuple[str, ...] = ()
    ceilings: str = ""


def roofline_plots(profile: Profile, selection: Selection) -> tuple[RooflinePlot, ...]:
    """Return a plot for each device with known peaks whose kernels or scopes have known work.

    Known work means operations and bytes. Scopes where no such device worked have a plot without
    roofs.
    """
    shown = drop_metadata(profile)
    shown = shown if selection.trials else drop_trials(shown)
    kernels = flattened(shown.fold_variants())
    work, scopes = known_work(kernels), plotted_scopes(shown)
    if work is None and not scopes:
        return ()
    texts = kernels.strings
    if selection.readable is not None:
        rows = [(kernels.frames, kernels.kinds)]
        texts = texts_of(texts, rows, selection.readable, provenance=profile.provenance)
    kernels = replace(kernels, strings=texts)
    plots = [
        _plot(kernels, work, place, scopes=scopes.get(place, ()))
        for place, device in enumerate(kernels.devices)
        if _has_roof(device)
    ]
    others = [
        scope
        for place, found in scopes.items()
        for scope in found
        if place < 0 or not _has_roof(kernels.devices[place])
    ]
    plots.append(_without_roofs(others))
    return tuple(plot for plot in plots if plot is not None)


def _has_roof(device: Device) -> bool:
    peaks = roofline_peaks(device)
    return "bytes" in peaks and len(peaks) > 1


def _without_roofs(scopes: Sequence[PlottedKernel]) -> RooflinePlot | None:
    if not scopes:
        return None
    drawn = sorted(scopes, key=lambda scope: -scope.seconds)[:MAX_POINTS]
    axes = Axes.around([each.intensity for each in drawn], [each.rate for each in drawn])
    return RooflinePlot(
        device="scopes, without a device whose peak rates are known",
        roofs=(),
        points=tuple(_point(axes, scope, drawn[0].seconds) for scope in drawn),
        x_ticks=tuple(axes.x_ticks()),
        y_ticks=tuple(axes.y_ticks("FLOP/s")),
        hidden=len(scopes) - len(drawn),
    )


def _plot(
    profile: Profile, work: KnownWork | None, place: int, *, scopes: Sequence[PlottedKernel]
) -> RooflinePlot | None:
    device = profile.devices[place]
    peaks = roofline_peaks(device)
    is_known = np.zeros(len(profile), dtype=np.bool_)
    for each in (work.named, work.moved) if work is not None else ():
        is_known |= each.valid if each is not None else False
    rows = np.flatnonzero((profile.device_rows == place) & is_known)
    found = [
        plotted_kernel(profile, work, row, peaks=peaks) for row in rows.tolist() if work is not None
    ]
    kernels = sorted([*filter(None, found), *scopes], key=lambda kernel: -kernel.seconds)
    if not kernels:
        return None
    drawn = kernels[:MAX_POINTS]
    rates = {f"{name.removeprefix('flops')} bit": peaks[name] for name in peaks if name != "bytes"}
    sources = tuple(sorted({kernel.source for kernel in drawn}))
    if "measured" in sources:
        rates |= {f"{pipe.upper()} pipe": rate for pipe, rate in pipe_rates(device).items()}
    axes = _axes(drawn, rates, peaks["bytes"])
    most = max(kernel.seconds for kernel in drawn)
    ceilings = Ceilings.of(profile.provenance) if _has_ceilings(profile, device) else None
    said = "" if ceilings is None else "measured" if "dram" in ceilings.measured else "usual"
    return RooflinePlot(
        device=_device_text(device),
        roofs=tuple(_roofs(axes, rates, bandwidth=peaks["bytes"], ceilings=ceilings)),
        points=tuple(_point(axes, kernel, most) for kernel in drawn),
        x_ticks=tuple(axes.x_ticks()),
        y_ticks=tuple(axes.y_ticks("FLOP/s")),
        hidden=len(rows) + len(scopes) - len(drawn),
        sources=sources,
        ceilings=said,
    )


def _has_ceilings(profile: Profile, device: Device) -> bool:
    return device.kind == "CUDA" and bool(profile.provenance.get(SOURCE))


def _device_text(device: Device) -> str:
    arch = f" ({device.arch})" if device.arch else ""
    return visible(f"{device.kind}:{device.index}{arch}")


def _axes(kernels: Sequence[PlottedKernel], rates: Mapping[str, float], bandwidth: float) -> Axes:
    ridges = [rate / bandwidth for rate in rates.values()]
    return Axes.around(
        [*(kernel.intensity for kernel in kernels), *ridges],
        [*(kernel.rate for kernel in kernels), *rates.values()],
    )


def _roofs(
    axes: Axes, rates: Mapping[str, float], *, bandwidth: float, ceilings: Ceilings | None
) -> Iterator[Roof]:
    for rate in sorted(set(rates.values())):
        names = [name for name, same in rates.items() if same == rate]
        found: Iterable[Reached] = ()
        if ceilings is not None:
            found = _reached(axes, names, rate, bandwidth=bandwidth, ceilings=ceilings)
        yield Roof(
            title=f"{_joined(names)}: {scaled(rate)}FLOP/s",
            points=_line(axes, rate, bandwidth),
            reached=tuple(found),
            label_x=axes.x(axes.right),
            label_y=axes.y(rate) - 5,
        )


def _joined(names: Sequence[str]) -> str:
    """Return names of rates as one: ``8 and 16 bit and FP32 pipe``."""
    widths = " and ".join(name.removesuffix(" bit") for name in names if name.endswith(" bit"))
    pipes = [name for name in names if not name.endswith(" bit")]
    return " and ".join([*([f"{widths} bit"] if widths else []), *pipes])


def _reached(
    axes: Axes, names: Sequence[str], rate: float, *, bandwidth: float, ceilings: Ceilings
) -> Iterator[Reached]:
    slope = ceilings.fractions["dram"]
    # Tensor cores do the work of each width where an architecture has them for it.
    units = {name: "tensor" if "bit" in name else name.split()[0].lower() for name in names}
    for share in sorted({ceilings.fractions[unit] for unit in units.values()}):
        which = _joined([name for name in names if ceilings.fractions[units[name]] == share])
        yield Reached(
            points=_line(axes, rate * share, bandwidth * slope),
            title=f"{which}: {100 * share:.0f} % of {scaled(rate)}FLOP/s, "
            f"{100 * slope:.0f} % of the memory's bandwidth",
        )


def _line(axes: Axes, rate: float, bandwidth: float) -> str:
    """Return the line along a bandwidth and then at a rate, as SVG points."""
    ridge = rate / bandwidth
    # Where the slope enters: at the left edge or at the lower one.
    start = max(axes.left, axes.bottom / bandwidth)
    corners = [(start, start * bandwidth), (ridge, rate), (max(ridge, axes.right), rate)]
    return " ".join(f"{axes.x(x)},{axes.y(y)}" for x, y in corners)


def _point(axes: Axes, kernel: PlottedKernel, most: float) -> Point:
    # Areas grow with times, from the smallest that a pointer can hit.
    radius = _MIN_RADIUS + (_MAX_RADIUS - _MIN_RADIUS) * math.sqrt(kernel.seconds / most)
    text = (
        f"{visible(kernel.name, _MAX_NAME)}: {kernel.words}, "
        f"{duration_text(kernel.seconds * 1e9)} in all"
    )
    if kernel.bound:
        text += f", {kernel.distance:.3g} x its attainable time, bound by {kernel.bound}"
    x, y = axes.x(kernel.intensity), axes.y(kernel.rate)
    return Point(x, y, round(radius, 2), kernel.bound, kernel.source, kernel.name, text)
