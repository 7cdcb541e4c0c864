"""Rows folded into the row above: recursion, code that libraries make, and imports.

All imports are one row below ``<not recorded>``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.accounting.host_time import NOT_RECORDED, import_rows, is_runner
from proton_bench.analysis.naming.frame_names import Places, PythonFrame, parse_frame
from proton_bench.model.arrays import Indexes, Mask
from proton_bench.model.frame import FrameKind, StringTable
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import Stack, number_paths, regroup, row_labels


def without_runners(profile: Profile) -> Profile:
    """Return the profile without frames down to the last one that runs a program or a cell.

    They stand below ``<not recorded>``, and their own time goes to that row.
    """
    is_run = [is_runner(name) for name in profile.strings]
    is_above = np.array(is_run, dtype=np.bool_)[profile.frames]
    for row in range(len(profile) - 1, 0, -1):  # rows below come first
        is_above[profile.parents[row]] |= is_above[row]
    stack = Stack.of(profile)
    labels = row_labels(stack).tolist()
    tops, groups = [-1] * len(profile), [0] * len(profile)
    known: dict[tuple[int, int], int] = {(-1, -1): 0}
    for row in range(1, len(profile)):
        above = int(profile.parents[row])
        tops[row] = row if profile.name(row) == NOT_RECORDED else tops[above]
        if is_above[row] and tops[row] not in (-1, row):
            groups[row] = groups[tops[row]]
        else:
            groups[row] = known.setdefault((groups[above], labels[row]), len(known))
    return regroup(stack, np.array(groups, dtype="<i4"), profile)


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
    leads_out = profile.has_values()
    for samples in profile.distributions.values():
        leads_out[samples.rows] = True
    leads_out[parents[1:][~is_library[1:]]] = True
    has_child = np.zeros(len(profile), dtype=np.bool_)
    has_child[parents[1:]] = True
    kept = ~is_library | leads_out | ~has_child
    return _without_runs(profile, runs, kept, is_library=is_library, counted=counted)


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


def _without_runs(
    profile: Profile, runs: _Runs, kept: Mask, *, is_library: Mask, counted: bool
) -> Profile:
    above = np.array(runs.owners, dtype=np.int32)
    owners = np.where(kept, np.arange(len(profile)), above)  # what vanishes has no values
    stack = replace(Stack.of(profile), parents=above)
    groups = _groups(stack, owners)
    strings, frames = _named(profile, runs, kept & is_library, groups=groups, counted=counted)
    return regroup(replace(stack, strings=strings, frames=frames), groups, profile)


def _named(
    profile: Profile, runs: _Runs, folded: Mask, *, groups: Indexes, counted: bool
) -> tuple[tuple[str, ...], Indexes]:
    """Return strings and frames in which folded rows say for how many frames they stand."""
    table = StringTable(profile.strings)
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


IMPORTS_NAME = "<imports>"
_MADE = "<"  # such as <string>, and unlike <frozen os>
_FROZEN = "<frozen "
_RECURSIVE = (FrameKind.PYTHON, FrameKind.SCOPE, FrameKind.LAYER, FrameKind.OP)


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
    table = StringTable(profile.strings)
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
    belongs = np.array(owners, dtype=np.int32)
    above = np.where(~gone & (parents >= 0), belongs[np.maximum(parents, 0)], parents)
    stack = Stack.of(profile)
    stack = replace(stack, strings=table.texts(), frames=names, parents=above.astype("<i4"))
    return regroup(stack, _groups(stack, belongs), profile)


def _top_rows(profile: Profile) -> Indexes:
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


def _owners(parents: Indexes, gone: Mask) -> list[int]:
    """Return for each row the row that it is part of."""
    owners = list(range(len(parents)))
    flags = gone.tolist()
    for row, above in enumerate(parents.tolist()):
        if flags[row]:
            owners[row] = owners[above]
    return owners


def _name_levels(
    profile: Profile, recursive: Mask, owners: list[int], *, names: Indexes, table: StringTable
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


def _groups(stack: Stack, owners: Indexes) -> Indexes:
    """Return numbers that are equal for rows to sum: those of one owner, and equal siblings."""
    kept = owners == np.arange(len(owners))
    rows, places = np.flatnonzero(kept), np.cumsum(kept) - 1
    above = stack.parents[rows]
    parents = np.where(above >= 0, places[np.maximum(above, 0)], -1).astype("<i4")
    groups: Indexes = number_paths(parents, row_labels(stack)[rows])[places[owners]]
    return groups
