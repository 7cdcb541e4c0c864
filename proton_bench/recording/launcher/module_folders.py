"""Folders that come first in the target's module search path."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

_PATH = "PYTHONPATH"
_first: list[str] = []


def put_first(folders: Sequence[str]) -> None:
    """Put these folders first in the module search path, whatever the target adds later.

    This includes processes that the target starts.
    """
    _first[:] = folders
    sys.path[:0] = folders
    if folders:
        others = os.environ.get(_PATH)
        os.environ[_PATH] = os.pathsep.join([*folders, *([others] if others else [])])


def put_after_first(folder: str) -> None:
    """Add the target's own folder to the path, right after the first folders."""
    sys.path.insert(len(_first), folder)


class FirstInPytest:
    """Keeps the folders first in pytest, which would put the folders of its test files first.

    Test files are imported with ``--import-mode=importlib``, so that another version in the first
    folders does not replace them; modules beside them come last.
    """

    def pytest_load_initial_conftests(self, early_config: Any) -> None:
        """Act after options are known and before the first test file is imported."""
        _import_by_place(early_config.known_args_namespace)
        sys.path[:] = _first + [each for each in sys.path if each not in _first]
        for each in (str(early_config.rootpath), *early_config.known_args_namespace.file_or_dir):
            path = os.path.abspath(str(each).partition("::")[0])
            _append_root(path if os.path.isdir(path) else os.path.dirname(path))

    def pytest_configure(self, config: Any) -> None:
        """Do the same for imports after options were read again."""
        _import_by_place(config.option)

    def pytest_collect_directory(self, path: Any) -> None:
        """Let test files in this folder import modules beside them."""
        _append_root(str(path))


def pytest_plugins() -> list[object]:
    """Return the plugin for pytest, if there are first folders."""
    return [FirstInPytest()] if _first else []


def _import_by_place(options: Any) -> None:
    if hasattr(options, "importmode"):
        options.importmode = "importlib"


def _append_root(folder: str) -> None:
    """Add the root folder of a test file's module: the first that is not a package."""
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    if folder not in sys.path:
        sys.path.append(folder)
