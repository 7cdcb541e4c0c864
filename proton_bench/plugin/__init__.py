"""The interface for plugins: backends, hooks and their implementations.

A plugin package needs three names from here::

    from proton_bench.plugin import Availability, Backend, hookimpl

They are looked up on first use, because readers only check here whether there are plugins.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proton_bench.plugin.backend import (
        Availability,
        Backend,
        Collector,
        Mode,
        ModeSpec,
        SessionFacts,
    )
    from proton_bench.plugin.hookspecs import hookimpl

__all__ = [
    "Availability",
    "Backend",
    "Collector",
    "Mode",
    "ModeSpec",
    "SessionFacts",
    "hookimpl",
]


_MODULES = {
    **dict.fromkeys(
        ("Availability", "Backend", "Collector", "Mode", "ModeSpec", "SessionFacts"), "backend"
    ),
    "hookimpl": "hookspecs",
}


def __getattr__(name: str) -> Any:
    """Look up a name on first use and keep it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
