"""Merges the parts of workers into one profile, in the order of a run in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proton_bench.errors import MetricError, ProtonError
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import COLLECTION_NAME, TEST_RUN_NAME, FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.regroup import order_siblings

_FIRST, _LAST = -1, 2**62
_STEPS = {COLLECTION_NAME: _FIRST, "setup": 0, "call": 1, "teardown": 2}
_PARTIAL = ".partial"


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The profiles of the workers.

    Attributes:
        profile: The merged profile, or None.
        missing: Workers without a profile.
        problems: Messages about parts that are left out.
    """

    profile: Profile | None
    missing: tuple[str, ...]
    problems: tuple[str, ...]


def read_parts(folder: Path, workers: Sequence[str]) -> Parts:
    """Read and merge the profiles of workers; unusable ones are left out.

    Args:
        folder: Their folder; each has the name of its worker.
        workers: Names of the workers, in the order of merging.
    """
    profiles: list[Profile] = []
    missing: list[str] = []
    problems: list[str] = []
    for worker in workers:
        files = _files(folder, worker)
        if not files:
            missing.append(worker)
        for file in files:
            try:
                profiles.append(read_profile(file))
            except ProtonError as error:
                problems.append(f"error: worker {worker}: {error}; it is kept: {file}")
    if not profiles:
        return Parts(None, tuple(missing), tuple(problems))
    try:
        merged = Profile.merge(profiles)
    except MetricError:
        merged = _merged_one_by_one(profiles, folder, problems)
    return Parts(merged, tuple(missing), tuple(problems))


def in_order(profile: Profile, order: Mapping[str, int]) -> Profile:
    """Sort the nodes of tests in the order of a run in one process.

    Args:
        profile: Profile of test runs.
        order: Position of each test by its node id; other rows keep theirs, before or after tests.
    """
    import numpy as np

    places = _places(profile, order)
    keys = np.empty(len(profile), dtype=np.int64)
    parents = profile.parents.tolist()
    has_tests_before: set[int] = set()
    for row, place in enumerate(places):
        above = parents[row]
        if place is not None:
            has_tests_before.add(above)
            keys[row] = place
        elif profile.kinds[row] == FrameKind.TEST and places[above] is not None:
            keys[row] = _STEPS.get(profile.name(row), _LAST)
        else:
            keys[row] = _LAST if above in has_tests_before else _FIRST
    return order_siblings(profile, keys)


def no_rows() -> Profile:
    """Return an empty profile."""
    return ProfileBuilder().build()


def _places(profile: Profile, order: Mapping[str, int]) -> list[int | None]:
    """Return the position of each test, and for rows above tests that of the first one."""
    places: list[int | None] = [None] * len(profile)
    ids: dict[int, str] = {}
    parents = profile.parents.tolist()
    for row in range(1, len(profile)):
        above = parents[row]
        if profile.kinds[row] != FrameKind.TEST or (above and above not in ids):
            continue
        name = profile.name(row)
        if above == 0:
            if name == TEST_RUN_NAME:
                ids[row] = ""
            continue
        ids[row] = f"{ids[above]}::{name}" if ids[above] else name
        places[row] = order.get(ids[row])
    for row in range(len(profile) - 1, 0, -1):
        place, above = places[row], parents[row]
        known = places[above]
        if place is not None and (known is None or place < known):
            places[above] = place
    return places


def _files(folder: Path, worker: str) -> list[Path]:
    """Return the profiles of one worker: each phase, or a partial file if it died."""
    found = sorted(folder.glob(f"{worker}.*proton"))
    whole = [path for path in found if _PARTIAL not in path.suffixes]
    return whole or found


def _merged_one_by_one(profiles: Sequence[Profile], folder: Path, problems: list[str]) -> Profile:
    merged = profiles[0]
    for profile in profiles[1:]:
        try:
            merged = Profile.merge([merged, profile])
        except MetricError as error:
            worker = profile.provenance.get("worker", "?")
            problems.append(f"error: worker {worker} is left out: {error}; it is kept in {folder}")
    return merged
