"""Facts of launches as columns that add up: how a grid fills its device, and what limits it.

Variants of a kernel are folded into one row before rows are shown, and then their grids are gone.
These columns are means weighted by time, which stay right when rows are summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.occupancy import LIMITS, occupancy, resident_blocks
from proton_bench.analysis.metrics.values import mean_names, mean_values, own_numbers, with_mean
from proton_bench.model.arrays import Floats
from proton_bench.model.device import Device, Variant
from proton_bench.model.profile import Profile

_PREFIX = "why "
_WARP = 32


@dataclass(frozen=True, slots=True)
class Launch:
    """Facts of one launch, or their means over the launches of a row, weighted by time.

    Attributes:
        blocks: Blocks of the grid.
        units: Multiprocessors of the device.
        fill: Part of the multiprocessors that gets a block, from 0 to 1.
        waves: Blocks / blocks that the device holds at a time.
        tail_loss: Part of the time that multiprocessors with fewer blocks than others have nothing
            to do, if all blocks take equally long, from 0 to 1; by waves or by blocks of one
            multiprocessor, whichever is less.
        occupancy: Resident warps / warps that a multiprocessor can hold, from 0 to 1.
        registers: Registers of a thread.
        shared_bytes: Shared memory of a block in bytes.
        local_bytes: Local memory of a thread in bytes, where registers are spilled.
    """

    blocks: float = math.nan
    units: float = math.nan
    fill: float = math.nan
    waves: float = math.nan
    tail_loss: float = math.nan
    occupancy: float = math.nan
    registers: float = math.nan
    shared_bytes: float = math.nan
    local_bytes: float = math.nan


FACTS = tuple(Launch.__dataclass_fields__)


def with_launch_facts(profile: Profile) -> Profile:
    """Return the profile with the facts of `Launch` as means of its rows.

    Variants of kernels must not have been folded yet; without variants it is unchanged.
    """
    time = find_metric("time", profile.columns)
    if not profile.variants or time is None or not profile.columns[time].kind.is_number:
        return profile
    if f"{_PREFIX}{FACTS[0]}" in mean_names(profile):
        return profile
    pairs = np.stack([profile.variant_rows, profile.device_rows], axis=1)
    known = (pairs >= 0).all(axis=1)
    if not bool(known.any()):
        return profile
    kinds, places = np.unique(pairs[known], axis=0, return_inverse=True)
    launches = [_launch(profile.variants[v], profile.devices[d]) for v, d in kinds.tolist()]
    column = profile.columns[time]
    weights = np.where(column.known, column.values, 0)
    for name in FACTS:
        values = np.full(len(profile), np.nan)
        values[known] = np.array([getattr(launch, name) for launch in launches])[places.reshape(-1)]
        profile = with_mean(profile, f"{_PREFIX}{name}", values=values, weights=weights)
    return profile


def launch_means(profile: Profile) -> dict[str, Floats]:
    """Return the facts of each row with those below it, NaN where unknown; {} if none has any."""
    known = mean_names(profile)
    return {
        name: mean_values(profile, f"{_PREFIX}{name}", name).values
        for name in FACTS
        if f"{_PREFIX}{name}" in known
    }


def mean_launch(profile: Profile, rows: Sequence[int]) -> Launch:
    """Return the facts of the launches of some rows, weighted by time; NaN where unknown."""
    totals = dict.fromkeys(FACTS, 0.0)
    weights = dict.fromkeys(FACTS, 0.0)
    for row, weight in row_times(profile, rows):
        variant, device = profile.variant(row), profile.device(row)
        if variant is None or device is None:
            continue
        launch = _launch(variant, device)
        for name in FACTS:
            value = getattr(launch, name)
            if math.isfinite(value):
                totals[name] += value * weight
                weights[name] += weight
    return Launch(**{name: totals[name] / weights[name] for name in FACTS if weights[name] > 0})


def row_times(profile: Profile, rows: Sequence[int]) -> Iterator[tuple[int, float]]:
    """Return each of these rows that has a time, with its own time in the unit of the profile."""
    times = own_numbers(profile, "time")
    return ((row, float(times[row])) for row in rows if times[row] > 0)


def _launch(variant: Variant, device: Device) -> Launch:
    blocks = _product(variant.grid)
    threads = _product(variant.block)
    if blocks <= 0 or threads <= 0:
        return Launch()
    if device.num_sms <= 0:
        return Launch(blocks=float(blocks))
    units = float(device.num_sms)
    warps = -(-threads // _WARP)
    held = None
    if device.kind == "CUDA" and device.arch in LIMITS and variant.registers > 0:
        held = resident_blocks(device.arch, warps, (variant.registers, variant.shared_bytes))
    waves = blocks / (units * held) if held else math.nan
    share = occupancy(variant, device) if held else None
    return Launch(
        blocks=float(blocks),
        units=units,
        fill=min(1.0, blocks / units),
        waves=waves,
        tail_loss=min(_rest(waves), _rest(blocks / units)) if held else math.nan,
        occupancy=math.nan if share is None else share,
        registers=float(variant.registers) if variant.registers > 0 else math.nan,
        shared_bytes=float(variant.shared_bytes),
        local_bytes=float(variant.local_bytes) if variant.local_bytes >= 0 else math.nan,
    )


def _rest(parts: float) -> float:
    """Return which part of ``ceil(parts)`` is missing; 0 if there is only one."""
    return 1.0 - parts / math.ceil(parts) if parts > 1 else 0.0


def _product(sizes: tuple[int, int, int]) -> int:
    # A file may claim any size; a float of it must exist.
    x, y, z = sizes
    return min(x * y * z, 2**62)
