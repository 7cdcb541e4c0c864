"""Metrics of PC samples whose name in upstream's files is misspelled.

Files of upstream and of ours for its tools hold ``stalled_not_Selected``; everywhere else the
metric is called ``stalled_not_selected``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_UPSTREAM = {"stalled_not_selected": "stalled_not_Selected"}
_OURS = {theirs: ours for ours, theirs in _UPSTREAM.items()}


def upstream_name(name: str) -> str:
    """Return upstream's name of a metric."""
    return _UPSTREAM.get(name, name)


def known_names(cells: Mapping[str, Any], taken: Collection[str] = ()) -> dict[str, Any]:
    """Return the same by our names; a misspelled name beside the right one stays.

    Args:
        cells: Anything by the name of a metric.
        taken: Other names that the file holds.
    """
    names = {*cells, *taken}
    return {
        name if _OURS.get(name, name) in names else _OURS.get(name, name): value
        for name, value in cells.items()
    }
