"""Finds libraries of vendors in files and packages, without loading them."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from proton_bench.errors import BackendUnavailableError

# (file or bare name, why it is on the list, only if the process has loaded it already)
Candidate = tuple[str, str, bool]


_started_in: list[int] = []  # the process in which a vendor's library was started, if any


def note_start() -> None:
    """Note that a library was started in this process, so it cannot work in a fork of it."""
    _started_in[:] = [os.getpid()]


def fork_obstacle() -> str | None:
    """Return why no library can be started in this process, or None."""
    if _started_in and _started_in[0] != os.getpid():
        return "this process was forked from one that used the GPU; start it with spawn or exec"
    return None


def native_obstacle(name: str) -> str | None:
    """Return why the compiled module has no such class, or None."""
    try:
        from proton_bench import _native
    except ImportError as error:
        return f"the compiled module does not load: {error}"
    if not hasattr(_native, name):
        return "the compiled module is older than this backend: install proton_bench again"
    return None


def named_library(variable: str, value: str, names: Sequence[str]) -> str:
    """Return the library that a variable names, as a file or by its folder.

    Raises:
        BackendUnavailableError: It does not exist.
    """
    # os.path returns False where Path raises: names too long, no such user, no permission.
    path = Path(os.path.expanduser(value)).absolute()
    found = _library_in(path, names) if os.path.isdir(path) else str(path)
    if found is None:
        raise BackendUnavailableError(
            f"{variable} names the folder {str(path)!r}, which has none of {', '.join(names)}; "
            "name the file, or leave the variable unset"
        )
    if not os.path.isfile(found):
        raise BackendUnavailableError(
            f"{variable} names {str(path)!r}, which does not exist; name the library or its "
            "folder, or leave the variable unset"
        )
    return found


def candidates_in(places: Iterable[tuple[Path, str]], names: Sequence[str]) -> Iterator[Candidate]:
    """Yield the library of each folder that has one, with why the folder is on the list."""
    for folder, origin in places:
        found = _library_in(folder, names)
        if found is not None:
            yield found, origin, False


def _library_in(folder: Path, names: Sequence[str]) -> str | None:
    paths = (folder / name for name in names)
    return next((str(path) for path in paths if os.path.isfile(path)), None)


def package_folders(package: str) -> list[Path]:
    """Return the folders of a package, without importing it."""
    module = sys.modules.get(package)
    if module is not None and getattr(module, "__path__", None):
        return [Path(each) for each in module.__path__]
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(each) for each in (spec and spec.submodule_search_locations) or ()]


def chosen_text(candidates: Sequence[Candidate]) -> str:
    """Return in one line which library would be used."""
    path, origin, _ = next(each for each in candidates if not each[2])
    return f"{path} ({origin}), unless the process has loaded another"
