"""Calls hooks that only third-party plugins implement; loads nothing without such plugins."""

from __future__ import annotations

import sys
from typing import Any

from proton_bench.plugin.installed import may_have_plugins

# Hooks of readers and of the command line. A test checks that no built-in plugin has them.
ASKED = (
    "proton_commands",
    "proton_device_peaks",
    "proton_formats",
    "proton_metrics",
)
_MANAGER = "proton_bench.plugin.manager"


def ask_others(hook: str, **arguments: object) -> list[tuple[str, Any]]:
    """Call a hook of `ASKED` in every plugin that may have it.

    Returns:
        (plugin name, result) of each result except None.
    """
    if not may_have_others():
        return []
    from proton_bench.plugin.manager import get_plugin_manager

    return get_plugin_manager().call(hook, **arguments)


def offered_by_others(hook: str) -> dict[Any, Any]:
    """Return the offers of plugins for a hook of `ASKED`; see `PluginManager.merged`."""
    if not may_have_others():
        return {}
    from proton_bench.plugin.manager import get_plugin_manager

    return get_plugin_manager().merged(hook)


def may_have_others() -> bool:
    """Return whether there may be third-party plugins: installed, or registered in this process."""
    return _MANAGER in sys.modules or may_have_plugins()


def register_plugin_formats() -> None:
    """Make the file formats of plugins known."""
    if may_have_others():
        from proton_bench.plugin.manager import get_plugin_manager

        get_plugin_manager().register_formats()
