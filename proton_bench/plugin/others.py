"""Calls hooks that only third-party plugins implement; loads nothing without such plugins."""

from __future__ import annotations

import functools
import os
import sys
from importlib.machinery import PathFinder
from typing import Any

__all__ = [
    "ASKED",
    "ENTRY_POINT_GROUP",
    "ask_others",
    "may_have_others",
    "may_have_plugins",
    "offered_by_others",
]

ENTRY_POINT_GROUP = "proton_bench"
_METADATA = (".dist-info", "egg-info")
_ENTRY_POINTS = "entry_points.txt"


@functools.cache
def may_have_plugins(group: str = ENTRY_POINT_GROUP) -> bool:
    """Return whether a package may have entry points of a group; False is certain.

    Plugins are loaded once per process, so this is checked once too.

    Args:
        group: Name of the group.
    """
    if any(_finds_packages_elsewhere(finder) for finder in sys.meta_path):
        return True
    heading = f"[{group}]".encode()
    return any(_offers(folder or os.curdir, heading) for folder in dict.fromkeys(sys.path))


def _finds_packages_elsewhere(finder: object) -> bool:
    return finder is not PathFinder and hasattr(finder, "find_distributions")


def _offers(folder: str, heading: bytes) -> bool:
    try:
        names = os.listdir(folder)
    except NotADirectoryError:
        return True  # an archive, whose names take longer than the certain check
    except OSError:
        return False
    return any(
        _holds(os.path.join(folder, name, _ENTRY_POINTS), heading)
        for name in names
        if name.lower().endswith(_METADATA)
    )


def _holds(file: str, heading: bytes) -> bool:
    try:
        with open(file, "rb") as stream:
            return heading in stream.read()
    except OSError:
        return False


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
