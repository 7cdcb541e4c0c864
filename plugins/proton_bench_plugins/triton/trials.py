"""Keeps the autotuner's trial launches apart from the launches that the program asked for."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from proton_bench import _native
from proton_bench_plugins.cpu.patch import Patch

__all__ = ["AUTOTUNE_STATE", "mark_trials"]

AUTOTUNE_STATE = "<autotune>"


def mark_trials(module: ModuleType) -> Patch:
    """Put the autotuner's trial launches under the state ``<autotune>``.

    Args:
        module: ``triton.runtime.autotuner``.
    """
    return Patch(module.Autotuner, "_bench", _trial)


def _trial(original: Any, *args: Any, **kwargs: Any) -> Any:
    _native.enter_state(AUTOTUNE_STATE)
    try:
        return original(*args, **kwargs)
    finally:
        _native.exit_state()
