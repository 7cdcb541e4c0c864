"""Checks whether an installed package offers plugins, without `importlib.metadata`.

Most installations have none, and importing that module takes longer than a short command. It is
used only if this check is not sure.
"""

from __future__ import annotations

import functools
import os
import sys
from importlib.machinery import PathFinder

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
