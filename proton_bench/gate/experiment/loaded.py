"""Checks, by the files of loaded modules, whether both sides really ran different code.

A change in no loaded file cannot be measured, for instance if both sides imported the same
installed package. The gate then reports that instead of a verdict.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

__all__ = ["Loaded", "LoadedModule", "changed_meanwhile", "loaded_alike", "loads_any"]

# The measuring program: both sides run the current one on purpose.
_TESTS = re.compile(r"(test_.*|.*_test|conftest)\.py")


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """One module that a run loaded.

    Attributes:
        name: As in ``sys.modules``.
        file: Its file, with links resolved.
        sha256: Of its content; "" for one of an installed package.
    """

    name: str
    file: str
    sha256: str

    @property
    def is_script(self) -> bool:
        """Whether it is the script itself, which multiprocessing gives a second name."""
        return self.name in {"__main__", "__mp_main__"}

    @property
    def is_yardstick(self) -> bool:
        """Whether it is the measuring program itself: the script, or a test file."""
        return self.is_script or bool(_TESTS.fullmatch(os.path.basename(self.file)))

    @property
    def place(self) -> str:
        """Its path in its package: ``pkg/core.py``, "" if its name does not say."""
        depth = self.name.count(".") + (os.path.basename(self.file).startswith("__init__."))
        parts = self.file.split(os.sep)[-depth - 1 :]
        return "/".join(parts) if depth else ""


Loaded = Sequence[LoadedModule]


def loaded_alike(base: Loaded, new: Loaded, changed: Iterable[str], *, root: str) -> list[str]:
    """Return the changed files of which both sides loaded the same version.

    Args:
        base: Modules of a run of the base.
        new: Modules of a run of the new side.
        changed: Files that differ between the two versions, from the top folder.
        root: Top folder of the working tree.
    """
    touched = frozenset(changed)
    others = {module.name: module for module in base}
    found = set()
    for module in new:
        other = others.get(module.name)
        source = _source(module, touched, root)
        if other is None or not source or module.is_yardstick:
            continue
        if _hash(other) == _hash(module):
            found.add(source)
    return sorted(found)


def loads_any(modules: Loaded, changed: Iterable[str], *, places: Sequence[str]) -> bool:
    """Return whether any changed file was loaded as a module, the script and tests included.

    Args:
        modules: Modules of a run.
        changed: Files that differ, from the top folder.
        places: Corresponding top folders.
    """
    touched = frozenset(changed)
    return any(_source(module, touched, place) for module in modules for place in places)


def changed_meanwhile(runs: Sequence[Loaded]) -> list[str]:
    """Return the files of one side that differ between its runs."""
    seen: dict[str, str] = {}
    found = set()
    for run in runs:
        for module in run:
            if module.sha256 and seen.setdefault(module.file, module.sha256) != module.sha256:
                found.add(module.file)
    return sorted(found)


def _source(module: LoadedModule, touched: frozenset[str], root: str) -> str:
    """Return the changed file of a module, wherever it was loaded from; "" for none."""
    relative = os.path.relpath(module.file, root)
    if relative in touched:
        return relative
    place = module.place
    if not place:
        return ""
    return next((each for each in sorted(touched) if _ends_with(each, place)), "")


def _ends_with(path: str, place: str) -> bool:
    parts, last = PurePosixPath(path).parts, PurePosixPath(place).parts
    return parts[-len(last) :] == last


def _hash(module: LoadedModule) -> str:
    if module.sha256:
        return module.sha256
    try:
        with open(module.file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return module.file
