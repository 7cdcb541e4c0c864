"""Theoretical occupancy of kernels from their launches and the limits of their device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.values import with_mean
from proton_bench.errors import MetricError
from proton_bench.model.device import Device, Variant
from proton_bench.model.profile import Profile

OCCUPANCY = "occupancy"

_WARP = 32
_REGISTERS = 65536
# Registers are given to warps in parts of 256, and warps to the four schedulers in turn.
_REGISTER_UNIT = 256
_SCHEDULERS = 4


@dataclass(frozen=True, slots=True)
class MultiprocessorLimits:
    """Limits of one multiprocessor.

    Attributes:
        warps: Resident warps.
        blocks: Resident blocks.
        shared_kib: Shared memory in KiB.
        reserved_bytes: Shared memory that the system reserves per block.
        shared_unit: Allocation unit of shared memory in bytes.
    """

    warps: int
    blocks: int
    shared_kib: int
    reserved_bytes: int = 1024
    shared_unit: int = 128


# Blocks, shared memory and its unit are those of cuda_occupancy.h of CUDA 13.0, whose results this
# module gives. It asks the device for its warps: they are on docs.rs/oxicuda-driver (struct
# DeviceOccupancyInfo) and docs.rs/oxicuda-launch (enum SmVersion), but not checked for 8.7, 10.1,
# 10.3, 11.0 and 12.1. All have 64 Ki registers of 32 bits and warps of 32 threads.
LIMITS: Mapping[str, MultiprocessorLimits] = {
    "75": MultiprocessorLimits(32, 16, 64, 0, 256),
    "80": MultiprocessorLimits(64, 32, 164),
    "86": MultiprocessorLimits(48, 16, 100),
    "87": MultiprocessorLimits(48, 16, 164),
    "89": MultiprocessorLimits(48, 24, 100),
    "90": MultiprocessorLimits(64, 32, 228),
    "100": MultiprocessorLimits(64, 32, 228),
    "101": MultiprocessorLimits(48, 24, 228),
    "103": MultiprocessorLimits(64, 32, 228),
    "110": MultiprocessorLimits(48, 24, 228),
    "120": MultiprocessorLimits(48, 24, 100),
    "121": MultiprocessorLimits(48, 24, 100),
}


def occupancy(variant: Variant, device: Device) -> float | None:
    """Return resident warps / warps that a multiprocessor can hold, from 0 to 1.

    A grid with fewer blocks than the device holds lowers it: it is the mean over multiprocessors.

    Returns:
        None if the device's limits or the launch are unknown.
    """
    limits = LIMITS.get(device.arch) if device.kind == "CUDA" else None
    threads = int(np.prod(variant.block, dtype=object))
    grid = int(np.prod(variant.grid, dtype=object))
    if limits is None or threads <= 0 or grid <= 0:
        return None
    warps = -(-threads // _WARP)
    blocks: float = _resident(limits, warps, (variant.registers, variant.shared_bytes))
    if device.num_sms > 0:
        blocks = min(blocks, grid / device.num_sms)
    return blocks * warps / limits.warps


def resident_blocks(arch: str, warps: int, needs: tuple[int, int]) -> int | None:
    """Return how many blocks of a kernel a multiprocessor holds, None if unknown.

    Args:
        arch: Compute capability, e.g. ``90``.
        warps: Warps of a block.
        needs: Registers of a thread, and bytes of shared memory of a block.
    """
    limits = LIMITS.get(arch)
    return None if limits is None or warps <= 0 else _resident(limits, warps, needs)


def _resident(limits: MultiprocessorLimits, warps: int, needs: tuple[int, int]) -> int:
    registers, shared_bytes = needs
    return min(
        limits.blocks,
        limits.warps // warps,
        _blocks_by_registers(registers, warps, limits),
        _blocks_by_shared(shared_bytes, limits),
    )


def _blocks_by_registers(registers: int, warps: int, limits: MultiprocessorLimits) -> int:
    if registers <= 0:
        return limits.blocks
    of_warp = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    resident = _REGISTERS // of_warp // _SCHEDULERS * _SCHEDULERS
    return resident // warps


def _blocks_by_shared(shared_bytes: int, limits: MultiprocessorLimits) -> int:
    wanted = shared_bytes + limits.reserved_bytes
    of_block = -(-wanted // limits.shared_unit) * limits.shared_unit
    return limits.shared_kib * 1024 // of_block if of_block else limits.blocks


def with_occupancy(profile: Profile) -> Profile:
    """Return the profile with a mean ``occupancy``, each launch weighted by its time.

    Variants of kernels must not have been folded yet.

    Raises:
        MetricError: The profile has no launches, or no device's limits are known.
    """
    time = find_metric("time", profile.columns)
    if not profile.variants or time is None or not profile.columns[time].kind.is_number:
        raise MetricError(
            "metric 'occupancy' needs grid, block, registers and time of kernels, which only "
            ".proton files of backend cupti have"
        )
    by_launch: dict[tuple[int, int], float] = {}
    pairs = np.stack([profile.variant_rows, profile.device_rows], axis=1)
    values = np.full(len(profile), np.nan)
    for row in np.flatnonzero((pairs >= 0).all(axis=1)).tolist():
        key = (int(pairs[row, 0]), int(pairs[row, 1]))
        if key not in by_launch:
            found = occupancy(profile.variants[key[0]], profile.devices[key[1]])
            by_launch[key] = np.nan if found is None else found
        values[row] = by_launch[key]
    if not bool(np.isfinite(values).any()):
        devices = ", ".join(f"{d.kind} {d.arch}".strip() for d in profile.devices) or "no device"
        raise MetricError(
            f"metric 'occupancy' needs the limits of a multiprocessor, which are known for CUDA "
            f"{', '.join(LIMITS)}; the profile has: {devices}"
        )
    column = profile.columns[time]
    weights = np.where(column.known, column.values, 0)
    return with_mean(profile, OCCUPANCY, values=values, weights=weights)
