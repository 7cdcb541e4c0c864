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
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.spans import with_self_times
from proton_bench.model.profile import Profile

__all__ = [
    "MAX_DEPTH",
    "UNITS",
    "FlameFrame",
    "depth_note",
    "flame_frame",
    "flame_losses",
    "flame_metrics",
    "flame_rows",
    "main_metric",
    "rounded_note",
    "run_times_ns",
    "shallow",
    "spelled_unit",
    "whole_numbers",
]

# Formats that write the whole path of each row: a file is as large as the rows times their depth.
MAX_DEPTH = 1000
# Preferred metrics of a flame graph; else the first one. Lines of kernels have only samples.
_FAVOURITES = ("num_samples", "time", "cycles", "cpu_time", "count")
# Units as pprof spells them.
UNITS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
_INT64 = range(2**63)
_PYTHON = re.compile(r"(?P<file>.*?):(?P<line>\d{1,9})@(?P<function>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FlameFrame:
    """The frame of a row.

    Attributes:
        name: Function, kernel or scope.
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
    """Return the frame of a row, with the device in its name if there are several."""
    frame, device = _source_frame(profile, row), profile.device(row)
    if frame.file or device is None or len(profile.devices) == 1:
        return frame
    return FlameFrame(f"{frame.name} [{device.kind}:{device.index}]")


def _source_frame(profile: Profile, row: int) -> FlameFrame:
    """Return the frame of a row as its name gives it."""
    name = profile.name(row)
    match = _PYTHON.fullmatch(name)
    if match is not None:
        function, file, line = match["function"], match["file"], int(match["line"])
        if profile.kind(row) is FrameKind.LINE:  # all of a kernel's are of one function
            function = f"{file.rpartition('/')[2]}:{line} {function}".rstrip()
        return FlameFrame(function, file, line)
    return FlameFrame(name)


def flame_metrics(profile: Profile) -> list[tuple[MetricColumn, npt.NDArray[Any]]]:
    """Return the metrics that add up over the tree, with each row's own values.

    Where none does, these are the self times of host ranges. NaN and negative values have no width:
    they are 0 here.

    Raises:
        MetricError: There is none.
    """
    found = _amounts(profile) or _amounts(with_self_times(profile))
    if not found:
        have = ", ".join(profile.columns) or "none"
        raise MetricError(
            f"a flame graph needs a metric that adds up and is above 0; the profile has: {have}"
        )
    return found


def _amounts(profile: Profile) -> list[tuple[MetricColumn, npt.NDArray[Any]]]:
    found = []
    for column in profile.columns.values():
        if column.spec.aggregation is Aggregation.INCLUSIVE and column.kind.is_number:
            known = column.known & (column.values > 0)
            if known.any():
                found.append((column, np.where(known, column.values, 0)))
    return found


def main_metric(profile: Profile) -> str:
    """Return the name of the metric to show first."""
    specs = [column.spec for column, _ in flame_metrics(profile)]
    # The unit does not matter: time in us is preferred to a count.
    bases = [spec.base.lower() for spec in specs]
    found = next((name for name in _FAVOURITES if name in bases), bases[0])
    return specs[bases.index(found)].name


def spelled_unit(spec: MetricSpec) -> str:
    """Return the unit of a metric as pprof spells it, "" for none."""
    return "bytes" if spec.base == "bytes" else UNITS.get(spec.unit, spec.unit)


def run_times_ns(profile: Profile) -> tuple[int, int]:
    """Return the start of the run since 1970 and its duration, 0 where unknown."""
    known = (profile.provenance.get(f"{what}_time_ns") for what in ("start", "end"))
    start, end = (each if type(each) is int and each in _INT64 else 0 for each in known)
    return start, max(end - start, 0) if start and end else 0


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


def depth_note(profile: Profile, most: int) -> tuple[str, ...]:
    """Return a message about levels below ``most``, which `shallow` sums up."""
    deepest = int(profile.depths().max())
    if deepest <= most:
        return ()
    return (f"levels below {most} of {deepest} are summed into those above",)


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
