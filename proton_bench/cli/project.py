"""The project of the current folder, with its store and policy."""

from __future__ import annotations

from pathlib import Path

from proton_bench.errors import UsageError

__all__ = ["default_store", "policy_file", "project_folder"]


def default_store() -> Path:
    """Return the store of the project: ``.proton`` beside its pyproject.toml or .git."""
    from proton_bench.gate.experiment.folders.project import store_of_project

    return store_of_project(_here())


def policy_file() -> Path | None:
    """Return the project's pyproject.toml, or None."""
    from proton_bench.gate.experiment.folders.project import policy_of_project

    return policy_of_project(_here())


def project_folder() -> Path:
    """Return the folder of the project, by default the current one."""
    from proton_bench.gate.experiment.folders.project import project_of

    return project_of(_here())


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise UsageError("the current folder was removed; change to one that exists") from None
