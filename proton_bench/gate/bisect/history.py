"""The revisions between a good and a bad one, and which of them contain which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.errors import UsageError

__all__ = ["MOST_REVISIONS", "Candidate", "History"]

Mask = npt.NDArray[np.bool_]

# Which revision contains which takes the square of this in bytes.
MOST_REVISIONS = 5000
_HASH, _SHORT = 40, 12  # characters


@dataclass(frozen=True, slots=True)
class Candidate:
    """One revision that may be the first bad one.

    Attributes:
        name: Full hash of a commit, or version of a package.
        title: First line of its message; of a package its name and version.
        author: Name of its author, "" if unknown.
        date: Author date in ISO 8601, "" if unknown.
        parents: Places of its parents in the history; those that the good revision contains are
            left out.
        files: Files that it changes, from the top folder; None if unknown.
    """

    name: str
    title: str = ""
    author: str = ""
    date: str = ""
    parents: tuple[int, ...] = ()
    files: frozenset[str] | None = None

    @property
    def short(self) -> str:
        """The beginning of its hash, or its whole version."""
        return self.name[:_SHORT] if len(self.name) >= _HASH else self.name

    @property
    def text(self) -> str:
        """Its short name and its title, or the name and version of a package."""
        return self.title if self.title.endswith(self.name) else f"{self.short} {self.title}"


class History:
    """All revisions that the bad one contains and the good one does not.

    Attributes:
        revisions: Parents before their children; the last is the bad revision.
        contains: Row ``i`` marks the revisions that revision ``i`` contains, itself among them.

    Raises:
        UsageError: There are none, or too many.
    """

    def __init__(self, revisions: Sequence[Candidate]) -> None:
        count = len(revisions)
        if not count:
            raise UsageError("there is no revision between GOOD and BAD: give two different ones")
        if count > MOST_REVISIONS:
            raise UsageError(
                f"there are {count} revisions between GOOD and BAD, more than {MOST_REVISIONS}: "
                "give revisions that are closer, or --first-parent"
            )
        self.revisions = tuple(revisions)
        self.contains: Mask = np.eye(count, dtype=np.bool_)
        for place, revision in enumerate(revisions):
            for parent in revision.parents:
                self.contains[place] |= self.contains[parent]

    def __len__(self) -> int:
        return len(self.revisions)

    @property
    def bad(self) -> int:
        """Place of the bad revision."""
        return len(self.revisions) - 1
