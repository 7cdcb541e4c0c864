"""Metrics of PC samples whose name in upstream's files is a slip of the pen.

Files of upstream and of ours for its tools hold ``stalled_not_Selected``; everywhere else the
metric is called ``stalled_not_selected``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["known_names", "upstream_name"]

_UPSTREAM = {"stalled_not_selected": "stalled_not_Selected"}
_OURS = {theirs: ours for ours, theirs in _UPSTREAM.items()}


def upstream_name(name: str) -> str:
    """Return what upstream calls a metric."""
    return _UPSTREAM.get(name, name)


def known_names(cells: Mapping[str, Any], taken: Collection[str] = ()) -> dict[str, Any]:
    """Return the same by the names of ours; a slip beside the right name stays what it is.

    Args:
        cells: Anything by the name of a metric.
        taken: Other names that the file holds.
    """
    names = {*cells, *taken}
    return {
        name if _OURS.get(name, name) in names else _OURS.get(name, name): value
        for name, value in cells.items()
    }
