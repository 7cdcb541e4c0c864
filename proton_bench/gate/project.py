"""Finds the baselines and the policy of a project, upwards from a folder."""

from __future__ import annotations

import os
from pathlib import Path

from proton_bench.support.text import visible

_STORE = ".proton"
_POLICY = "pyproject.toml"
_MARKS = (_POLICY, ".git")


def store_of_project(folder: Path) -> Path:
    """Return the store of the project around a folder: beside its pyproject.toml or .git."""
    return project_of(folder) / _STORE


def policy_of_project(folder: Path) -> Path | None:
    """Return the pyproject.toml of the project around a folder, or None."""
    file = project_of(folder) / _POLICY
    return file if file.is_file() else None


def project_of(folder: Path) -> Path:
    """Return the nearest folder upwards that is a project, by default the folder itself."""
    for each in (folder, *folder.parents):
        if any((each / mark).exists() for mark in _MARKS):
            return each
    return folder


def shown(path: Path) -> str:
    """Return a path relative to the current folder, if that is shorter."""
    return visible(min(os.path.relpath(path), str(path), key=len))
