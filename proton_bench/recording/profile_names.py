"""Names of upstream's submodule ``profile``, whose name is taken here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proton_bench.flags import flags
from proton_bench.mode import BaseMode
from proton_bench.recording.kernels.hooks import Hook, HookManager
from proton_bench.recording.kernels.instrumentation_hook import InstrumentationHook
from proton_bench.recording.session.session import (
    DEFAULT_PROFILE_NAME,
    _select_backend,
    activate,
    deactivate,
    finalize,
    profile,
    start,
)

if TYPE_CHECKING:
    LaunchHook: Any

__all__ = [
    "DEFAULT_PROFILE_NAME",
    "BaseMode",
    "Hook",
    "HookManager",
    "InstrumentationHook",
    "LaunchHook",
    "_select_backend",
    "activate",
    "deactivate",
    "finalize",
    "flags",
    "profile",
    "start",
]


def __getattr__(name: str) -> Any:
    """Look up a plugin's ``LaunchHook`` on first use."""
    if name == "LaunchHook":
        from proton_bench.recording.session.options import launch_hooks

        return launch_hooks()["triton"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
