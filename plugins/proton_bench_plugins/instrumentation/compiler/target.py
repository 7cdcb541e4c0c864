"""Facts of the device for passes: its shared memory and its architecture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Target", "describe_target"]

# Bytes of shared memory that a program may use, by compute capability and by the beginning of AMD's
# names, for compiles without the device.
_CUDA_SHARED = {
    75: 65536,
    80: 166912,
    86: 101376,
    87: 166912,
    89: 101376,
    90: 232448,
    100: 232448,
    103: 232448,
    110: 232448,
    120: 101376,
    121: 101376,
}
_HIP_SHARED = {"gfx950": 163840, "gfx125": 327680}
_HIP_USUAL = 65536
_CUDA_USUAL = 101376


@dataclass(frozen=True, slots=True)
class Target:
    """A device to compile for.

    Attributes:
        kind: ``cuda`` or ``hip``.
        arch: Compute capability as ``90``, or AMD's name as ``gfx942``.
        max_shared: Bytes of shared memory that a program may use.
    """

    kind: str
    arch: str
    max_shared: int


def describe_target(kind: str, arch: Any) -> Target:
    """Describe the target of a compile, from the device if it is the active one.

    Args:
        kind: ``cuda`` or ``hip``.
        arch: As Triton names it.
    """
    name = str(arch).partition(":")[0]
    return Target(kind, name, _active_max_shared(kind, name) or _usual_max_shared(kind, name))


def _active_max_shared(kind: str, arch: str) -> int | None:
    from triton.runtime import driver

    try:
        target = driver.active.get_current_target()
        if (target.backend, str(target.arch).partition(":")[0]) != (kind, arch):
            return None
        device = driver.active.get_current_device()
        return int(driver.active.utils.get_device_properties(device)["max_shared_mem"])
    except Exception:  # noqa: BLE001 - no driver here: Triton raises whatever its driver meets
        return None


def _usual_max_shared(kind: str, arch: str) -> int:
    if kind == "cuda":
        return _CUDA_SHARED.get(int(arch) if arch.isdigit() else 0, _CUDA_USUAL)
    return next(
        (size for prefix, size in _HIP_SHARED.items() if arch.startswith(prefix)), _HIP_USUAL
    )
