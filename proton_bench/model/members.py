"""Merges the profiles of a job's processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proton_bench.errors import UsageError
from proton_bench.model.arrays import Array
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind, StringTable
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.metric import MetricColumn, ValueKind
from proton_bench.model.origin import ApartBy, Origin
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

_MOST_RANKS = 1 << 20  # of a world size, which a damaged file may claim


@dataclass(frozen=True, slots=True)
class RankGaps:
    """Present and missing ranks of a job.

    Attributes:
        world_size: Ranks of the job, 0 if unknown.
        present: Ranks with a file.
        missing: Ranks without a file.
        partial: Ranks with a file that was written before their run ended.
    """

    world_size: int = 0
    present: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    partial: tuple[int, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for the provenance of merged files, {} without known ranks."""
        if not self.present:
            return {}
        return {
            "world_size": self.world_size,
            "present": list(self.present),
            "missing": list(self.missing),
            "partial": list(self.partial),
        }


def rank_gaps(origins: Iterable[Origin]) -> RankGaps:
    """Return the gaps from the origins of files."""
    ranked = [origin for origin in origins if origin.rank is not None]
    ranks = sorted({origin.rank for origin in ranked if origin.rank is not None})
    if not ranks:
        return RankGaps()
    size = max((origin.world_size or 0 for origin in ranked), default=0)
    size = min(max(size, ranks[-1] + 1), _MOST_RANKS)
    present = set(ranks)
    return RankGaps(
        world_size=size,
        present=tuple(ranks),
        missing=tuple(rank for rank in range(size) if rank not in present),
        partial=tuple(sorted({o.rank for o in ranked if o.is_partial and o.rank is not None})),
    )


def nest_below(profile: Profile, name: str, kind: FrameKind = FrameKind.SCOPE) -> Profile:
    """Return the profile with one new row below its root that contains all others.

    The root's own values move to that row. The total use of devices is also that of the new row;
    the former top-level scopes lose theirs.

    Args:
        profile: The profile.
        name: Name of the new row.
        kind: Its kind.
    """
    table = StringTable()
    for text in profile.strings:
        table.index(text)
    frame = table.index(name)
    strings = table.texts()
    # The new root comes first, and the old one becomes the new row.
    parents = np.concatenate([[-1, 0], profile.parents[1:] + 1])
    whole = [use for use in profile.device_use if use.scope is None]
    return replace(
        profile,
        strings=strings,
        parents=parents.astype("<i4"),
        frames=_below(profile.frames, profile.frames[0], own=frame),
        kinds=_below(profile.kinds, FrameKind.ROOT, own=kind),
        device_rows=_below(profile.device_rows, -1),
        variant_rows=_below(profile.variant_rows, -1),
        columns={each.spec.name: _column(each, strings) for each in profile.columns.values()},
        distributions={
            metric: DistributionTable.from_mapping({row + 1: entry for row, entry in entries})
            for metric, entries in profile.distributions.items()
        },
        device_use=(*whole, *(replace(use, scope=name) for use in whole)),
    )


def _below(rows: Array, root: int, own: int | None = None) -> Array:
    found = np.concatenate([[root], rows]).astype(rows.dtype)
    if own is not None:
        found[1] = own
    return found


def _column(column: MetricColumn, strings: tuple[str, ...]) -> MetricColumn:
    valid = np.concatenate([[False], column.valid])
    if column.offsets is not None:
        return replace(column, valid=valid, offsets=np.concatenate([[0], column.offsets]))
    is_text = column.kind is ValueKind.STR
    values = _below(column.values, -1 if is_text else 0)
    return replace(column, valid=valid, values=values, strings=strings if is_text else ())


_OF_ONE_RANK = ("rank", "local_rank")
_OF_ONE_RUN = "gpm"  # means over the time of a run, which the first one would claim for all
_HOST_KINDS = ("CPU",)
_COST = "estimated_cost_ns"


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """What one process of a job recorded.

    Attributes:
        source: Name of the file.
        origin: Which process it comes from.
        profile: What was recorded, None where only the origin was read.
    """

    source: str
    origin: Origin
    profile: Profile | None = None


