"""Profiles of other processes to merge into the files of a session of this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proton_bench.model.profile import Profile


@dataclass(frozen=True, slots=True, eq=False)
class AddedProfile:
    """The profile of other processes, read from files that stay until it is written.

    Attributes:
        profile: The profile.
        kept: Folder of its files while they are needed, for messages.
        release: Called once the session's files hold the profile; removes its own.
    """

    profile: Profile
    kept: str
    release: Callable[[], None]


def merge_added(own: Profile, added: Sequence[AddedProfile]) -> Profile:
    """Return one profile of this process and the others.

    Raises:
        MetricError: A metric differs in type or aggregation between them.
    """
    if not added:
        return own
    return type(own).merge([own, *(each.profile for each in added)])


def add_counts(counts: dict[str, int], added: Sequence[AddedProfile]) -> dict[str, int]:
    """Return a session's counts of records, with rows and losses of other profiles added."""
    total = dict(counts)
    for each in added:
        total["ranges"] += len(each.profile) - 1
        total["dropped"] += sum(each.profile.dropped.values())
    return total
