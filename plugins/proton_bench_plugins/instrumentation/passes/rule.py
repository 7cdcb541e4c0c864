"""Rules of ``--instrument``: passes, each for some kernels, files and lines."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from proton_bench_plugins.instrumentation.passes.registry import PRINT_OPS, Place

Lines = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A pass and its filters; an empty filter matches everything.

    Attributes:
        name: Name of the pass.
        kernels: Patterns of kernel names.
        files: Patterns of file names or of whole paths.
        lines: First and last lines, both included.
        as_json: For ``print-ops``: write JSON.
    """

    name: str
    kernels: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    lines: tuple[Lines, ...] = ()
    as_json: bool = False

    def takes_kernel(self, kernel: str) -> bool:
        """Whether the rule applies to a kernel of this name."""
        return _matches(kernel, self.kernels)

    def takes_places(self, places: Sequence[Place]) -> bool:
        """Whether it applies to an operation of these lines: one of them is enough."""
        if not (self.files or self.lines):
            return True
        return any(self._takes_place(place) for place in places)

    def _takes_place(self, place: Place) -> bool:
        name = os.path.basename(place.path)
        in_file = _matches(name, self.files) or _matches(place.path, self.files)
        in_lines = not self.lines or any(low <= place.line <= high for low, high in self.lines)
        return in_file and in_lines

    def __str__(self) -> str:
        lines = "|".join(_written(*each) for each in self.lines)
        filters = (("kernel", "|".join(self.kernels)), ("file", "|".join(self.files)))
        parts = [f"{key}={value}" for key, value in (*filters, ("line", lines)) if value]
        return ":".join([self.name, *parts, *(["json"] if self.as_json else [])])


def applying(rules: Sequence[Rule], kernel: str) -> list[Rule]:
    """Return the rules for a kernel."""
    return [rule for rule in at_work(rules) if rule.takes_kernel(kernel)]


def at_work(rules: Sequence[Rule]) -> Sequence[Rule]:
    """Return the choosing rules: ``print-ops`` beside others lists their operations."""
    return [rule for rule in rules if rule.name != PRINT_OPS] or rules


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


def _written(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low}-" if high == sys.maxsize else f"{low}-{high}"
