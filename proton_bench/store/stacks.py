"""Stacks: rows of call-path trees by the names above them, so that equal ones are stored once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.naming.frame_names import parse_frame
from proton_bench.errors import ProfileFormatError
from proton_bench.model.frame import KIND_NAMES, ROOT_NAME
from proton_bench.model.preorder import depths, positions
from proton_bench.model.profile import Profile
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.schema import SCHEMAS

__all__ = ["StackTree", "new_stacks", "path_hashes", "stack_hashes"]

Hashes = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

_INT64 = range(-(2**63), 2**63)
# Odd multipliers and the finalizer of SplitMix64, which permutes 64 bits.
_OF_PARENT, _OF_KIND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_MIXERS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST_SHIFT = np.uint64(31)


def stack_hashes(profile: Profile) -> Hashes:
    """Return the hash of each row's stack: of its name, its kind and the hash of its parent.

    That of the root is 0, whatever its name. Hashes are part of the store and never change. Of ten
    million stacks, two have the same hash with a probability of 3 in a million.
    """
    return _hashes(profile.strings, profile.frames, profile.kinds, parents=profile.parents)


def path_hashes(tree: StackTree) -> Hashes:
    """Return what the hash of each stack has to be."""
    kinds = np.array([KIND_NAMES.index(kind) for kind in tree.kinds], dtype=np.uint8)
    return _hashes(tree.strings, tree.frames(), kinds, parents=tree.parents)


def _hashes(
    strings: Sequence[str], frames: Rows, kinds: npt.NDArray[np.uint8], *, parents: Rows
) -> Hashes:
    names = np.fromiter(map(_name_hash, strings), np.uint64, len(strings))
    own = names[frames] + kinds.astype(np.uint64) * _OF_KIND
    levels = depths(parents)
    order = np.argsort(levels, kind="stable")
    ends = np.cumsum(np.bincount(levels))
    found = np.zeros(len(parents), dtype=np.uint64)
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        rows = order[begin:end]
        found[rows] = _mixed(found[parents[rows]] * _OF_PARENT + own[rows])
    return found.view(np.int64)


@lru_cache(maxsize=1 << 16)
def _name_hash(name: str) -> int:
    content = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    for shift, factor in _MIXERS:
        values = (values ^ (values >> shift)) * factor
    return values ^ (values >> _LAST_SHIFT)


def new_stacks(profile: Profile, hashes: Hashes, known: set[int]) -> pa.Table:
    """Return the stacks that are not known yet, and add them to the known ones.

    Args:
        profile: A profile.
        hashes: Hash of each of its rows.
        known: Hashes of stacks that are stored.
    """
    every = hashes.tolist()
    if known.issuperset(every):
        return SCHEMAS["stacks"].empty_table()
    found: dict[int, int] = {}
    for row, each in enumerate(every):
        if each not in known:
            found.setdefault(each, row)
    known.update(found)
    rows = np.array(list(found.values()))
    names = [profile.name(row) if row else ROOT_NAME for row in rows.tolist()]
    places = [_place(name) for name in names]
    above = profile.parents[rows]
    columns = [
        pa.array(hashes[rows]),
        pa.array(hashes[above], mask=above < 0),
        pa.array(profile.depths()[rows]),
        pa.array(names, pa.string()),
        pa.array([KIND_NAMES[kind] for kind in profile.kinds[rows].tolist()], pa.string()),
        pa.array([file for file, _ in places], pa.string()),
        pa.array([line for _, line in places], pa.int64()),
    ]
    return pa.table(columns, schema=SCHEMAS["stacks"])


def _place(name: str) -> tuple[str | None, int | None]:
    """Return file and line of a Python frame, None for other names."""
    frame = parse_frame(name)
    if frame is None or int(frame.line[:20]) not in _INT64:
        return None, None
    return frame.file, int(frame.line[:20])


@dataclass(frozen=True, slots=True, eq=False)
class StackTree:
    """Stacks as a tree, in pre-order, so that globs of call paths can be matched.

    Attributes:
        hashes: Hash of each stack.
        parents: Row of each stack's parent, -1 for the root.
        strings: Name of each stack.
        kinds: Name of each stack's kind.
    """

    hashes: Hashes
    parents: Rows
    strings: Sequence[str]
    kinds: Sequence[str]

    @classmethod
    def of(cls, stacks: pa.Table) -> StackTree:
        """Return the tree of these stacks, of which a store without profiles has none.

        Raises:
            ProfileFormatError: They do not form a tree.
        """
        table = stacks.sort_by([("depth", "ascending"), ("name", "ascending")])
        hashes, depths = table["stack_hash"].to_numpy(), table["depth"].to_numpy()
        order = np.argsort(hashes)
        above = table["parent_hash"].fill_null(0).to_numpy()
        found = np.minimum(np.searchsorted(hashes, above, sorter=order), len(hashes) - 1)
        parents = order[found].astype("<i4")
        # One level apart, so that there is no way round.
        is_below = (hashes[parents] == above) & (depths[parents] + 1 == depths)
        is_below[:1] = depths[:1] == 0
        parents[:1] = -1
        if not is_below.all() or table["parent_hash"].null_count != min(len(hashes), 1):
            raise ProfileFormatError(
                "the call paths of the store form no tree: `proton store maintain` lists what is "
                "wrong; copy its table stacks back"
            )
        places = positions(parents)
        rows = np.argsort(places)
        table, above = table.take(rows), parents[rows]
        return cls(
            hashes[rows],
            np.where(above >= 0, places[above], -1).astype("<i4"),
            table["name"].to_pylist(),
            table["kind"].to_pylist(),
        )

    def frames(self) -> Rows:
        """Return the index of each stack's name in ``strings``."""
        return np.arange(len(self.hashes), dtype="<i4")

    def path(self, row: int) -> tuple[str, ...]:
        """Return the names from below the root down to a stack; () for the root."""
        names: list[str] = []
        while row > 0:
            names.append(self.strings[row])
            row = int(self.parents[row])
        return tuple(reversed(names))
