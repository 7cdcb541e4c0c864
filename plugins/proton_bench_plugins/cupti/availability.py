"""Checks whether the backend can run here, without starting the driver.

Starting it (cuInit) would break children that the target forks later.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from proton_bench.errors import BackendUnavailableError
from proton_bench.recording.gpu.nvidia import newest_capability
from proton_bench_plugins.libraries import (
    Candidate,
    candidates_in,
    chosen_text,
    fork_obstacle,
    named_library,
    native_obstacle,
    package_folders,
)

_NAMES = ("libcupti.so.13", "libcupti.so.12", "libcupti.so")
_EXPLICIT = ("PROTON_BENCH_CUPTI_LIB", "TRITON_CUPTI_LIB_PATH")
_FIRST_BLACKWELL = 100  # compute capability times ten
_WHEEL_FOLDERS = ("cu13/lib", "cuda_cupti/lib")
_TOOLKIT_FOLDERS = ("lib64", "extras/CUPTI/lib64")


def find_candidates(
    environ: Mapping[str, str] | None = None, capability: int | None = None
) -> list[Candidate]:
    """Return the candidates in order; one that the user names is the only one.

    Args:
        environ: Environment to read; None is this process's.
        capability: Ten times the compute capability of the newest GPU, 0 for unknown; None
            determines it if needed.

    Raises:
        BackendUnavailableError: A variable names something that does not exist.
    """
    environ = os.environ if environ is None else environ
    for variable in _EXPLICIT:
        if environ.get(variable):
            return [(named_library(variable, environ[variable], _NAMES), variable, False)]
    loaded: list[Candidate] = [(name, "already in the process", True) for name in _NAMES[:2]]
    toolkits = [
        (root / below, "CUDA toolkit")
        for root in toolkit_folders(environ)
        for below in _TOOLKIT_FOLDERS
    ]
    system = [(name, "search of the system", False) for name in _NAMES]
    return [*loaded, *_in_packages(capability), *candidates_in(toolkits, _NAMES), *system]


def toolkit_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the root folders of existing CUDA toolkits."""
    named = [environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    return [path for text in (*named, "/usr/local/cuda") if os.path.isdir(path := Path(text))]


def _is_blackwell(capability: int | None) -> bool:
    return (newest_capability() if capability is None else capability) >= _FIRST_BLACKWELL


def _in_packages(capability: int | None) -> Iterator[Candidate]:
    nvidia = [
        (folder / below, f"wheel nvidia/{below}")
        for folder in package_folders("nvidia")
        for below in _WHEEL_FOLDERS
    ]
    yield from candidates_in(nvidia, _NAMES)
    triton = [
        (folder / "backends" / "nvidia" / "lib" / name, f"wheel triton, {name}")
        for folder in package_folders("triton")
        for name in ("cupti-blackwell", "cupti")
    ]
    for candidate in candidates_in(triton, _NAMES):
        if not candidate[1].endswith("blackwell") or _is_blackwell(capability):
            yield candidate


_DEVICE_NODES = ("nvidia[0-9]*", "dxg")
_HIDDEN = ("", "-1", "NoDevFiles")


def find_obstacle(device_folder: Path = Path("/dev")) -> str | None:
    """Return why the backend cannot run here and what to do, or None.

    Args:
        device_folder: Folder of device nodes.
    """
    if missing := native_obstacle("CuptiCollector") or fork_obstacle():
        return missing
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in _HIDDEN:
        return "CUDA_VISIBLE_DEVICES hides all NVIDIA GPUs; unset it or name one"
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"no NVIDIA driver: {error}; install it, or pass it into the container"
    return _without_device(device_folder) or _without_library()


def find_reason() -> str:
    """Return in one line which library would be used."""
    return f"libcupti: {chosen_text(find_candidates())}"


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