def merge_members(members: Sequence[Member], by: ApartBy = ApartBy.NOTHING) -> Profile:
    """Return one profile of all members: equal paths are summed, devices stay separate.

    Devices of different ranks are different even with the same number; they get the next free
    number. ``merged_devices`` of the provenance maps them, and ``ranks`` lists the ranks. Losses
    and costs, which each part of a process reports for its whole run so far, count once per
    process.

    Args:
        members: Members with their profiles, in order.
        by: What to separate in the tree.

    Raises:
        UsageError: There is none.
        MetricError: A metric differs in type between two members.
    """
    numbers = _DeviceNumbers()
    profiles = []
    for member in members:
        if member.profile is None:
            raise UsageError(f"{member.source} was not read; merge profiles")
        found = numbers.renumbered(member.profile, member.origin)
        found = replace(found, partial=found.partial or member.origin.is_partial)
        if by is not ApartBy.NOTHING:
            found = nest_below(found, label_of(member, by))
        profiles.append(found)
    merged = Profile.merge(profiles)
    return replace(
        merged,
        dropped=_dropped(profiles, members),
        provenance=_provenance(merged, members, numbers),
    )


def label_of(member: Member, by: ApartBy) -> str:
    """Return the label of a member: ``rank 3``, ``node1``, ``node1 process 12``, or its file."""
    origin = member.origin
    if by is ApartBy.RANK and origin.rank is not None:
        return f"rank {origin.rank}"
    if by is ApartBy.HOST and origin.host:
        return origin.host
    if by is not ApartBy.HOST and origin.process_id is not None:
        return f"{origin.host} process {origin.process_id}".lstrip()
    return member.source


class _DeviceNumbers:
    """One number for each device of a job, per kind."""

    def __init__(self) -> None:
        self.origins: list[dict[str, Any]] = []
        self._numbers: dict[Hashable, int] = {}
        self._taken: dict[str, set[int]] = {}

    def renumbered(self, profile: Profile, origin: Origin) -> Profile:
        """Return the profile with the job's numbers of its devices."""
        if not profile.devices:
            return profile
        devices = tuple(
            replace(device, index=self._number(device, origin)) for device in profile.devices
        )
        return replace(profile, devices=devices)

    def _number(self, device: Device, origin: Origin) -> int:
        key = _device_key(device, origin)
        found = self._numbers.get(key)
        if found is None:
            taken = self._taken.setdefault(device.kind, set())
            found = device.index
            if found in taken:
                found = max(taken) + 1
            taken.add(found)
            self._numbers[key] = found
            self.origins.append(
                {
                    "device": f"{device.kind}:{found}",
                    "was": f"{device.kind}:{device.index}",
                    "host": origin.host,
                    "rank": origin.rank,
                }
            )
        return found


def _device_key(device: Device, origin: Origin) -> Hashable:
    """Return a key that identifies a device in the job."""
    if device.kind in _HOST_KINDS:
        return device.kind, device.index, origin.host
    # Processes without a rank on one host are assumed to see the same devices.
    return device.kind, device.index, origin.host, origin.rank


def _dropped(profiles: Sequence[Profile], members: Sequence[Member]) -> dict[str, int]:
    found: dict[tuple[Hashable, str], int] = {}
    for profile, member in zip(profiles, members, strict=True):
        for reason, count in profile.dropped.items():
            key = (_run_of(member), reason)
            found[key] = max(found.get(key, 0), count)
    total: Counter[str] = Counter()
    for (_, reason), count in found.items():
        total[reason] += count
    return dict(total)


def _cost_ns(members: Sequence[Member]) -> int | float | None:
    found: dict[Hashable, int | float] = {}
    for member in members:
        recorded = member.profile.provenance.get(_COST) if member.profile is not None else None
        if isinstance(recorded, int | float) and not isinstance(recorded, bool):
            run = _run_of(member)
            found[run] = max(found.get(run, recorded), recorded)
    return sum(found.values()) if found else None


def _run_of(member: Member) -> Hashable:
    """Return a key of the parts of one process's run."""
    identity = member.origin.identity
    return member.source if identity is None else identity[:3]


def _provenance(merged: Profile, members: Sequence[Member], numbers: _DeviceNumbers) -> Provenance:
    facts = merged.provenance.to_plain()
    gaps = rank_gaps(member.origin for member in members)
    if len(gaps.present) > 1:
        for key in _OF_ONE_RANK:
            facts.pop(key, None)
    if len({_run_of(member) for member in members}) > 1:
        facts.pop(_OF_ONE_RUN, None)
    cost_ns = _cost_ns(members)
    if cost_ns is not None:
        facts[_COST] = cost_ns
    if gaps.present:
        facts["ranks"] = gaps.to_plain()
    if len(members) > 1 and numbers.origins:
        facts["merged_devices"] = numbers.origins
    return Provenance(facts)
