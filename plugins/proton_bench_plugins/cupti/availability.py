"""Checks whether the backend can run here, without starting the driver.

Starting it (cuInit) would break children that the target forks later.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from proton_bench.errors import BackendUnavailableError
from proton_bench.recording.gpu.nvidia import newest_capability

__all__ = ["find_candidates", "find_obstacle", "find_reason", "started_in_this_process"]

# (file or bare name, why it is on the list, only if the process has loaded it already)
Candidate = tuple[str, str, bool]

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
            return [(_named_file(variable, environ[variable]), variable, False)]
    loaded: list[Candidate] = [(name, "already in the process", True) for name in _NAMES[:2]]
    return [*loaded, *_in_packages(capability), *_in_toolkit(environ), *_for_the_system()]


def toolkit_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the root folders of existing CUDA toolkits."""
    named = [environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    return [path for text in (*named, "/usr/local/cuda") if os.path.isdir(path := Path(text))]


def _named_file(variable: str, value: str) -> str:
    # os.path returns False where Path raises: names too long, no such user, no permission.
    path = Path(os.path.expanduser(value)).absolute()
    if os.path.isdir(path):
        found = _library_in(path)
        if found is None:
            raise BackendUnavailableError(
                f"{variable} names the folder {str(path)!r}, which has none of "
                f"{', '.join(_NAMES)}; name the file, or leave the variable unset"
            )
        return found
    if not os.path.isfile(path):
        raise BackendUnavailableError(
            f"{variable} names {str(path)!r}, which does not exist; name libcupti or its folder, "
            "or leave the variable unset"
        )
    return str(path)


def _is_blackwell(capability: int | None) -> bool:
    return (newest_capability() if capability is None else capability) >= _FIRST_BLACKWELL


def _in_packages(capability: int | None) -> Iterator[Candidate]:
    for folder in _package_folders("nvidia"):
        for below in _WHEEL_FOLDERS:
            found = _library_in(folder / below)
            if found is not None:
                yield found, f"wheel nvidia/{below}", False
    for folder in _package_folders("triton"):
        below_triton = folder / "backends" / "nvidia" / "lib"
        for name in ("cupti-blackwell", "cupti"):
            found = _library_in(below_triton / name)
            is_wanted = name == "cupti" or (found is not None and _is_blackwell(capability))
            if found is not None and is_wanted:
                yield found, f"wheel triton, {name}", False


def _in_toolkit(environ: Mapping[str, str]) -> Iterator[Candidate]:
    for root in toolkit_folders(environ):
        for below in _TOOLKIT_FOLDERS:
            found = _library_in(root / below)
            if found is not None:
                yield found, "CUDA toolkit", False


def _for_the_system() -> Iterator[Candidate]:
    for name in _NAMES:
        yield name, "search of the system", False


def _package_folders(package: str) -> Sequence[Path]:
    """Folders of a package, without importing it."""
    module = sys.modules.get(package)
    if module is not None and getattr(module, "__path__", None):
        return [Path(each) for each in module.__path__]
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [Path(each) for each in spec.submodule_search_locations]


def _library_in(folder: Path) -> str | None:
    for name in _NAMES:
        path = folder / name
        if os.path.isfile(path):
            return str(path)
    return None


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
