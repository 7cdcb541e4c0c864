"""Frames of libraries, folded: a run of them below own code becomes one row.

The row is named after the last frame of the run, because that called what is below, and says how
many frames it stands for. Frames of own code never fold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.naming.frame_names import Places, parse_frame
from proton_bench.model.frame import FrameKind, StringTable
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import Stack, number_paths, regroup, row_labels

__all__ = ["fold_library_frames"]

Rows = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

_MAX_LIBRARIES = 3


def fold_library_frames(profile: Profile, *, counted: bool = True) -> Profile:
    """Return the profile with one row for each run of library frames.

    A library frame stays if it has values of its own or calls anything but library frames; it goes
    below the next row above it that is not a library frame. Inclusive values of all other rows are
    what they were. Rows that are then equal siblings are summed.

    Args:
        profile: The profile.
        counted: Whether names of rows say for how many frames they stand; other releases of a
            library may need more frames for the same call.
    """
    libraries = _libraries(profile)
    is_library = np.array([bool(each) for each in libraries], dtype=np.bool_)[profile.frames]
    is_library &= profile.kinds == FrameKind.PYTHON
    parents = profile.parents
    if not bool((is_library[1:] & is_library[parents[1:]]).any()):
        return profile
    runs = _runs(profile, libraries, is_library)
    leads_out = _measured(profile)
    leads_out[parents[1:][~is_library[1:]]] = True
    has_child = np.zeros(len(profile), dtype=np.bool_)
    has_child[parents[1:]] = True
    kept = ~is_library | leads_out | ~has_child
    return _regrouped(profile, runs, kept, is_library=is_library, counted=counted)


@dataclass(frozen=True, slots=True)
class _Runs:
    """For each row: where it belongs, and the run of library frames that it ends.

    Attributes:
        owners: For a library frame the last row above that is none; for others the parent.
        sizes: Library frames in the run, the row included.
        names: Libraries of the run, in order, at most three.
    """

    owners: list[int]
    sizes: list[int]
    names: list[tuple[str, ...]]


def _libraries(profile: Profile) -> list[str]:
    places = Places.of(profile.provenance)
    found, of_file = [], {}
    for text in profile.strings:
        frame = parse_frame(text)
        if frame is None:
            found.append("")
            continue
        if frame.file not in of_file:
            of_file[frame.file] = places.library(frame.file)
        found.append(of_file[frame.file])
    return found


def _runs(profile: Profile, libraries: list[str], is_library: Mask) -> _Runs:
    owners, sizes = [-1] * len(profile), [0] * len(profile)
    names: list[tuple[str, ...]] = [()] * len(profile)
    runs = _Runs(owners, sizes, names)
    flags, frames = is_library.tolist(), profile.frames.tolist()
    for row, above in enumerate(profile.parents.tolist()):
        if above < 0:
            continue
        owners[row] = owners[above] if flags[row] and flags[above] else above
        if flags[row]:
            name = libraries[frames[row]]
            sizes[row] = sizes[above] + 1 if flags[above] else 1
            known = names[above] if flags[above] else ()
            names[row] = known if name in known or len(known) > _MAX_LIBRARIES else (*known, name)
    return runs


def _measured(profile: Profile) -> Mask:
    found = np.zeros(len(profile), dtype=np.bool_)
    for column in profile.columns.values():
        found |= column.valid
    for table in profile.distributions.values():
        found[table.rows] = True
    return found


def _regrouped(
    profile: Profile, runs: _Runs, kept: Mask, *, is_library: Mask, counted: bool
) -> Profile:
    rows = np.flatnonzero(kept)
    places = np.cumsum(kept) - 1
    owners = np.array(runs.owners, dtype=np.int64)
    parents = np.where(owners[rows] >= 0, places[owners[rows]], -1).astype("<i4")
    stack = Stack.of(profile)
    groups = number_paths(parents, row_labels(stack)[rows])
    # Rows that vanish have no values: their group is that of the row they were below.
    own = np.where(kept, places, places[np.maximum(owners, 0)])
    moved = np.where(kept | (owners < 0), owners, owners[np.maximum(owners, 0)]).astype("<i4")
    moved[0] = -1
    strings, frames = _named(
        profile, runs, kept & is_library, groups=groups[places], counted=counted
    )
    stack = replace(stack, strings=strings, parents=moved, frames=frames)
    return regroup(stack, groups[own], profile)


def _named(
    profile: Profile, runs: _Runs, folded: Mask, *, groups: Rows, counted: bool
) -> tuple[tuple[str, ...], Rows]:
    """Return strings and frames in which folded rows say for how many frames they stand."""
    table = StringTable()
    for text in profile.strings:
        table.index(text)
    frames = profile.frames.copy()
    members: dict[int, list[int]] = {}
    for row in np.flatnonzero(folded).tolist():
        members.setdefault(int(groups[row]), []).append(row)
    for rows in members.values():
        sizes = [runs.sizes[row] - 1 for row in rows]
        if not max(sizes):
            continue
        libraries = list(dict.fromkeys(name for row in rows for name in runs.names[row]))
        count = _count(sizes) if counted else "frames"
        name = f"{profile.name(rows[0])} [+{count} of {_list(libraries)}]"
        frames[rows] = table.index(name)
    return table.texts(), frames


def _count(sizes: list[int]) -> str:
    low, high = min(sizes), max(sizes)
    if low == high:
        return "1 frame" if high == 1 else f"{high} frames"
    return f"{low} to {high} frames"


def _list(libraries: list[str]) -> str:
    shown = ", ".join(libraries[:_MAX_LIBRARIES])
    return shown if len(libraries) <= _MAX_LIBRARIES else f"{shown}, ..."
