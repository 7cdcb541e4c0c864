"""The only door for plugins: what a backend is, which hooks exist, who implements them.

A plugin package needs three names from here::

    from proton_bench.plugin import Availability, Backend, hookimpl

``hookimpl`` is looked up lazily, so that importing this package does not import pluggy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proton_bench.plugin.backend import (
    Availability,
    Backend,
    Collector,
    Mode,
    ModeSpec,
    SessionFacts,
)
from proton_bench.plugin.finding import Finding, Status

if TYPE_CHECKING:
    from proton_bench.plugin.hookspecs import hookimpl

__all__ = [
    "Availability",
    "Backend",
    "Collector",
    "Finding",
    "Mode",
    "ModeSpec",
    "SessionFacts",
    "Status",
    "hookimpl",
]


def __getattr__(name: str) -> Any:
    """Look up ``hookimpl`` on first use; pluggy is not loaded before that."""
    if name == "hookimpl":
        from proton_bench.plugin.hookspecs import hookimpl

        return hookimpl
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
