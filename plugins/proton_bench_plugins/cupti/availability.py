"""Checks whether the backend can run here, without starting the driver.

Starting it (cuInit) would break children that the target forks later.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from proton_bench.errors import BackendUnavailableError
from proton_bench_plugins.cupti.library import find_candidates

__all__ = ["find_obstacle", "find_reason", "started_in_this_process"]

_DEVICE_NODES = ("nvidia[0-9]*", "dxg")
_HIDDEN = ("", "-1", "NoDevFiles")

_started_in: list[int] = []  # the process in which CUPTI was started, if any


def started_in_this_process() -> None:
    """Note that CUPTI was started in this process, so it cannot work in a fork of it."""
    _started_in[:] = [os.getpid()]


def find_obstacle(device_folder: Path = Path("/dev")) -> str | None:
    """Return why the backend cannot run here and what to do, or None.

    Args:
        device_folder: Folder of device nodes.
    """
    try:
        import proton_bench._native  # noqa: F401
    except ImportError as error:
        return f"the compiled module does not load: {error}"
    if _started_in and _started_in[0] != os.getpid():
        return "this process was forked from one that used CUPTI; start it with spawn or exec"
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in _HIDDEN:
        return "CUDA_VISIBLE_DEVICES hides all NVIDIA GPUs; unset it or name one"
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"no NVIDIA driver: {error}; install it, or pass it into the container"
    return _without_device(device_folder) or _without_library()


def find_reason() -> str:
    """Return in one line which library would be used."""
    candidates = [each for each in find_candidates() if not each[2]]
    path, origin, _ = candidates[0]
    return f"libcupti: {path} ({origin}), unless the process has loaded another"


def _without_device(folder: Path) -> str | None:
    if os.environ.get("PROTON_BENCH_CUPTI_LIB"):
        return None  # named for this run: the driver may be a test double without device nodes
    if any(next(folder.glob(pattern), None) is not None for pattern in _DEVICE_NODES):
        return None
    return "the driver's library is installed, but there is no NVIDIA GPU; check nvidia-smi"


def _without_library() -> str | None:
    try:
        find_candidates()
    except BackendUnavailableError as error:
        return str(error)
    return None
