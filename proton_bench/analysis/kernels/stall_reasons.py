"""Meanings of stall reasons, and remedies.

The reasons of NVIDIA GPUs are those of the section "Warp Stall Reasons" (metrics reference) of the
Kernel Profiling Guide of Nsight Compute, those of AMD GPUs of rocprofiler-sdk's page on PC sampling
of CDNA 3 and 4; both in our words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.values import DerivedMetric, MetricValues, quotient
from proton_bench.errors import MetricError
from proton_bench.model.arrays import Array
from proton_bench.model.metrics.metric import Aggregation, MetricSpec
from proton_bench.model.profile import Profile

_SUFFIX = "/samples"
ALL = "num_samples"
REASON = "stalled_"
SELECTED = f"{REASON}selected"
_WITH_REASON = "num_stalled_samples"
_CUDA, _HIP = "CUDA", "HIP"
# Outcomes of a sample's cycle; the parts add up to all samples.
ISSUED, STALLED, NOT_ISSUED = "issued", "stalled", "not_issued"
PARTS = {
    ISSUED: "the sampled warp issued an instruction",
    STALLED: "it waited while another warp of its scheduler issued one",
    NOT_ISSUED: "its scheduler issued nothing: latency that no other warp hid",
}


@dataclass(frozen=True, slots=True)
class SampleForm:
    """Meaning of the sample metrics of one vendor.

    Attributes:
        total: The metric that counts samples.
        parts: Each part by the metrics that it is a sum of, with their signs.
    """

    total: str
    parts: Mapping[str, Mapping[str, int]]


_NVIDIA_FORM = SampleForm(
    _WITH_REASON,
    {
        ISSUED: {SELECTED: 1},
        STALLED: {_WITH_REASON: 2, ALL: -1, SELECTED: -1},
        NOT_ISSUED: {ALL: 1, _WITH_REASON: -1},
    },
)
_AMD_FORM = SampleForm(ALL, {ISSUED: {ALL: 1, _WITH_REASON: -1}, STALLED: {_WITH_REASON: 1}})


def sample_form(profile: Profile) -> SampleForm:
    """Return the meaning of a profile's sample metrics, by its GPUs."""
    if not find_metric(_WITH_REASON, profile.columns):
        return _AMD_FORM
    kinds = {device.kind for device in profile.devices} & {_CUDA, _HIP}
    if len(kinds) == 1:
        return _NVIDIA_FORM if _CUDA in kinds else _AMD_FORM
    full = find_metric(SELECTED, profile.columns)  # AMD GPUs select no warps
    column = None if full is None else profile.columns[full]
    is_selecting = (
        column is not None
        and column.kind.is_number
        and bool((column.values[column.valid] > 0).any())
    )
    return _NVIDIA_FORM if is_selecting else _AMD_FORM


def has_samples(profile: Profile) -> bool:
    """Return whether a profile has PC samples."""
    full = find_metric(ALL, profile.columns)
    return full is not None and profile.columns[full].kind.is_number


def is_sample_count(base: str) -> bool:
    """Return whether a metric, by its base name in lower case, counts PC samples."""
    return base in {ALL, _WITH_REASON} or base.startswith(REASON)


def _offered(profile: Profile, numbers: Sequence[str] = ()) -> tuple[str, ...]:
    del numbers
    if not has_samples(profile):
        return ()
    recorded = [
        MetricSpec(name).base.lower()
        for name, column in profile.columns.items()
        if column.kind.is_number
    ]
    form = sample_form(profile)
    parts = [
        part for part, sums in form.parts.items() if all(metric in recorded for metric in sums)
    ]
    reasons = [base for base in recorded if base.startswith(REASON)]
    return tuple(f"{name}{_SUFFIX}" for name in (*parts, *reasons))


def _values(profile: Profile, name: str) -> MetricValues:
    """Return part / all samples of each row, from 0 to 1, with those of the rows below."""
    shown = name.strip().lower()
    known = _offered(profile)
    if shown not in known:
        have = f"known are {', '.join(known)}" if known else "this file has no PC samples"
        raise MetricError(f"metric {name!r} is not a ratio of samples: {have}")
    part = shown.removesuffix(_SUFFIX)
    form = sample_form(profile)
    total = find_metric(form.total, profile.columns) or form.total
    values, valid = quotient(_part(profile, part), profile.inclusive(total), profile.covered(total))
    return MetricValues(shown, Aggregation.INCLUSIVE, values, valid, _meaning(part))


def _part(profile: Profile, part: str) -> Array:
    """Return samples of a part, or by a metric of its own."""
    found: Array = np.zeros(len(profile), dtype=np.int64)
    for metric, sign in sample_form(profile).parts.get(part, {part: 1}).items():
        found = found + sign * profile.inclusive(find_metric(metric, profile.columns) or metric)
    return found


