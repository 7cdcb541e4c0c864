"""Candidates for ROCm's libraries: named by the user, loaded in the process, or in packages."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from proton_bench.errors import BackendUnavailableError

__all__ = ["HIP", "HSA", "ROCPROFILER", "ROCTRACER", "ROCTX", "Candidate", "RocmLibrary"]

# (file or bare name, why it is on the list, only if the process has loaded it already)
Candidate = tuple[str, str, bool]

# Wheels of torch bring their own ROCm; those of TheRock have only ROCm.
_PACKAGE_FOLDERS = (
    ("torch", "lib"),
    ("_rocm_sdk_core", "lib"),
    ("_rocm_sdk_devel", "lib"),
    ("rocm_sdk", "lib"),
)
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
            return [(self._named_file(environ[self.variable]), self.variable, False)]
        loaded: list[Candidate] = [(name, "already in the process", True) for name in self.names]
        system = [(name, "search of the system", False) for name in self.names]
        return [*loaded, *self._in_packages(), *self._in_roots(environ), *system]

    def find_file(self, environ: Mapping[str, str] | None = None) -> str | None:
        """Return the first candidate that is a file, None if only the system's search is left.

        Args:
            environ: Environment to read; None is this process's.

        Raises:
            BackendUnavailableError: A variable names something that does not exist.
        """
        paths = (path for path, _, loaded in self.find_candidates(environ) if not loaded)
        return next((path for path in paths if os.path.sep in path), None)

    def _named_file(self, value: str) -> str:
        # os.path returns False where Path raises: names too long, no such user, no permission.
        path = Path(os.path.expanduser(value)).absolute()
        found = self._library_in(path) if os.path.isdir(path) else str(path)
        if found is None:
            raise BackendUnavailableError(
                f"{self.variable} names the folder {str(path)!r}, which has none of "
                f"{', '.join(self.names)}; name the file, or leave the variable unset"
            )
        if not os.path.isfile(found):
            raise BackendUnavailableError(
                f"{self.variable} names {str(path)!r}, which does not exist; name the library or "
                "its folder, or leave the variable unset"
            )
        return found

    def _in_packages(self) -> Iterator[Candidate]:
        for package, below in _PACKAGE_FOLDERS:
            for folder in _package_folders(package):
                found = self._library_in(folder / below)
                if found is not None:
                    yield found, f"wheel {package}", False

    def _in_roots(self, environ: Mapping[str, str]) -> Iterator[Candidate]:
        named = [(environ[_ROOT], _ROOT)] if environ.get(_ROOT) else []
        for root, origin in (*named, (_DEFAULT_ROOT, _DEFAULT_ROOT)):
            found = self._library_in(Path(root) / "lib")
            if found is not None:
                yield found, origin, False

    def _library_in(self, folder: Path) -> str | None:
        paths = (folder / name for name in self.names)
        return next((str(path) for path in paths if os.path.isfile(path)), None)


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


def _package_folders(package: str) -> list[Path]:
    """Folders of a package, without importing it."""
    module = sys.modules.get(package)
    if module is not None and getattr(module, "__path__", None):
        return [Path(each) for each in module.__path__]
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(each) for each in (spec and spec.submodule_search_locations) or ()]
