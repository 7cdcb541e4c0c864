"""`.folded`: a line per call path with its weight, for flamegraph.pl and others; only written."""

from __future__ import annotations

import re

import numpy as np

from proton_bench.formats.base import WriteOnly
from proton_bench.formats.export.flame_rows import (
    MAX_DEPTH,
    depth_note,
    flame_frame,
    flame_losses,
    flame_metrics,
    flame_rows,
    main_metric,
    rounded_note,
    shallow,
    whole_numbers,
)
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible_lines

__all__ = ["FoldedStacks"]

_BYTES_OF_ROW, _LEAST_BYTES = 1 << 11, 1 << 25
_SEPARATORS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


class FoldedStacks(WriteOnly):
    """Brendan Gregg's collapsed stacks: ``a;b;c 123``."""

    name = "folded"
    suffixes = (".folded",)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        metric = main_metric(profile)
        notes = [
            *flame_losses(profile, [metric]),
            *rounded_note(profile, [metric]),
            *depth_note(profile, _most_depth(flame_rows(profile))),
        ]
        if any(_changed(text) != text for text in profile.strings):
            notes.append("';' in names became ':', and line breaks became spaces")
        return tuple(notes)

    def encode(self, profile: Profile) -> bytes:
        """Return a line for each row with its own value."""
        rows = flame_rows(profile)
        rows = shallow(rows, _most_depth(rows))
        metric = main_metric(rows)
        weights = next(
            whole_numbers(column, own).tolist()
            for column, own in flame_metrics(rows)
            if column.spec.name == metric
        )
        parents, lines = rows.parents.tolist(), []
        path: list[str] = []
        for row, depth in enumerate(rows.depths().tolist()):
            del path[depth:]
            path.append(_changed(_shown(rows, row)))
            if weights[row] > 0:
                # Flame graphs draw a root of their own.
                stack = path[1:] if parents[row] >= 0 else path
                lines.append(f"{';'.join(stack)} {weights[row]}\n")
        return visible_lines("".join(lines)).encode()


def _most_depth(profile: Profile) -> int:
    """Return the depth of the written tree: less if long names would make the file too large."""
    sizes = np.array([len(text) for text in profile.strings], dtype=np.int64)[profile.frames]
    depths, parents = profile.depths(), profile.parents
    found = MAX_DEPTH
    if int(sizes.max()) * min(int(depths.max()), found) <= _BYTES_OF_ROW:
        return found
    lengths = sizes.tolist()
    for row, parent in enumerate(parents[1:].tolist(), start=1):
        lengths[row] += lengths[parent]
    total, most = np.array(lengths), _LEAST_BYTES + _BYTES_OF_ROW * len(profile)
    while found > 1 and int(total[depths <= found].sum()) > most:
        found //= 2
    return found


def _shown(rows: Profile, row: int) -> str:
    frame = flame_frame(rows, row)
    return rows.name(row) if frame.file else frame.name


def _changed(name: str) -> str:
    return _SEPARATORS.sub(" ", name.replace(";", ":")) or "<no name>"
