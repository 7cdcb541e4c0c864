"""Folders that the target's modules are looked for in before all others."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["FirstInPytest", "put_after_first", "put_first", "pytest_plugins"]

_PATH = "PYTHONPATH"
_first: list[str] = []


def put_first(folders: Sequence[str]) -> None:
    """Look for modules in these folders first, whatever the target puts in front later.

    Processes that the target starts do so too.
    """
    _first[:] = folders
    sys.path[:0] = folders
    if folders:
        others = os.environ.get(_PATH)
        os.environ[_PATH] = os.pathsep.join([*folders, *([others] if others else [])])


def put_after_first(folder: str) -> None:
    """Add the target's own folder to the path: in front of all others but those ahead."""
    sys.path.insert(len(_first), folder)


class FirstInPytest:
    """Keeps folders ahead in a pytest that would put those of its test files in front.

    Test files are imported by their place (``--import-mode=importlib``), so that those of another
    version ahead do not stand in for them; what lies beside them is found behind everything else.
    """

    def pytest_load_initial_conftests(self, early_config: Any) -> None:
        """Act once options are known and before the first file of the tests is imported."""
        _import_by_place(early_config.known_args_namespace)
        sys.path[:] = _first + [each for each in sys.path if each not in _first]
        for each in (str(early_config.rootpath), *early_config.known_args_namespace.file_or_dir):
            path = os.path.abspath(str(each).partition("::")[0])
            _append_root(path if os.path.isdir(path) else os.path.dirname(path))

    def pytest_configure(self, config: Any) -> None:
        """Do the same for what is imported after options were read again."""
        _import_by_place(config.option)

    def pytest_collect_directory(self, path: Any) -> None:
        """Let test files in this folder import what lies beside them."""
        _append_root(str(path))


def pytest_plugins() -> list[object]:
    """Return what pytest needs, nothing where no folder is ahead."""
    return [FirstInPytest()] if _first else []


def _import_by_place(options: Any) -> None:
    if hasattr(options, "importmode"):
        options.importmode = "importlib"


def _append_root(folder: str) -> None:
    """Add the folder that a test file's module is named from: the first that is no package."""
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    if folder not in sys.path:
        sys.path.append(folder)
