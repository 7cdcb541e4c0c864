"""Finds kernels that an autotuner ran in different configurations."""

from __future__ import annotations

from collections.abc import Iterable

from proton_bench.analysis.run import Run
from proton_bench.analysis.view.names import with_stable_names
from proton_bench.analysis.view.select import drop_trials
from proton_bench.model.profile import Profile

__all__ = ["flipped_paths"]

Path = tuple[str, ...]


def flipped_paths(runs: Iterable[Run]) -> dict[Path, tuple[str, ...]]:
    """Return the paths whose configurations differ between runs, with the configurations."""
    seen: dict[Path, set[frozenset[str]]] = {}
    for run in runs:
        for path, configs in _configs(run.profile).items():
            seen.setdefault(path, set()).add(frozenset(configs))
    return {
        path: tuple(sorted(frozenset().union(*choices)))
        for path, choices in seen.items()
        if len(choices) > 1
    }


def _configs(profile: Profile) -> dict[Path, set[str]]:
    shown = with_stable_names(drop_trials(profile))
    found: dict[Path, set[str]] = {}
    for row in range(len(shown)):
        variant = shown.variant(row)
        if variant is not None and variant.config:
            found.setdefault(shown.path(row), set()).add(variant.config)
    return found
