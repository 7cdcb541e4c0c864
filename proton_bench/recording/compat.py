"""Lets ``triton.profiler`` and its submodules resolve to this package.

A finder on ``sys.meta_path`` resolves every name below ``triton.profiler`` to our module object, so
both names share one state. Upstream's package is never imported.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import Any

UPSTREAM = "triton.profiler"

# Upstream's submodule -> ours; other names do not exist under the alias.
ALIASES = {
    UPSTREAM: "proton_bench",
    f"{UPSTREAM}.context": "proton_bench.context",
    f"{UPSTREAM}.data": "proton_bench.data",
    f"{UPSTREAM}.flags": "proton_bench.flags",
    f"{UPSTREAM}.hooks": "proton_bench.hooks",
    f"{UPSTREAM}.hooks.hook": "proton_bench.recording.kernels.hooks",
    f"{UPSTREAM}.hooks.instrumentation": "proton_bench.recording.kernels.instrumentation_hook",
    f"{UPSTREAM}.hooks.launch": "proton_bench.recording.kernels.launch_variables",
    f"{UPSTREAM}.language": "proton_bench.language",
    f"{UPSTREAM}.metric": "proton_bench.metric",
    f"{UPSTREAM}.mode": "proton_bench.mode",
    f"{UPSTREAM}.profile": "proton_bench.recording.profile_names",
    f"{UPSTREAM}.proton": "proton_bench.proton",
    f"{UPSTREAM}.scope": "proton_bench.scope",
    f"{UPSTREAM}.specs": "proton_bench.specs",
    f"{UPSTREAM}.state": "proton_bench.state",
    f"{UPSTREAM}.viewer": "proton_bench.viewer",
}


class _AliasLoader:
    """Returns a loaded module, and keeps its own spec on it."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = importlib.import_module(self._target)
        self._spec = module.__spec__
        return module

    def get_code(self, name: str) -> types.CodeType | None:
        """Return what ``python -m`` runs."""
        del name
        spec = importlib.util.find_spec(self._target)
        loader: Any = None if spec is None else spec.loader
        code: types.CodeType | None = None if loader is None else loader.get_code(self._target)
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        # The import system has just put the alias' spec on the module that both names share.
        module.__spec__ = self._spec


class CompatFinder:
    """Resolves ``triton.profiler`` and everything below it, and nothing else."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of our module for an upstream name.

        Raises:
            ModuleNotFoundError: The name is below ``triton.profiler`` and has no counterpart;
                without this the search would continue in our folder and load a second copy.
        """
        if fullname != UPSTREAM and not fullname.startswith(f"{UPSTREAM}."):
            return None
        ours = ALIASES.get(fullname)
        if ours is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: proton_bench replaces {UPSTREAM} here "
                "(--no-compat turns this off) and has no such module",
                name=fullname,
            )
        loader: Any = _AliasLoader(ours)  # by duck typing, because importlib.abc loads much else
        has_submodules = any(name.startswith(f"{fullname}.") for name in ALIASES)
        found = importlib.util.find_spec(ours)
        return importlib.machinery.ModuleSpec(
            fullname,
            loader,
            origin=None if found is None else found.origin,
            is_package=has_submodules,
        )


def install() -> None:
    """Resolve ``triton.profiler`` from now on; loaded modules of upstream are removed.

    Importing ``triton.profiler`` then also sets ``triton.profiler`` as attribute, as usual.
    """
    if any(isinstance(finder, CompatFinder) for finder in sys.meta_path):
        return
    _forget()
    sys.meta_path.insert(0, CompatFinder())


def uninstall() -> None:
    """Undo ``install``; later imports of ``triton.profiler`` find upstream's package again."""
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, CompatFinder)]
    _forget()


def is_in_use() -> bool:
    """Whether the program has imported this package by upstream's name."""
    return getattr(sys.modules.get(UPSTREAM), "__name__", "") == ALIASES[UPSTREAM]


def _forget() -> None:
    for name in [*sys.modules]:
        if name == UPSTREAM or name.startswith(f"{UPSTREAM}."):
            del sys.modules[name]
    triton = sys.modules.get("triton")
    if triton is not None:
        triton.__dict__.pop("profiler", None)
