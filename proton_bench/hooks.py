"""Launch hooks, under upstream's submodule name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from proton_bench.capture.hooks import Hook, HookManager, LaunchMetadata

if TYPE_CHECKING:
    import proton_bench.capture.hooks as hook
    import proton_bench.capture.instrumentation_hook as instrumentation
    import proton_bench.capture.launch_variables as launch
    from proton_bench.capture.instrumentation_hook import InstrumentationHook

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

_CAPTURE = "proton_bench.capture"
_SUBMODULES = {
    "hook": f"{_CAPTURE}.hooks",
    "instrumentation": f"{_CAPTURE}.instrumentation_hook",
    "launch": f"{_CAPTURE}.launch_variables",
}


def __getattr__(name: str) -> Any:
    """Look up what costs more than a name, on first use."""
    if name in _SUBMODULES:
        return importlib.import_module(_SUBMODULES[name])
    if name == "InstrumentationHook":
        return importlib.import_module(_SUBMODULES["instrumentation"]).InstrumentationHook
    if name == "LaunchHook":
        return importlib.import_module(_SUBMODULES["launch"]).LaunchHook
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
