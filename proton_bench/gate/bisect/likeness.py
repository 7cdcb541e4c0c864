"""Whether revisions run the same program: the files that runs loaded, and compiled kernels."""

from __future__ import annotations

import os
from collections.abc import Iterable

from proton_bench.gate.experiment.loaded import LoadedModule
from proton_bench.model.profile import Profile

__all__ = ["Codes", "LoadedFiles", "codes_of"]

# Paths of kernels with the hashes of their code.
Codes = frozenset[tuple[tuple[str, ...], str]]


class LoadedFiles:
    """Files of a repository that runs loaded as modules, the script among them.

    Args:
        root: Top folder of the repository.
    """

    def __init__(self, root: str) -> None:
        self._root = root + os.sep
        self._files: set[str] = set()
        self._places: set[str] = set()

    def add(self, modules: Iterable[LoadedModule]) -> None:
        """Add the modules of a run."""
        for each in modules:
            if each.file.startswith(self._root):
                self._files.add(each.file.removeprefix(self._root))
            elif each.place:  # installed from the repository, perhaps
                self._places.add(each.place)

    def __contains__(self, file: str) -> bool:
        if file in self._files:
            return True
        parts = file.split("/")
        return any("/".join(parts[place:]) in self._places for place in range(len(parts) - 1))


def codes_of(profile: Profile) -> Codes:
    """Return the compiled code of each kernel of a run, as far as known."""
    found = set()
    for row in range(len(profile)):
        variant = profile.variant(row)
        if variant is not None and variant.code_hash:
            found.add((profile.path(row), variant.code_hash))
    return frozenset(found)
