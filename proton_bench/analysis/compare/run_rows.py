"""Rows of several runs with common numbers for names, devices, signatures and codes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.kernels.source_lines import parse_line
from proton_bench.analysis.kernels.stall_reasons import ALL
from proton_bench.analysis.naming.layers import STEP_KINDS, step_name
from proton_bench.analysis.view.align import LabelledTree, occurrences, stacked_parents
from proton_bench.analysis.view.names import steady_name
from proton_bench.model.arrays import Array, Indexes, Integers, Mask
from proton_bench.model.device import UNNAMED_KIND, Device, Variant
from proton_bench.model.frame import FrameKind, StringTable
from proton_bench.model.profile import Profile

# Suffix of a removed line, to distinguish it from the line that has its number now.
GONE = " (gone)"
# A pair counts 1, and up to 1 more for equal shares. A change of distance costs so much that a
# single line never causes one just for a better share.
_OTHER_DISTANCE = 1.5
_ANY_DISTANCE = 0.25
# Lines of functions with more pairs keep their numbers; the limit is 1000 lines on both sides.
_MOST_PAIRS = 1_000_000

_Function = tuple[str, str]
_Lines = dict[int, float]


# Lines of one function are aligned in order: most lines keep their distance to their neighbours,
# and each keeps about its share of the samples. Profiles do not have the text of the lines.
def former_lines(base: Sequence[Profile], new: Sequence[Profile]) -> dict[str, str]:
    """Return the names of base lines in the new runs.

    Args:
        base: Runs to compare with.
        new: Runs that are compared.

    Returns:
        The name in the new runs for each line name in the base; removed lines get their name with
        the suffix `GONE`.
    """
    was, now = _functions(base), _functions(new)
    found: dict[str, str] = {}
    for function, lines in was.items():
        target = _counterpart(function, now)
        if target is None:
            continue
        pairs = _aligned(lines, now[target])
        for line in lines:
            name = _name(function, line)
            found[name] = _name(target, pairs[line]) if line in pairs else name + GONE
    return found


def _functions(profiles: Iterable[Profile]) -> dict[_Function, _Lines]:
    """Return each function's lines with their shares of its samples."""
    found: dict[_Function, dict[int, float]] = {}
    for profile in profiles:
        for row, samples in _line_rows(profile):
            place = parse_line(profile.name(row))
            if place is not None:
                lines = found.setdefault((place.file, place.function), {})
                lines[place.line] = lines.get(place.line, 0.0) + samples
    return {function: _shares(lines) for function, lines in found.items()}


def _line_rows(profile: Profile) -> Iterator[tuple[int, float]]:
    rows = np.flatnonzero(profile.kinds == FrameKind.LINE)
    column = profile.columns.get(ALL)
    if column is None or not column.kind.is_number:
        yield from ((row, 0.0) for row in rows.tolist())
        return
    known = column.valid[rows] & np.isfinite(column.values[rows])
    sizes = np.where(known, column.values[rows], 0).astype(np.float64)
    yield from zip(rows.tolist(), sizes.tolist(), strict=True)


def _shares(lines: Mapping[int, float]) -> _Lines:
    total = sum(lines.values()) or 1.0
    return {line: samples / total for line, samples in sorted(lines.items())}


def _name(function: _Function, line: int) -> str:
    return f"{function[0]}:{line}@{function[1]}"


def _counterpart(function: _Function, known: Mapping[_Function, _Lines]) -> _Function | None:
    """Return the same function, even if the file is in another folder now."""
    if function in known:
        return function
    file, name = os.path.basename(function[0]), function[1]
    near = [each for each in known if each[1] == name and os.path.basename(each[0]) == file]
    return near[0] if len(near) == 1 else None


# -- laying lines over each other ----------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Chain:
    """The best way to pair lines up to and with one pair."""

    score: float
    pair: tuple[int, int]
    before: _Chain | None


