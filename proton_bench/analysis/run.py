"""A profile with the name of where it comes from, so that messages can name it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proton_bench.errors import UsageError
from proton_bench.profile import Device, Profile
from proton_bench.profile.device import UNNAMED_KIND

__all__ = ["Run", "check_devices"]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One run of a comparison.

    Attributes:
        profile: What was recorded.
        source: Name of its file.
    """

    profile: Profile
    source: str


def check_devices(runs: Sequence[Run]) -> None:
    """Check that all runs used devices of the same kind and architecture.

    Raises:
        UsageError: Two runs did not; the message names both.
    """
    known: dict[str, tuple[str, str]] = {}
    first: tuple[str, set[str]] | None = None
    for run in runs:
        devices = [each for each in run.profile.devices if each.kind != UNNAMED_KIND]
        kinds = {device.kind for device in devices}
        if kinds and first is None:
            first = (run.source, kinds)
        if kinds and first is not None and not kinds & first[1]:
            raise _incomparable((first[0], _listed(first[1])), (run.source, _listed(kinds)))
        for device in devices:
            what = _model(device)
            source, before = known.setdefault(device.kind, (run.source, what))
            if what != before:
                raise _incomparable((source, before), (run.source, what))


def _listed(kinds: set[str]) -> str:
    return " and ".join(sorted(kinds))


def _model(device: Device) -> str:
    parts = [device.kind]
    if device.arch:
        parts.append(f"architecture {device.arch}")
    if device.num_sms:
        parts.append(f"{device.num_sms} multiprocessors")
    return ", ".join(parts)


def _incomparable(one: tuple[str, str], other: tuple[str, str]) -> UsageError:
    return UsageError(
        f"{one[0]!a} ran on {one[1]} and {other[0]!a} on {other[1]}: times of different devices "
        "say little about a change of the program; --ignore-devices compares them all the same"
    )
