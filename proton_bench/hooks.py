"""Launch hooks, under upstream's submodule name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proton_bench.capture.hooks import Hook, HookManager, LaunchMetadata

if TYPE_CHECKING:
    LaunchHook: Any

__all__ = ["Hook", "HookManager", "LaunchHook", "LaunchMetadata"]


def __getattr__(name: str) -> Any:
    """Look up ``LaunchHook``, which a plugin brings, on first use."""
    if name != "LaunchHook":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from proton_bench.capture.options import launch_hooks

    return launch_hooks()["triton"]
