"""Numbered siblings, folded: layers ``h.0`` to ``h.11`` of one class, ``step 3`` to ``step 7``.

Layers are siblings of one class whose qualified names differ in one number, which is a whole part
of the name: the index in a list of modules. ``conv1`` and ``conv2`` are different attributes.
Steps are scopes whose names differ in one number that counts up: ``n=512`` and ``n=1024`` are
different work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.model.arrays import Indexes
from proton_bench.model.frame import FrameKind, StringTable
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import Stack, group_equal_rows, regroup

_LAYER = re.compile(r"(?P<path>[^ ]*) \((?P<class>.*)\)", re.DOTALL)
_ANY = "*"
_DOT = "."
STEP_KINDS = (FrameKind.SCOPE, FrameKind.UNKNOWN)
_PROCESS = re.compile(r"rank \d+|(.* )?process \d+", re.DOTALL)  # rows that merge --by makes
_STEP_WORDS = ("step", "iter", "iteration", "epoch", "batch", "microbatch")
_NUMBER = re.compile(
    rf"(?:(?<![\w.])|(?<=_)|{'|'.join(f'(?<={word})' for word in _STEP_WORDS)})\d{{1,18}}(?![\w.])",
    re.IGNORECASE,
)
# A scope with one of these words and a number is a step, however many there are.
_STEP_WORD = re.compile(rf"(?:^|[^a-z])(?:{'|'.join(_STEP_WORDS)})s?(?![a-z])")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Positions of numbers that are tried in one name; no module is nested in more lists.
_MAX_NUMBERS = 8


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer's name: its path with the numbers of folded layers above replaced, and its class."""

    path: str
    class_: str


# Names rows below one row; returns those that are now one row, with their replacements.
_Fold = Callable[..., list[tuple[list[int], dict[str, str]]]]


@dataclass(slots=True)
class _Naming:
    """New names of the rows of a profile.

    Attributes:
        frames: Index of each row's name in ``strings``.
        strings: Names.
        changed: Whether a name differs from the recorded one.
    """

    frames: Indexes
    strings: StringTable
    changed: bool = False


def fold_layers(profile: Profile) -> Profile:
    """Return the profile with equal layers in one row, and the rows below them merged.

    Values add up. Names of layers inside of folded ones have a star instead of the number too.
    """
    if not bool((profile.kinds == FrameKind.LAYER).any()):
        return profile
    return _renamed(profile, FrameKind.LAYER, _folded)


def fold_steps(profile: Profile, *, counted: bool = True) -> Profile:
    """Return the profile with numbered steps in one row, and the rows below them merged.

    Args:
        profile: The profile.
        counted: Whether names say for how many steps they stand; runs may differ in that.
    """
    if not any(map(_NUMBER.search, profile.strings)):
        return profile

    def folded(
        profile: Profile, naming: _Naming, rows: list[int], *, stars: dict[str, str]
    ) -> list[tuple[list[int], dict[str, str]]]:
        return _folded_steps(profile, naming, rows, counted=counted, stars=stars)

    return _renamed(profile, STEP_KINDS, folded)


def _renamed(profile: Profile, kinds: int | tuple[int, ...], fold: _Fold) -> Profile:
    naming = _Naming(profile.frames.copy(), StringTable(profile.strings))
    _rename(profile, naming, is_numbered=np.isin(profile.kinds, kinds).tolist(), fold=fold)
    if not naming.changed:
        return profile
    stack = replace(Stack.of(profile), frames=naming.frames, strings=naming.strings.texts())
    return regroup(stack, group_equal_rows(stack), profile)


def equal_layers(names: Sequence[str]) -> list[list[int]]:
    """Return the positions of the siblings' names that `fold_layers` makes one row of."""
    known: dict[_Layer, list[int]] = {}
    for place, name in enumerate(names):
        match = _LAYER.fullmatch(name)
        if match is not None:
            known.setdefault(_Layer(match["path"], match["class"]), []).append(place)
    groups = (layers for _, _, layers in _patterns(list(known)) if len(layers) > 1)
    return [[place for layer in layers for place in known[layer]] for layers in groups]


def _rename(profile: Profile, naming: _Naming, *, is_numbered: list[bool], fold: _Fold) -> None:
    """Name rows from the top down: rows that became equal have their children named together."""
    children: list[list[int]] = [[] for _ in range(len(profile))]
    for row, above in enumerate(profile.parents.tolist()):
        if above >= 0:
            children[above].append(row)
    columns = np.stack(
        [profile.frames, profile.kinds, profile.device_rows, profile.variant_rows]
    ).astype(np.int64)
    # Rows that are one row, and by what the path of a layer above them was replaced.
    waiting: list[tuple[list[int], dict[str, str]]] = [([0], {})]
    while waiting:
        rows, stars = waiting.pop()
        below: dict[tuple[int, ...], list[int]] = {}
        inside = [child for row in rows for child in children[row]]
        numbered = [child for child in inside if is_numbered[child]]
        for child in inside:
            if not is_numbered[child] and children[child]:
                below.setdefault(tuple(columns[:, child].tolist()), []).append(child)
        waiting += [(members, stars) for members in below.values()]
        waiting += fold(profile, naming, numbered, stars=stars)


