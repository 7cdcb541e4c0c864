"""Small files and commands that would take a lot: kinds of them, by the name of the file."""

from __future__ import annotations

from siege.bombs import (
    compressed,
    counts,
    deep,
    earlier,
    embedded,
    names,
    order,
    patterns,
    references,
    settings,
    sqlite,
    wide,
)
from siege.bombs.kinds import CLASSES, EARLIER, FIRST, KINDS, Kind, nested, siblings, traced

__all__ = ["CLASSES", "EARLIER", "FIRST", "KINDS", "Kind", "nested", "siblings", "traced"]
MODULES = (compressed, counts, deep, earlier, embedded, names, order, patterns, references)
MODULES += (settings, sqlite, wide)
