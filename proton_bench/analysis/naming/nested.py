"""Rows folded into the row above: recursion, code that libraries make, and imports.

All imports are one row below ``<not recorded>``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.accounting.host_time import import_rows
from proton_bench.analysis.naming.frame_names import Places, PythonFrame, parse_frame
from proton_bench.model.frame import FrameKind, StringTable
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import Stack, number_paths, regroup, row_labels

__all__ = ["IMPORTS_NAME", "fold_nested"]

IMPORTS_NAME = "<imports>"
_MADE = "<"  # such as <string>, and unlike <frozen os>
_FROZEN = "<frozen "
_RECURSIVE = (FrameKind.PYTHON, FrameKind.SCOPE, FrameKind.LAYER, FrameKind.OP)

Rows = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


def fold_nested(profile: Profile, *, counted: bool = True) -> Profile:
    """Return the profile with recursion, code made by libraries, and imports folded.

    Inclusive values of all other rows are what they were.

    Args:
        profile: The profile.
        counted: Whether the name of a recursive row says for how many levels it stands.
    """
    if not len(profile) > 2:
        return profile
    frames = [parse_frame(text) for text in profile.strings]
    parents = profile.parents.copy()
    names = profile.frames.copy()
    table = StringTable()
    for text in profile.strings:
        table.index(text)
    imports = import_rows(profile)
    tops = imports & ~imports[np.maximum(parents, 0)] & (profile.kinds == FrameKind.PYTHON)
    if bool(tops.any()):
        parents[tops] = _top_rows(profile)[tops]
        names[tops] = table.index(IMPORTS_NAME)
    inner = imports & imports[np.maximum(parents, 0)]
    recursive = _is_recursive(profile) & ~imports
    gone = inner | recursive | (_is_made(profile, frames) & ~imports)
    if not bool((gone | imports).any()):
        return profile
    owners = _owners(parents, gone)
    if counted:
        _name_levels(profile, recursive, owners, names=names, table=table)
    return _regrouped(profile, parents, owners, names=names, strings=table.texts())


def _top_rows(profile: Profile) -> Rows:
    """Return for each row its ancestor right below the root."""
    found = np.zeros(len(profile), dtype=np.int32)
    tops = np.flatnonzero(profile.parents == 0)
    found[tops] = tops
    return np.maximum.accumulate(found)


def _is_recursive(profile: Profile) -> Mask:
    above = np.maximum(profile.parents, 0)
    same = (profile.frames == profile.frames[above]) & (profile.kinds == profile.kinds[above])
    found: Mask = same & np.isin(profile.kinds, _RECURSIVE)
    found[0] = False
    return found


def _is_made(profile: Profile, frames: list[PythonFrame | None]) -> Mask:
    """Mark frames of code that a library made and ran, such as methods of a dataclass."""
    places = Places.of(profile.provenance)
    made, of_library = (np.zeros(len(frames), dtype=np.bool_) for _ in range(2))
    for place, frame in enumerate(frames):
        if frame is not None:
            is_frozen = frame.file.startswith(_FROZEN)
            made[place] = frame.file.startswith(_MADE) and not is_frozen
            of_library[place] = bool(places.library(frame.file))
    is_frame = profile.kinds == FrameKind.PYTHON
    made_rows = (made[profile.frames] & is_frame).tolist()
    library_rows = (of_library[profile.frames] & is_frame).tolist()
    for row, above in enumerate(profile.parents.tolist()):
        made_rows[row] = made_rows[row] and library_rows[above]
        library_rows[row] = library_rows[row] or made_rows[row]
    return np.array(made_rows, dtype=np.bool_)


def _owners(parents: Rows, gone: Mask) -> list[int]:
    """Return for each row the row that it is part of."""
    owners = list(range(len(parents)))
    flags = gone.tolist()
    for row, above in enumerate(parents.tolist()):
        if flags[row]:
            owners[row] = owners[above]
    return owners


def _name_levels(
    profile: Profile, recursive: Mask, owners: list[int], *, names: Rows, table: StringTable
) -> None:
    """Name recursive rows with the most levels of them."""
    levels = [1] * len(profile)
    most: dict[int, int] = {}
    parents = profile.parents.tolist()
    for row in np.flatnonzero(recursive).tolist():
        levels[row] = levels[parents[row]] + 1
        most[owners[row]] = max(most.get(owners[row], 1), levels[row])
    for owner, count in most.items():
        names[owner] = table.index(f"{profile.name(owner)} [{count} levels]")


def _regrouped(
    profile: Profile, parents: Rows, owners: list[int], *, names: Rows, strings: tuple[str, ...]
) -> Profile:
    """Sum rows into their owners, and siblings that are then equal."""
    belongs = np.array(owners, dtype=np.int32)
    kept = belongs == np.arange(len(profile))
    above = np.where(kept & (parents >= 0), belongs[np.maximum(parents, 0)], parents)
    rows = np.flatnonzero(kept)
    places = np.cumsum(kept) - 1
    stack = replace(Stack.of(profile), strings=strings, parents=above.astype("<i4"), frames=names)
    labels = row_labels(stack)[rows]
    inside = np.where(above[rows] >= 0, places[np.maximum(above[rows], 0)], -1).astype("<i4")
    groups = number_paths(inside, labels)
    return regroup(stack, groups[places[belongs]], profile)
