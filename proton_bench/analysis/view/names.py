"""Rows by name: a filter, and names that stay the same from one compilation to the next.

Inductor numbers its kernels in the order of their generation, so that a change anywhere in a model
renames all that follow. Files keep the names as they were; reports and comparisons leave the
running number out, except for raw names.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.errors import UsageError
from proton_bench.model.arrays import Indexes, Mask
from proton_bench.model.frame import StringTable
from proton_bench.model.profile import Profile

_SECONDS, _SECONDS_OF_NAME = 1.0, 20e-6
_COUNTED_GROUP = re.compile(r"\)\{(?:\d*,)?(\d*)\}")
_MOST_TIMES = 1 << 40
_LEAST_S = 1e-3  # for a name, however late it is


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Which rows to keep; without an expression all of them.

    Attributes:
        include: Regular expression, matched from the start of a name: keep matching rows, the
            rows above and the rows below them.
        exclude: Regular expression: drop matching rows and the rows below them.
    """

    include: str | None = None
    exclude: str | None = None

    def __post_init__(self) -> None:
        if self.include and self.exclude:
            raise UsageError("Cannot specify both include and exclude: give one of them")

    def __bool__(self) -> bool:
        return bool(self.include or self.exclude)

    def __str__(self) -> str:
        given = (("-i", self.include), ("-e", self.exclude))
        return " ".join(f"{flag} {value}" for flag, value in given if value)

    def is_lost(self, before: Iterable[str], after: Iterable[str]) -> bool:
        """Return whether the expression matches a name that is gone, and none that came for it.

        Args:
            before: All names.
            after: All names after some became others.

        Raises:
            UsageError: It is malformed, or takes too long on these names.
        """
        expression, what = self.include or self.exclude, "include" if self.include else "exclude"
        if not expression:
            return False
        old, new = set(before), set(after)
        found = [
            bool(matches(list(names), expression, what).any()) for names in (old - new, new - old)
        ]
        return found == [True, False]

    def keep(
        self,
        strings: Sequence[str],
        ends: Indexes,
        find: Callable[[Mask], Mask],
        *,
        recorded: Sequence[str] = (),
    ) -> Mask:
        """Return one flag per row, whether it is kept.

        Args:
            strings: Distinct names.
            ends: For each row, in pre-order, the row after its last descendant.
            find: Returns the rows with a name, from one flag per name.
            recorded: A second name for each, of which one has to match.

        Raises:
            UsageError: The regular expression is malformed, or takes too long on these names.
        """
        if self.include:
            found = find(_either(strings, recorded, self.include, what="include"))
            return rows_below(found, ends) | rows_above(found, ends)
        if self.exclude:
            found = find(_either(strings, recorded, self.exclude, what="exclude"))
            return ~rows_below(found, ends)
        return np.ones(len(ends), dtype=np.bool_)


def _either(strings: Sequence[str], recorded: Sequence[str], expression: str, *, what: str) -> Mask:
    found = matches(strings, expression, what)
    if recorded:
        # Most names are shown as they were recorded.
        others = [place for place, text in enumerate(recorded) if text != strings[place]]
        if others:
            found[others] |= matches([recorded[place] for place in others], expression, what)
    return found


def matches(strings: Sequence[str], expression: str, what: str, *, is_whole: bool = False) -> Mask:
    """Return which texts an expression matches from their start.

    Args:
        strings: The texts.
        expression: A regular expression.
        what: Its origin, for messages.
        is_whole: To their end too.

    Raises:
        UsageError: It is malformed, or takes too long on these texts.
    """
    _check_counts(expression, what)
    import regex  # as `re`, with a time limit for a search

    try:
        pattern = regex.compile(expression)
    except (regex.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{what} {expression!r} is not a regular expression: {error}") from error
    # Expressions backtrack, and hostile names may exploit that.
    ends = time.monotonic() + _SECONDS + _SECONDS_OF_NAME * len(strings)
    match = pattern.fullmatch if is_whole else pattern.match
    found = np.zeros(len(strings), dtype=np.bool_)
    try:
        for number, text in enumerate(strings):
            left = max(ends - time.monotonic(), _LEAST_S)
            found[number] = match(text, timeout=left) is not None
    except TimeoutError:
        raise UsageError(
            f"{what} {expression[:200]!a} takes too long on the names of this profile: write it "
            "without nested repetitions"
        ) from None
    return found


def _check_counts(expression: str, what: str) -> None:
    """Raise if groups are repeated so often that compiling the expression takes much memory."""
    times = 1
    for count in _COUNTED_GROUP.findall(expression):
        times *= max(2, int(count[:9] or 0))
    if times > _MOST_TIMES:
        raise UsageError(f"{what} {expression[:200]!a} repeats groups too often")


def rows_below(rows: Mask, ends: Indexes) -> Mask:
    """Mark the given rows and all rows below them."""
    depth = np.zeros(len(rows) + 1, dtype=np.int64)
    np.add.at(depth, np.flatnonzero(rows), 1)
    np.add.at(depth, ends[rows], -1)
    return np.cumsum(depth[:-1]) > 0


def rows_above(rows: Mask, ends: Indexes) -> Mask:
    """Mark the given rows and all rows above them."""
    running = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(rows, out=running[1:])
    return running[ends] > running[:-1]


# triton_poi_fused_add_relu_0, triton_tem_fused_mm_12, cpp_fused_add_3: the kind of kernel, what it
# computes, and the number. A name without "fused" is not Inductor's, whatever its end.
_NUMBERED = re.compile(r"(?P<stem>(?:triton_[a-z]{3}|cpp)_fused(?:_\w+?)?)_\d+")
_PYTHON_FRAME = re.compile(r"(?P<file>.*):\d+@(?P<function>.*)", re.DOTALL)


def stable_name(name: str) -> str:
    """Return the name without Inductor's running number; other names are returned unchanged."""
    if "_fused_" not in name:
        return name
    match = _NUMBERED.fullmatch(name)
    return name if match is None else match["stem"]


def with_stable_names(profile: Profile) -> Profile:
    """Return the profile with stable names; kernels that then share a name stay separate rows."""
    stable = [stable_name(text) for text in profile.strings]
    if stable == list(profile.strings):
        return profile
    table = StringTable()
    places = np.array([table.index(text) for text in stable], dtype=profile.frames.dtype)
    return replace(profile, frames=places[profile.frames], strings=table.texts())


def steady_name(name: str) -> str:
    """Return the part of a name that other edits of the program do not change.

    That is its stable name, and for ``file:line@function`` of a Python frame ``file@function``.
    """
    if "@" in name:
        match = _PYTHON_FRAME.fullmatch(name)
        return name if match is None else f"{match['file']}@{match['function']}"
    return stable_name(name)
