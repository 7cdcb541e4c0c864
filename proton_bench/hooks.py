"""Launch hooks, under upstream's submodule name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from proton_bench.recording.kernels.hooks import Hook, HookManager, LaunchMetadata

if TYPE_CHECKING:
    import proton_bench.recording.kernels.hooks as hook
    import proton_bench.recording.kernels.instrumentation_hook as instrumentation
    import proton_bench.recording.kernels.launch_variables as launch
    from proton_bench.recording.kernels.instrumentation_hook import InstrumentationHook

    LaunchHook: Any

__all__ = [
    "Hook",
    "HookManager",
    "InstrumentationHook",
    "LaunchHook",
    "LaunchMetadata",
    "hook",
    "instrumentation",
    "launch",
]

_KERNELS = "proton_bench.recording.kernels"
_SUBMODULES = {
    "hook": f"{_KERNELS}.hooks",
    "instrumentation": f"{_KERNELS}.instrumentation_hook",
    "launch": f"{_KERNELS}.launch_variables",
}


def __getattr__(name: str) -> Any:
    """Look up expensive names on first use."""
    if name in _SUBMODULES:
        return importlib.import_module(_SUBMODULES[name])
    if name == "InstrumentationHook":
        return importlib.import_module(_SUBMODULES["instrumentation"]).InstrumentationHook
    if name == "LaunchHook":
        return importlib.import_module(_SUBMODULES["launch"]).LaunchHook
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
