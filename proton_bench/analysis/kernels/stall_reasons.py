"""Meanings of stall reasons, and remedies.

The reasons of NVIDIA GPUs are those of the section "Warp Stall Reasons" (metrics reference) of the
Kernel Profiling Guide of Nsight Compute, those of AMD GPUs of rocprofiler-sdk's page on PC sampling
of CDNA 3 and 4; both in our words.
"""

from __future__ import annotations

from dataclasses import dataclass

from proton_bench.analysis.kernels.stalls import REASON

__all__ = ["AMD_SOURCE", "NVIDIA_SOURCE", "StallReason", "explain_stall", "stall_reasons"]

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


def stall_reasons() -> tuple[StallReason, ...]:
    """Return every reason that is known, those of NVIDIA GPUs first."""
    return tuple(_KNOWN.values())