def _meaning(part: str) -> str:
    said = PARTS.get(part, "")
    return f"share of the samples of the row and all rows below it: {said}" if said else ""


# Parts of the samples of a row, such as ``stalled_wait/samples``.
STALL_RATIOS = DerivedMetric(
    re.compile(f".*{_SUFFIX}", re.DOTALL), offered=_offered, values=_values
)

NVIDIA_SOURCE = "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html"
AMD_SOURCE = "https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/cdna3-cdna4-pc-sampling.html"


@dataclass(frozen=True, slots=True)
class StallReason:
    """Why a warp issued no instruction when it was sampled.

    Attributes:
        name: As in the metric, without ``stalled_``.
        meaning: What the warp waited for.
        remedy: What may shorten the wait, or "".
        source: The vendor's page.
    """

    name: str
    meaning: str
    remedy: str
    source: str = NVIDIA_SOURCE

    @property
    def metric(self) -> str:
        """Name of the metric that counts it."""
        return f"{REASON}{self.name}"


_NVIDIA = (
    StallReason(
        "long_scoreboard",
        "waits for data of global, local, texture or surface memory (L1TEX)",
        "load earlier (more num_stages), reuse what is loaded, or run more warps",
    ),
    StallReason(
        "short_scoreboard",
        "waits for data of shared memory, special functions or other units behind the MIO queue",
        "fewer or wider accesses to shared memory, without bank conflicts; fewer exp, sin, rsqrt",
    ),
    StallReason(
        "wait",
        "waits out the fixed latency of the instruction before",
        "more independent work per warp; little to gain where other warps issue meanwhile",
    ),
    StallReason(
        "barrier",
        "waits for the other warps of its block at a barrier",
        "fewer barriers, evenly divided work, smaller blocks (num_warps)",
    ),
    StallReason(
        "math_pipe_throttle",
        "its arithmetic unit is busy",
        "the unit is what limits the kernel: use another one, or a cheaper type",
    ),
    StallReason(
        "gmma",
        "waits for a matrix instruction of its warp group",
        "keep more of them in flight; where they limit the kernel, that is its peak",
    ),
    StallReason(
        "mio_throttle",
        "the queue to shared memory and special functions is full",
        "fewer and wider accesses to shared memory, fewer special functions and branches",
    ),
    StallReason(
        "lg_throttle",
        "the queue for local and global memory is full",
        "fewer and wider accesses to memory; registers may have been spilled",
    ),
    StallReason(
        "tex_throttle",
        "the queue for texture and other L1TEX work is full",
        "fewer and wider accesses to memory, spread over the kernel",
    ),
    StallReason(
        "imc_miss",
        "waits for a constant that the cache of immediates does not hold",
        "read constants by all threads of a warp from one address",
    ),
    StallReason(
        "no_instruction",
        "waits for its next instruction: not fetched yet, or not in the instruction cache",
        "shorter code: unroll and inline less; very short kernels have it at their start",
    ),
    StallReason(
        "branch_resolving",
        "waits for the target of a branch",
        "fewer branches and jumps",
    ),
    StallReason(
        "membar",
        "waits at a memory barrier until accesses are visible",
        "fewer fences, of no wider scope than is needed",
    ),
    StallReason(
        "drain",
        "has ended and waits until its stores are out",
        "wider, coalesced stores; less to store at once at the end",
    ),
    StallReason(
        "dispatch_stall",
        "was picked, but the dispatcher held it back",
        "units or registers conflict; look at instructions issued at the same time",
    ),
    StallReason("sleeping", "all its threads sleep, yield or have been blocked", "wake it earlier"),
    StallReason("misc", "a reason of the hardware that has no name", ""),
    StallReason(
        "not_selected",
        "was ready, but another warp was picked",
        "enough warps to hide latency; fewer may be enough",
    ),
    StallReason("selected", "issued an instruction: no stall", ""),
)
_AMD = (
    StallReason(
        "alu_dependency", "waits for an arithmetic result", "more independent work in a wave"
    ),
    StallReason("waitcnt", "waits for memory at an s_waitcnt", "load earlier, or run more waves"),
    StallReason("internal_instruction", "runs an instruction that issues nothing", ""),
    StallReason("arbiter_win_ex_stall", "was picked, but its unit could not start", "another unit"),
    StallReason("other_wait", "waits for something else, such as a barrier or a message", ""),
)
_KNOWN = {
    reason.name: reason
    for reason in (
        *_NVIDIA,
        *(StallReason(each.name, each.meaning, each.remedy, AMD_SOURCE) for each in _AMD),
    )
}


def explain_stall(metric: str) -> StallReason | None:
    """Return the reason of a metric: ``stalled_wait``, ``wait``; None if unknown."""
    return _KNOWN.get(metric.strip().lower().removeprefix(REASON))
