"""Shared by flame graph formats: frames, and metrics that weigh stacks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.errors import MetricError
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.profile import Profile

__all__ = [
    "FlameFrame",
    "flame_frame",
    "flame_losses",
    "flame_metrics",
    "flame_rows",
    "rounded_note",
    "shallow",
    "whole_numbers",
]

_PYTHON = re.compile(r"(?P<file>.*?):(?P<line>\d{1,9})@(?P<function>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FlameFrame:
    """The frame of a row.

    Attributes:
        name: Function, kernel or scope, with the device if there are several.
        file: File of a Python frame or of a line of a kernel, "" for others.
        line: Its line, 0 for others.
    """

    name: str
    file: str = ""
    line: int = 0


def flame_rows(profile: Profile) -> Profile:
    """Return the profile with the variants of a kernel as one row."""
    return profile.fold_variants()


def flame_frame(profile: Profile, row: int) -> FlameFrame:
    """Return the frame of a row."""
    name = profile.name(row)
    match = _PYTHON.fullmatch(name)
    if match is not None:
        function, file, line = match["function"], match["file"], int(match["line"])
        if profile.kind(row) is FrameKind.LINE:  # all of a kernel's are of one function
            function = f"{file.rpartition('/')[2]}:{line} {function}".rstrip()
        return FlameFrame(function, file, line)
    device = profile.device(row)
    if device is not None and len(profile.devices) > 1:
        name += f" [{device.kind}:{device.index}]"
    return FlameFrame(name)


def flame_metrics(profile: Profile) -> list[tuple[MetricColumn, npt.NDArray[Any]]]:
    """Return the metrics that add up over the tree, with each row's own values.

    NaN and negative values have no width: they are 0 here.

    Raises:
        MetricError: There is none.
    """
    found = []
    for column in profile.columns.values():
        if column.spec.aggregation is Aggregation.INCLUSIVE and column.kind.is_number:
            known = column.known & (column.values > 0)
            if known.any():
                found.append((column, np.where(known, column.values, 0)))
    if not found:
        have = ", ".join(profile.columns) or "none"
        raise MetricError(
            f"a flame graph needs a metric that adds up and is above 0; the profile has: {have}"
        )
    return found


def flame_losses(profile: Profile, kept: Sequence[str]) -> tuple[str, ...]:
    """Return messages about parts of this profile that a flame graph lacks.

    Args:
        profile: The profile.
        kept: Names of the metrics that are written.
    """
    notes = []
    facts = {
        "variants of kernels": profile.variants,
        "distributions": profile.distributions,
        "use of devices": profile.device_use,
        "provenance": profile.provenance,
    }
    lost = [what for what, known in facts.items() if len(known)]
    if lost:
        notes.append(f"a flame graph cannot hold {', '.join(lost)}")
    columns = {name: each for name, each in profile.columns.items() if bool(each.valid.any())}
    others = [name for name in columns if name not in kept]
    if others:
        notes.append(f"these metrics are left out: {', '.join(others)}")
    negative = [
        name for name in kept if bool((columns[name].values[columns[name].valid] < 0).any())
    ]
    if negative:
        notes.append(f"negative values are left out of {', '.join(negative)}")
    return tuple(notes)


def rounded_note(profile: Profile, kept: Sequence[str]) -> tuple[str, ...]:
    """Return a message about metrics that are rounded to whole numbers."""
    rounded = [
        column.spec.name
        for column, own in flame_metrics(profile)
        if column.spec.name in kept
        and column.kind is not ValueKind.INT
        and bool((own != np.rint(own)).any())
    ]
    return (f"values are rounded to whole numbers: {', '.join(rounded)}",) if rounded else ()


def whole_numbers(column: MetricColumn, own: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return values as whole numbers, the largest that 64 bits hold at most."""
    if column.kind is ValueKind.INT:
        return own.astype(np.int64)
    found: npt.NDArray[np.int64] = np.minimum(np.rint(own), 2.0**63 - 1024).astype(np.int64)
    return found


def shallow(profile: Profile, depth: int) -> Profile:
    """Return the profile with levels below ``depth`` summed up there."""
    # Distributions are not written, and need not be merged.
    bare = replace(profile, distributions={})
    return bare.fold_below(depth) if int(profile.depths().max()) > depth else bare
