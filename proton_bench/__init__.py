"""proton_bench: a call-path profiler, its viewer, and the gate that compares two runs.

Importing this package loads nothing but the errors; every other name is looked up on first use.

The next word keeps pytest from warning that it came too late to rewrite asserts, of which this
package has none: PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import _thread
import importlib
import os
import sys
import types
from typing import Any

from proton_bench import errors
from proton_bench.support import provided

__all__ = [
    "DEFAULT_PROFILE_NAME",
    "Profile",
    "__version__",
    "activate",
    "bench",
    "context",
    "cpu_timed_scope",
    "data",
    "deactivate",
    "enter_scope",
    "enter_state",
    "errors",
    "exit_scope",
    "exit_state",
    "finalize",
    "flags",
    "hooks",
    "language",
    "last",
    "metadata_state",
    "metric",
    "mode",
    "open_profile",
    "profile",
    "profiled",
    "schedule",
    "scope",
    "specs",
    "start",
    "state",
    "step",
    "viewer",
]

_SCOPE = "proton_bench.recording.context.scope"
_BLOCK = "proton_bench.recording.profiled"
_SESSION = "proton_bench.recording.session.session"
_STATE = "proton_bench.recording.context.state"

# Public name -> (module, name there).
_NAMES = {
    "DEFAULT_PROFILE_NAME": (_SESSION, "DEFAULT_PROFILE_NAME"),
    "Profile": ("proton_bench.model.profile", "Profile"),
    "activate": (_SESSION, "activate"),
    "bench": ("proton_bench.rounds.bench", "bench"),
    "cpu_timed_scope": (_SCOPE, "cpu_timed_scope"),
    "deactivate": (_SESSION, "deactivate"),
    "enter_scope": (_SCOPE, "enter_scope"),
    "enter_state": (_STATE, "enter_state"),
    "exit_scope": (_SCOPE, "exit_scope"),
    "exit_state": (_STATE, "exit_state"),
    "finalize": (_SESSION, "finalize"),
    "metadata_state": (_STATE, "metadata_state"),
    "open_profile": ("proton_bench.formats.registry", "read_profile"),
    "last": (_BLOCK, "last"),
    "profile": (_SESSION, "profile"),
    "profiled": (_BLOCK, "profiled"),
    "schedule": ("proton_bench.recording.session.windows", "schedule"),
    "scope": (_SCOPE, "scope"),
    "start": (_SESSION, "start"),
    "state": (_STATE, "state"),
    "step": ("proton_bench.recording.session.steps", "step"),
}
# Methods of `Profile`, and what a recording prints at its end: name -> (module, function).
for _name, _provided in {
    "fold_below": ("proton_bench.model.regroup", "fold_below"),
    "fold_variants": ("proton_bench.model.regroup", "fold_variants"),
    "merge": ("proton_bench.model.merge", "merge"),
    "summary": ("proton_bench.report.text.summary", "summary_lines"),
    "to_hatchet": ("proton_bench.analysis.view.dataframe", "to_graphframe"),
    "to_html": ("proton_bench.report.html.document", "profile_html"),
    "to_pandas": ("proton_bench.analysis.view.dataframe", "to_dataframe"),
    "to_thicket": ("proton_bench.analysis.view.dataframe", "to_thicket"),
}.items():
    provided.provide(_name, *_provided)

_SUBMODULES = ("context", "data", "flags", "hooks", "language", "metric", "mode", "specs", "viewer")
# Functions and classes of the public API with the name of a submodule.
_SHADOWED = frozenset({"scope", "state"})


class _Package(types.ModuleType):
    """Keeps ``proton_bench.scope`` the class after the submodule ``scope`` was imported.

    The import system sets every imported submodule as an attribute of its package. For names in
    ``_SHADOWED`` the class wins; ``from proton_bench.scope import ...`` works all the same.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name in _SHADOWED and isinstance(value, types.ModuleType):
            return
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by name, as cloudpickle does only for plain modules."""
        return importlib.import_module, (self.__name__,)


# A child forked during an import would wait forever for the thread that imports.
_lookup = _thread.RLock()
_MOST_WAIT_S = 1.0


def _let_child_look_up() -> None:
    global _lookup
    _lookup = _thread.RLock()


def _go_on() -> None:
    if _lookup._is_owned():  # type: ignore[attr-defined]
        _lookup.release()


os.register_at_fork(
    before=lambda: _lookup.acquire(timeout=_MOST_WAIT_S),
    after_in_parent=_go_on,
    after_in_child=_let_child_look_up,
)


def __getattr__(name: str) -> Any:
    """Look up a public name on first use and keep it."""
    with _lookup:
        return _looked_up(name)


def _looked_up(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("proton-bench")
    elif name in _NAMES:
        module, attribute = _NAMES[name]
        value = getattr(importlib.import_module(module), attribute)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magic ``%%proton`` to a notebook; called by ``%load_ext proton_bench``."""
    importlib.import_module("proton_bench.cli.notebook").add_magic(shell)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


sys.modules[__name__].__class__ = _Package
