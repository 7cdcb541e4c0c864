"""Folders that the target's modules are looked for in before all others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["AheadInPytest", "put_ahead", "put_behind_ahead", "pytest_plugins"]

_ahead: list[str] = []


def put_ahead(folders: Sequence[str]) -> None:
    """Look for modules in these folders first, whatever the target puts in front later."""
    _ahead[:] = folders
    sys.path[:0] = folders


def put_behind_ahead(folder: str) -> None:
    """Add the target's own folder to the path: in front of all others but those ahead."""
    sys.path.insert(len(_ahead), folder)


class AheadInPytest:
    """Keeps folders ahead in a pytest that would put those of its test files in front.

    ``--import-mode=append`` is what pytest has for tests of a package that lies elsewhere.
    """

    def pytest_load_initial_conftests(self, early_config: Any) -> None:
        """Act once options are known and before the first file of the tests is imported."""
        _append_instead(early_config.known_args_namespace)
        sys.path[:] = _ahead + [each for each in sys.path if each not in _ahead]

    def pytest_configure(self, config: Any) -> None:
        """Do the same for what is imported after options were read again."""
        _append_instead(config.option)


def _append_instead(options: Any) -> None:
    if getattr(options, "importmode", "") == "prepend":
        options.importmode = "append"


def pytest_plugins() -> list[object]:
    """Return what pytest needs, nothing where no folder is ahead."""
    return [AheadInPytest()] if _ahead else []
