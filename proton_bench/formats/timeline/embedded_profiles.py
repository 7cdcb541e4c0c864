"""Profiles that sessions write into their timelines at their end, in pieces."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from proton_bench.formats.native.file import NativeFile
from proton_bench.model.members import Member, merge_members
from proton_bench.model.origin import Origin
from proton_bench.model.profile import Profile

__all__ = ["EmbeddedProfiles", "embedded_or"]


class EmbeddedProfiles:
    """Joins the pieces of the profiles in a timeline.

    Args:
        source: Name of the file, for messages.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._pieces: dict[Hashable, list[bytes]] = {}
        self._whole: list[bytes] = []

    def add(self, process: Hashable, piece: bytes, rest: int) -> None:
        """Add a piece.

        Args:
            process: The process that wrote it.
            piece: Bytes of a `.proton` file.
            rest: How many bytes of it come later.
        """
        self._pieces.setdefault(process, []).append(piece)
        if not rest:
            self._whole.append(b"".join(self._pieces.pop(process)))

    def profile(self, sessions: int) -> Profile | None:
        """Return the profile of all sessions, None unless each of them wrote its own.

        Args:
            sessions: How many there are.

        Raises:
            ProfileFormatError: A profile is damaged.
        """
        if len(self._whole) != sessions:
            return None
        found = [NativeFile().decode(content, self._source) for content in self._whole]
        if len(found) == 1:
            return found[0]
        return merge_members(
            [
                Member(self._source, Origin.of(each.provenance, "", is_partial=each.partial), each)
                for each in found
            ]
        )


def embedded_or(embedded: Callable[[], Profile | None], other: Callable[[], Profile]) -> Profile:
    """Return the embedded profile of a file, or the other one, for which it is read once more."""
    found = embedded()
    return found if found is not None else other()
