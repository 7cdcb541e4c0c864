"""Where the project is that a command was called in, with its store and its policy."""

from __future__ import annotations

from pathlib import Path

from proton_bench.errors import UsageError

__all__ = ["default_store", "policy_file"]

_STORE = ".proton"
_POLICY = "pyproject.toml"
_MARKS = (_POLICY, ".git")


def default_store() -> Path:
    """Return the store of the project: ``.proton`` beside its pyproject.toml or .git."""
    return _project() / _STORE


def policy_file() -> Path | None:
    """Return the project's pyproject.toml, None where it has none."""
    file = _project() / _POLICY
    return file if file.is_file() else None


def _project() -> Path:
    """Return the nearest folder upwards that is a project, the current one where none is."""
    try:
        here = Path.cwd()
    except OSError:
        raise UsageError("the current folder is gone; change to one that exists") from None
    for folder in (here, *here.parents):
        if any((folder / mark).exists() for mark in _MARKS):
            return folder
    return here
