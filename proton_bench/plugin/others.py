"""Asks plugins of other packages what only they answer, and loads none where there are none."""

from __future__ import annotations

import sys
from typing import Any

from proton_bench.plugin.installed import may_have_plugins

__all__ = ["ASKED", "ask_others", "may_have_others", "offered_by_others"]

# Hooks of readers and of the command line. No built-in plugin has them, a test sees to that.
ASKED = (
    "proton_commands",
    "proton_device_peaks",
    "proton_formats",
    "proton_gate_rules",
    "proton_metrics",
)
_MANAGER = "proton_bench.plugin.manager"


def ask_others(hook: str, **arguments: object) -> list[tuple[str, Any]]:
    """Call a hook of `ASKED` of every plugin that may have it.

    Returns:
        (plugin name, result) per plugin that answered something else than None.
    """
    if not may_have_others():
        return []
    from proton_bench.plugin.manager import get_plugin_manager

    return get_plugin_manager().call(hook, **arguments)


def offered_by_others(hook: str) -> dict[Any, Any]:
    """Return what plugins offer by name for a hook of `ASKED`; see `PluginManager.merged`."""
    if not may_have_others():
        return {}
    from proton_bench.plugin.manager import get_plugin_manager

    return get_plugin_manager().merged(hook)


def may_have_others() -> bool:
    """Tell whether there may be plugins of others: installed, or registered in this process."""
    return _MANAGER in sys.modules or may_have_plugins()
