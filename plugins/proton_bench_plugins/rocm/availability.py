"""Checks whether a backend of AMD GPUs can run here, without starting HIP or ROCr.

Starting them would break children that the target forks later, and would be too early for
rocprofiler-sdk, which must be registered before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proton_bench.errors import BackendUnavailableError
from proton_bench_plugins.libraries import (
    Candidate,
    candidates_in,
    chosen_text,
    fork_obstacle,
    named_library,
    native_obstacle,
    package_folders,
)

# Wheels of torch bring their own ROCm; those of TheRock have only ROCm.
_PACKAGES = ("torch", "_rocm_sdk_core", "_rocm_sdk_devel", "rocm_sdk")
_ROOT = "ROCM_PATH"
_DEFAULT_ROOT = "/opt/rocm"


@dataclass(frozen=True, slots=True)
class RocmLibrary:
    """A library of ROCm.

    Attributes:
        names: Its file names, the newest first.
        variable: Variable that names it or its folder.
    """

    names: tuple[str, ...]
    variable: str

    def find_candidates(self, environ: Mapping[str, str] | None = None) -> list[Candidate]:
        """Return the candidates in order; one that the user names is the only one.

        Args:
            environ: Environment to read; None is this process's.

        Raises:
            BackendUnavailableError: A variable names something that does not exist.
        """
        environ = os.environ if environ is None else environ
        if environ.get(self.variable):
            named = named_library(self.variable, environ[self.variable], self.names)
            return [(named, self.variable, False)]
        loaded: list[Candidate] = [(name, "already in the process", True) for name in self.names]
        system = [(name, "search of the system", False) for name in self.names]
        places = [
            (folder / "lib", f"wheel {package}")
            for package in _PACKAGES
            for folder in package_folders(package)
        ]
        if environ.get(_ROOT):
            places.append((Path(environ[_ROOT]) / "lib", _ROOT))
        places.append((Path(_DEFAULT_ROOT) / "lib", _DEFAULT_ROOT))
        return [*loaded, *candidates_in(places, self.names), *system]

    def find_file(self, environ: Mapping[str, str] | None = None) -> str | None:
        """Return the first candidate that is a file, None if only the system's search is left.

        Args:
            environ: Environment to read; None is this process's.

        Raises:
            BackendUnavailableError: A variable names something that does not exist.
        """
        paths = (path for path, _, loaded in self.find_candidates(environ) if not loaded)
        return next((path for path in paths if os.path.sep in path), None)


ROCPROFILER = RocmLibrary(
    ("librocprofiler-sdk.so.1", "librocprofiler-sdk.so"),
    "PROTON_BENCH_ROCPROFILER_LIB",
)
ROCTRACER = RocmLibrary(
    ("libroctracer64.so.4", "libroctracer64.so"),
    "PROTON_BENCH_ROCTRACER_LIB",
)
HIP = RocmLibrary(
    ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"),
    "PROTON_BENCH_HIP_LIB",
)
HSA = RocmLibrary(
    ("libhsa-runtime64.so.1", "libhsa-runtime64.so"),
    "PROTON_BENCH_HSA_LIB",
)
ROCTX = RocmLibrary(
    ("libroctx64.so.4", "libroctx64.so"),
    "PROTON_BENCH_ROCTX_LIB",
)


_HIDDEN = ("", "-1")
_DEVICE_NODE = "kfd"
_LOADER_CACHE = Path("/etc/ld.so.cache")
_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


def find_obstacle(
    library: RocmLibrary, collector: str, device_folder: Path = Path("/dev")
) -> str | None:
    """Return why a backend cannot run here and what to do, or None.

    Args:
        library: The profiler's library that it needs.
        collector: Class of the compiled module that it needs.
        device_folder: Folder of device nodes.
    """
    if missing := native_obstacle(collector) or fork_obstacle():
        return missing
    hiding = _hiding_variable()
    if hiding is not None:
        return f"{hiding} hides all AMD GPUs; unset it or name one"
    try:
        return _without_library(library) or _without_device(library, device_folder)
    except BackendUnavailableError as error:
        return str(error)


def find_reason(library: RocmLibrary) -> str:
    """Return in one line which library would be used.

    Args:
        library: The profiler's library.
    """
    return chosen_text(library.find_candidates())


def _hiding_variable() -> str | None:
    if _hides_all(os.environ.get("ROCR_VISIBLE_DEVICES", "all")):
        return "ROCR_VISIBLE_DEVICES"
    # HIP treats an empty value as unset, and uses CUDA's variable if its own is not set.
    for variable in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        if value := os.environ.get(variable):
            return variable if _hides_all(value) else None
    return None


def _hides_all(value: str) -> bool:
    return value.split(",")[0].strip() in _HIDDEN  # the first invalid word ends the list


def _without_library(library: RocmLibrary) -> str | None:
    for needed in (HIP, library):
        name = needed.names[-1]
        found = needed.find_file()
        if found is None and not _is_known_to_the_system(needed):
            return f"no {name}: install ROCm, or name it with {needed.variable}"
        if found is not None and f"{name}.0" in os.path.basename(os.path.realpath(found)):
            return (  # else it would be the default, and fail at the start
                f"{found} is a preview before version 1: install a later ROCm, name another with "
                f"{needed.variable}, or use another backend"
            )
    return None


def _is_known_to_the_system(library: RocmLibrary) -> bool:
    if os.environ.get(library.variable):
        return True  # a bare name
    # As dlopen searches. ctypes.util.find_library starts ldconfig, gcc and ld, which takes 10 ms.
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *_DEFAULT_FOLDERS]
    paths = (os.path.join(folder, name) for folder in folders if folder for name in library.names)
    return any(map(os.path.exists, paths)) or _is_in_loader_cache(library.names)


def _is_in_loader_cache(names: Sequence[str]) -> bool:
    """Whether glibc's loader has a library in its cache, by the end of a path or by a name."""
    try:
        cache = _LOADER_CACHE.read_bytes()
    except OSError:
        return False
    return any(
        before + name.encode() + b"\0" in cache for name in names for before in (b"/", b"\0")
    )


def _without_device(library: RocmLibrary, folder: Path) -> str | None:
    if os.environ.get(library.variable):
        return None  # named for this run: it may be a test double without device nodes
    if (folder / _DEVICE_NODE).exists():
        return None
    return "ROCm is installed, but there is no AMD GPU (/dev/kfd is missing); check rocminfo"
