"""Finds out whether there is a GPU driver, without starting it.

Starting one (cuInit, hsa_init) would break children that the target forks later, so this checks
device nodes and whether the driver's library loads.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_HIDDEN = ("", "-1", "NoDevFiles")
# Vendor, the device nodes of its driver, its library, the variables that can hide all devices.
_NVIDIA = ("nvidia[0-9]*", "dxg")
_AMD = ("kfd",)


def find_gpu_driver(device_folder: Path = Path("/dev")) -> str | None:
    """Return "NVIDIA" or "AMD" for a driver with a visible device, else None.

    Args:
        device_folder: Folder of device nodes.
    """
    if (
        _has_node(device_folder, _NVIDIA)
        and not _hidden("CUDA_VISIBLE_DEVICES")
        and _loads("libcuda.so.1")
    ):
        return "NVIDIA"
    if (
        _has_node(device_folder, _AMD)
        and not (_hidden("HIP_VISIBLE_DEVICES") or _hidden("ROCR_VISIBLE_DEVICES"))
        and _loads("libamdhip64.so")
    ):
        return "AMD"
    return None


def _has_node(folder: Path, patterns: tuple[str, ...]) -> bool:
    return any(next(folder.glob(pattern), None) is not None for pattern in patterns)


def _hidden(variable: str) -> bool:
    return os.environ.get(variable, "all").strip() in _HIDDEN


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