def _aligned(base: _Lines, new: _Lines) -> dict[int, int]:
    """Return the line in the new runs for each line of the base, in order."""
    if len(base) * len(new) > _MOST_PAIRS:
        return {line: line for line in base if line in new}
    best: _Chain | None = None
    by_distance: dict[int, _Chain] = {}
    reached: list[_Chain | None] = [None] * (len(new) + 1)  # best chain that ends before a new line
    for line, share in base.items():
        here: list[_Chain] = []
        for place, (other, other_share) in enumerate(new.items()):
            chain = _longer(by_distance.get(other - line), reached[place], (line, other))
            near = min(share, other_share) / max(share, other_share, 1e-12)
            here.append(_Chain(chain.score + 1.0 + near, (line, other), chain.before))
        top: _Chain | None = None
        for place, chain in enumerate(here):
            by_distance[chain.pair[1] - line] = chain
            top = chain if top is None or chain.score > top.score else top
            held = reached[place + 1]
            reached[place + 1] = top if held is None or top.score > held.score else held
        if top is not None and (best is None or top.score > best.score):
            best = top
    return dict(_pairs(best))


def _longer(same: _Chain | None, other: _Chain | None, pair: tuple[int, int]) -> _Chain:
    """Return the chain before a pair, with its score."""
    alone = 0.0 if pair[0] == pair[1] else -_ANY_DISTANCE
    found = _Chain(alone, pair, None)
    if other is not None and other.score - _OTHER_DISTANCE > found.score:
        found = _Chain(other.score - _OTHER_DISTANCE, pair, other)
    if same is not None and same.score >= found.score:
        found = _Chain(same.score, pair, same)
    return found


def _pairs(chain: _Chain | None) -> Iterator[tuple[int, int]]:
    while chain is not None:
        yield chain.pair
        chain = chain.before


_HOST = "CPU"
_COUNTED = 2**40


@dataclass(frozen=True, slots=True)
class Identity:
    """Key by which two rows below one parent are the same row.

    Attributes:
        raw_names: Names have to match exactly; else running numbers of Inductor's kernels and of
            steps, and line numbers of Python frames do not matter, and lines of kernels keep their
            order.
        any_device: Devices do not matter.
    """

    raw_names: bool = False
    any_device: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RunRows:
    """One run's rows as numbers that mean the same in all runs.

    Attributes:
        parents: Row of each row's parent.
        frames: The name as it was recorded.
        identities: The name that counts.
        devices: The device, 0 for none.
        signatures: Argument types of kernels, 0 where unknown. Those with shapes do not count: a
            row is the same one whatever it was called with.
        codes: Hash of the compiled code, 0 where unknown.
        variants: The launch variant, -1 for none.
        kinds: `FrameKind` of each row.
        is_counted: Whether the name has a number that is another one after other edits or in
            another run: the line of a Python frame, or the number of a step.
        twins: The first variant of the same kernel with the same signature, else the row itself.
    """

    parents: Indexes
    frames: Integers
    identities: Integers
    devices: Integers
    signatures: Integers
    codes: Integers
    variants: Integers
    kinds: npt.NDArray[np.uint8]
    is_counted: Mask
    twins: Integers

    def details(self) -> Integers:
        """Return details that distinguish otherwise equal rows: code, number, else the full name.

        Names of kernels are negative; lines of Python frames and steps come after all codes.
        """
        full = np.where(self.is_counted, _COUNTED + self.frames, -1 - self.frames)
        named = np.where(self.frames != self.identities, full, 0)
        return np.where(self.codes > 0, self.codes, named)