def _folded(
    profile: Profile, naming: _Naming, rows: list[int], *, stars: dict[str, str]
) -> list[tuple[list[int], dict[str, str]]]:
    """Name layers below one row; return those that are now one row, with their replacements."""
    known: dict[_Layer, list[int]] = {}
    plain: dict[str, list[int]] = {}
    for row in rows:
        match = _LAYER.fullmatch(profile.name(row))
        if match is None:
            plain.setdefault(profile.name(row), []).append(row)
        else:
            known.setdefault(_Layer(_replaced(match["path"], stars), match["class"]), []).append(
                row
            )
    found = [(members, stars) for members in plain.values()]
    for path, class_, layers in _patterns(list(known)):
        members = [row for layer in layers for row in known[layer]]
        recorded = {profile.name(row)[: -len(class_) - 3] for row in members}
        inner = {old: path for old in recorded if old != path}
        name = f"{path} ({class_})" + (f" x{len(layers)}" if len(layers) > 1 else "")
        place = naming.strings.index(name)
        naming.changed |= bool((naming.frames[members] != place).any())
        naming.frames[members] = place
        found.append((members, inner))
    return found


def _folded_steps(
    profile: Profile, naming: _Naming, rows: list[int], *, counted: bool, stars: dict[str, str]
) -> list[tuple[list[int], dict[str, str]]]:
    """Name steps below one row; return the rows that are now one."""
    by_name: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        by_name.setdefault((profile.name(row), int(profile.kinds[row])), []).append(row)
    patterns: dict[str, set[int]] = {}
    for name, _ in by_name:
        for pattern, number in _numbered(name):
            patterns.setdefault(pattern, set()).add(number)
    groups: dict[tuple[str, int], list[int]] = {}
    for (name, kind), members in by_name.items():
        found = [each for each, _ in _numbered(name) if _are_steps(each, patterns[each])]
        best = max(found, key=lambda each: len(patterns[each]), default=name)
        groups.setdefault((best, kind), []).extend(members)
        if best == name or (counted and len(patterns[best]) == 1):
            continue
        count = f" x{len(patterns[best])}" if counted else ""
        naming.frames[members] = naming.strings.index(best + count)
        naming.changed = True
    return [(members, stars) for members in groups.values()]


def _numbered(name: str) -> list[tuple[str, int]]:
    """Return the name with a star instead of each of its numbers, and that number."""
    if _PROCESS.fullmatch(name):
        return []
    places = list(_NUMBER.finditer(name))[-_MAX_NUMBERS:]
    return [(name[: at.start()] + _ANY + name[at.end() :], int(at[0])) for at in places]


def _are_steps(pattern: str, numbers: set[int]) -> bool:
    """Return whether scopes are steps: their name says so, or most numbers follow another."""
    if _says_step(pattern):
        return True
    following = sum(number + 1 in numbers for number in numbers)
    return len(numbers) > 1 and 2 * following >= len(numbers)


def step_name(name: str) -> str:
    """Return the name of a step without its numbers; other names are returned unchanged."""
    pattern = name if _PROCESS.fullmatch(name) else _NUMBER.sub(_ANY, name)
    return pattern if pattern != name and _says_step(pattern) else name


def _says_step(pattern: str) -> bool:
    return _STEP_WORD.search(_CAMEL.sub(" ", pattern).lower()) is not None


def _replaced(path: str, stars: dict[str, str]) -> str:
    """Return a path with its longest beginning that was replaced, replaced here too."""
    if not stars:
        return path
    place = len(path)
    while place > 0:
        start = stars.get(path[:place])
        if start is not None:
            return start + path[place:]
        place = path.rfind(_DOT, 0, place)
    return path


def _patterns(layers: list[_Layer]) -> list[tuple[str, str, list[_Layer]]]:
    """Return the path, the class and the layers of each row to make; each layer is in one."""
    groups: dict[_Layer, list[_Layer]] = {}
    of_layer: dict[_Layer, list[_Layer]] = {}
    for layer in layers:
        of_layer[layer] = [_Layer(path, layer.class_) for path in _starred(layer.path)]
        for pattern in of_layer[layer]:
            groups.setdefault(pattern, []).append(layer)
    found: dict[_Layer, list[_Layer]] = {}
    for layer in layers:
        patterns = [pattern for pattern in of_layer[layer] if len(groups[pattern]) > 1]
        best = max(patterns, key=lambda pattern: len(groups[pattern]), default=layer)
        found.setdefault(best, []).append(layer)
    return [
        (pattern.path, pattern.class_, members)
        if len(members) > 1
        else (members[0].path, members[0].class_, members)
        for pattern, members in found.items()
    ]


def _starred(path: str) -> list[str]:
    parts = path.split(_DOT)
    numbers = [place for place, part in enumerate(parts) if part.isdecimal()]
    return [
        _DOT.join((*parts[:place], _ANY, *parts[place + 1 :])) for place in numbers[-_MAX_NUMBERS:]
    ]