class Interning:
    """Numbers for the names, devices, signatures and codes of all runs.

    Args:
        base: Runs to compare with.
        new: Runs that are compared.
        identity: What makes rows equal.

    Attributes:
        runs: Rows of all runs, base first.
        alone: Which rows of each run have no counterpart by their names.
    """

    def __init__(self, base: Sequence[Profile], new: Sequence[Profile], identity: Identity) -> None:
        profiles = [*base, *new]
        self._table = StringTable()
        self._identity = identity
        self._signatures: dict[str, int] = {"": 0}
        self._codes: dict[str, int] = {"": 0}
        self._variants: dict[Variant, int] = {}
        self._unnamed = _kind_of_unnamed(profiles)
        self.device_names = ["", *_device_names(profiles, identity, self._unnamed)]
        former = {} if identity.raw_names else former_lines(base, new)
        self.runs = [self._rows(profile, former) for profile in base]
        self.runs += [self._rows(profile, {}) for profile in new]
        self._refined, self.alone = _refined(self._labels(), self.runs, len(base))

    @property
    def strings(self) -> tuple[str, ...]:
        """All names."""
        return self._table.texts()

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All launch variants."""
        return tuple(self._variants)

    def trees(self) -> list[LabelledTree]:
        """Return the runs in a form for alignment."""
        return [
            LabelledTree(run.parents, label, run.twins)
            for run, label in zip(self.runs, self._refined, strict=True)
        ]

    def _labels(self) -> list[Integers]:
        """Return one number for name, device and signature of each row."""
        devices, signatures = len(self.device_names), len(self._signatures)
        return [
            (run.identities * devices + run.devices) * signatures + run.signatures
            for run in self.runs
        ]

    def _rows(self, profile: Profile, lines: Mapping[str, str]) -> RunRows:
        index = self._table.index
        names = np.array([index(text) for text in profile.strings], dtype=np.int64)
        steady = steps = names
        if not self._identity.raw_names:
            steady, steps = (
                np.array([index(without(text)) for text in profile.strings], dtype=np.int64)
                for without in (steady_name, step_name)
            )
        by_variant = [
            (
                self._signatures.setdefault(_types(each.signature), len(self._signatures)),
                self._codes.setdefault(each.code_hash, len(self._codes)),
                self._variants.setdefault(each, len(self._variants)),
            )
            for each in profile.variants
        ]
        by_variant.append((0, 0, -1))
        facts = np.array(by_variant, dtype=np.int64)[profile.variant_rows]
        frames = names[profile.frames]
        is_step = np.isin(profile.kinds, STEP_KINDS) & (steps != names)[profile.frames]
        identities = np.where(is_step, steps[profile.frames], steady[profile.frames])
        has_line = np.array(["@" in text for text in profile.strings])[profile.frames]
        is_line = profile.kinds == FrameKind.LINE
        if is_line.any():  # each is its own row, under its current number
            found = [index(lines.get(text, text)) for text in profile.strings]
            identities = np.where(
                is_line, np.array(found, dtype=np.int64)[profile.frames], identities
            )
        devices = self._devices(profile)
        signatures = np.where(profile.kinds == FrameKind.KERNEL, facts[:, 0], 0)
        return RunRows(
            parents=profile.parents,
            frames=frames,
            identities=identities,
            devices=devices,
            signatures=signatures,
            codes=facts[:, 1],
            variants=facts[:, 2],
            kinds=profile.kinds,
            is_counted=has_line | is_step,
            twins=_twins(profile, (frames, devices, signatures)),
        )

    def _devices(self, profile: Profile) -> Integers:
        if self._identity.any_device:
            return np.zeros(len(profile), dtype=np.int64)
        known = {name: place for place, name in enumerate(self.device_names)}
        kinds = [_kind(each, self._unnamed) for each in profile.devices]
        found = [
            known.get(f"{kind}:{each.index}", known.get(kind, 0))
            for kind, each in zip(kinds, profile.devices, strict=True)
        ]
        return np.array([*found, 0], dtype=np.int64)[profile.device_rows]


def _types(signature: str) -> str:
    return "" if "[" in signature else signature


def _kind_of_unnamed(profiles: Sequence[Profile]) -> str:
    """Return the kind of devices of which a file does not say it: timelines do not.

    They are of the kind that the other runs name, where that is one.
    """
    kinds = {device.kind for profile in profiles for device in profile.devices}
    named = kinds - {_HOST, UNNAMED_KIND}
    return named.pop() if len(named) == 1 else UNNAMED_KIND


def _kind(device: Device, unnamed: str) -> str:
    return unnamed if device.kind == UNNAMED_KIND else device.kind


def _device_names(
    profiles: Sequence[Profile], identity: Identity, kind_of_unnamed: str
) -> list[str]:
    """Return the names of devices: with a number only if a run used several of a kind."""
    if identity.any_device:
        return []
    kinds: dict[str, set[str]] = {}
    several: set[str] = set()
    for profile in profiles:
        own: dict[str, set[str]] = {}
        for device in profile.devices:
            kind = _kind(device, kind_of_unnamed)
            own.setdefault(kind, set()).add(f"{kind}:{device.index}")
        several |= {kind for kind, names in own.items() if len(names) > 1}
        for kind, names in own.items():
            kinds.setdefault(kind, set()).update(names)
    found = [sorted(names) if kind in several else [kind] for kind, names in sorted(kinds.items())]
    return [name for names in found for name in names]


def _twins(profile: Profile, keys: tuple[Integers, ...]) -> Integers:
    """Return for each row the first sibling that differs only in the variant."""
    found = np.arange(len(profile), dtype=np.int64)
    rows = np.flatnonzero(profile.variant_rows >= 0)
    if len(rows) < 2:
        return found
    parts: list[Array] = [profile.parents[rows], *(key[rows] for key in keys)]
    order = np.lexsort((rows, *parts))
    begins = np.ones(len(rows), dtype=np.bool_)
    begins[1:] = np.any([part[order][1:] != part[order][:-1] for part in parts], axis=0)
    heads = np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))
    found[rows[order]] = rows[order][heads]
    return found


def _refined(
    labels: list[Integers], runs: Sequence[RunRows], first_new: int
) -> tuple[list[Integers], list[Mask]]:
    """Give rows labels of their own where equal siblings are better paired by their details.

    They are where both sides know at least half of the compiled codes, of the lines of a function
    or of the steps of a loop. Compilers count the names of kernels anew after other edits: if both
    sides have as many, their order is what is left; else one side has all names of the other, or
    nothing says which of them are the same.

    Returns:
        The labels of each run, and the rows that nothing but their names could pair.
    """
    stacked = np.concatenate(labels)
    ends = np.cumsum([len(each) for each in labels])[:-1]
    details = np.concatenate([run.details() for run in runs])
    parents = stacked_parents([run.parents for run in runs])
    twins, start = [], 0
    for run in runs:
        twins.append(run.twins + start)
        start += len(run.parents)
    nth = occurrences(parents, stacked, np.concatenate(twins))
    ambiguous = np.isin(stacked, np.unique(stacked[nth > 0])) & (details != 0)
    alone = np.zeros(len(stacked), dtype=np.bool_)
    if not ambiguous.any():
        return labels, np.split(alone, ends)
    pairs = np.stack([stacked[ambiguous], details[ambiguous]], axis=1)
    known, inverse = np.unique(pairs, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    new_rows = np.arange(len(stacked))[ambiguous] >= sum(map(len, labels[:first_new]))
    in_base, in_new = (np.zeros(len(known), dtype=np.bool_) for _ in range(2))
    in_base[inverse[~new_rows]] = True
    in_new[inverse[new_rows]] = True
    told, apart = _told_apart(known, in_base, in_new)
    alone[ambiguous] = apart[inverse]
    # Rows that stay alone have another label on each side.
    own = inverse + len(known) * (apart[inverse] & new_rows)
    chosen = (told | apart)[inverse]
    stacked[ambiguous] = np.where(chosen, int(stacked.max()) + 1 + own, stacked[ambiguous])
    return np.split(stacked, ends), np.split(alone, ends)


def _told_apart(known: Integers, in_base: Mask, in_new: Mask) -> tuple[Mask, Mask]:
    """Mark the details that tell rows of one label apart, and those that no other side has.

    Others pair in their order.

    Args:
        known: A label and a detail of it in each line; names of kernels are negative.
        in_base: Which of them the base has.
        in_new: Which of them the new runs have.
    """
    _, owner = np.unique(known[:, 0], return_inverse=True)
    owner = owner.reshape(-1)
    both = in_base & in_new
    shared, base, new = (np.bincount(owner, weights=each) for each in (both, in_base, in_new))
    named = np.bincount(owner, weights=known[:, 1] < 0) > 0
    contained = named & (shared == np.minimum(base, new))
    halved = ~named & (2 * shared >= np.maximum(base, new))
    apart: Mask = (named & ~contained & (base != new))[owner]
    told: Mask = contained[owner] | (both & halved[owner])
    return told, apart
