"""The rules of verdicts: one table, tried from the top; the first that fits decides.

A unit is the limit of a kernel if it does at least 70 % of what this GPU's unit can do. Fractions
are divided by measured ceilings, because no kernel reaches the peak of a data sheet.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from proton_bench.analysis.kernels.stall_reasons import AMD_SOURCE, NVIDIA_SOURCE, explain_stall
from proton_bench.analysis.why.row_facts import COMPILATION, INPUT, QUANTITIES, RowFacts, Use
from proton_bench.analysis.why.verdict import Evidence
from proton_bench.model.frame import FrameKind
from proton_bench.support.units import count_text, duration_text

BOUND = 0.7  # of a ceiling
_HALF_POINT = 0.005
_ZERO_TENSOR = 0.05  # FP32 work reads as 3 % tensor
_ACTIVE = 0.7  # of the multiprocessors
_CAPPED = 0.92  # of the highest clock
_FILLED = 0.7  # of the multiprocessors that get a block
_TAIL = 0.25  # of the time
_SHORT_NS = 10_000.0  # launches are not faster than this from Python
_LITTLE_NS = 20_000.0
_STALLED = 0.5  # of the stalled samples
_LATENCY = 0.3  # of the stalled samples
_MOST_OF_PEAK = 1.05
_TENTHS = 0.5  # ratios below have two decimals
_REUSED = 1.2  # asked for / moved; smaller ratios may be errors of the counter
# If these were measured, it is unlikely that another unit of the GPU limits a kernel.
_COMPLETE = (
    *("tensor", "fp32", "fp64", "alu", "xu", "issue"),
    *("dram", "l2", "l2_requests", "l2_slice", "l1"),
)
_OF_LINES = frozenset({"dram", "l2", "l2_requests"})  # these move whole sectors
# Sectors of 32 bytes per request of L2, where both are at their peak: on an H200 a request had 1.0
# where each lane reads another line, 2.0 with 8 bytes between lanes, and 3.0 to 4.0 coalesced.
_SECTORS_AT_PEAKS = {"90": 3.0}
_FEW_SECTORS, _ALL_SECTORS = 1.5, 4.0
_LEAST_REQUESTS = 0.05  # of the peak; the ratio of less says little
_MANY_REQUESTS = 0.25
_WASTED = 0.4  # of the bytes that DRAM moved, the code asked for so much or less
_MUCH_MOVED = 0.4  # of the ceiling of DRAM
# A slice of L2 beside the mean of all: all accesses go to few addresses.
_HOT_SLICE, _HOTTER = 0.2, 4.0
_HOTTER_AT_ROOF = 2.0
_MANY_WARPS = 0.75  # of those that a multiprocessor holds

_GUIDE = "Nsight Compute's Kernel Profiling Guide, " + NVIDIA_SOURCE
_ROOFLINE = "Williams, Waterman and Patterson, Roofline, CACM 52, 2009: the roof that is near"
_BEST_PRACTICES = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html"

# The verdict of each unit at its roof, and the metrics of work that indicate the use of some.
_KIND_OF = {
    "tensor": "compute:tensor",
    "fp32": "compute:fp32",
    "fp64": "compute:fp64",
    "alu": "compute:alu",
    "xu": "compute:xu",
    "dram": "memory:dram",
    "l2": "memory:l2",
    "l2_requests": "memory:l2",
    "shared": "memory:shared",
    "l1": "memory:l1",
    "issue": "compute:issue",
}
_WORK = {
    "tensor": ("flops8", "flops16", "flops32"),
    "fp64": ("flops64",),
    "dram": ("bytes",),
}


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that fits a row.

    Attributes:
        short: What follows the kind in one short text: ``81 %``.
        evidence: The facts; never empty.
        gain: The most of the row's time that can be saved, from 0 to 1.
        idle: The same of the time in which the device was idle.
        helps: What helps in this case, if it is more than the rule knows.
    """

    short: str
    evidence: tuple[Evidence, ...]
    gain: float
    idle: float = 0.0
    helps: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    Attributes:
        kind: The verdict.
        find: Returns a match, or None.
        helps: What usually helps.
        source: Where the rule comes from.
    """

    kind: str
    find: Callable[[RowFacts], Match | None]
    helps: str
    source: str


def counter_evidence(quantity: str, use: Use, *, brief: bool = False) -> Evidence:
    """Return a use of a unit as evidence.

    Args:
        quantity: The unit.
        use: How much of it was used.
        brief: Whether it stands beside the evidence that decides.
    """
    words = QUANTITIES[quantity]
    done = _percent(use.ratio)
    sure = f" +- {use.half_ratio * 100:.0f}" if use.half_ratio >= _HALF_POINT else ""
    if quantity == "tensor" and use.fraction < _ZERO_TENSOR:
        text = f"{words} idle"
    elif brief or quantity == "sm_active":
        text = f"{words} {done}{sure} %"
    else:
        text = f"{done}{sure} % of what this GPU's {words} can do"
    return Evidence(f"counter.{quantity}", text, use.fraction, "fraction of peak")


def _percent(ratio: float) -> str:
    # A unit may do a little more than the usual ceiling, but no unit does more than it can.
    return f"{min(ratio, 1.0) * 100:.0f}"


# -- work other than kernels ---------------------------------------------------------------------
def _copies(facts: RowFacts) -> Match | None:
    if facts.kind is not FrameKind.COPY and not facts.name.startswith(("<memcpy", "<memset")):
        return None
    if _is_within_device(facts) is not None:
        return None
    count = count_text(facts.launches, "copy", "copies") if facts.launches > 0 else "copies"
    text = f"{count} of {duration_text(facts.time_ns)} in all"
    evidence = [Evidence("row.copy", text, facts.time_ns, "ns")]
    if facts.moved_bytes > 0:
        rate = facts.moved_bytes / facts.time_ns
        evidence.append(Evidence("row.rate", f"{rate:.1f} GB/s", rate, "GB/s"))
    direction = facts.name.strip("<>").partition(" ")[2]
    return Match(direction, tuple(evidence), 1.0)


def _is_within_device(facts: RowFacts) -> Match | None:
    """Return a match for copies within the device, and memsets, that need most of its bandwidth.

    Their bytes and times are recorded without counters. A copy reads each byte and writes it.
    """
    copies = facts.name.startswith("<memcpy D2D")
    if not (copies or facts.name.startswith("<memset")):
        return None
    used = facts.declared.get("bytes", 0.0) * (2.0 if copies else 1.0)
    if not BOUND <= used <= _MOST_OF_PEAK:  # more came from a cache
        return None
    rate = facts.moved_bytes * (2.0 if copies else 1.0) / facts.time_ns
    text = f"{rate:.0f} GB/s of DRAM, {_percent(used)} % of its peak"
    helps = "do without the copy: write where it is read, or fuse it into a kernel"
    return Match(
        f"{_percent(used)} %", (Evidence("row.rate", text, rate, "GB/s"),), 1.0, helps=helps
    )


def _waits(facts: RowFacts) -> Match | None:
    if not facts.name.startswith("nccl"):
        return None
    text = f"{facts.name} waits for the other ranks before it moves data"
    return Match("collective", (Evidence("row.collective", text, facts.time_ns, "ns"),), 1.0)


# -- counters ------------------------------------------------------------------------------------
def _limit(facts: RowFacts) -> tuple[str, Use] | None:
    """Return the unit that limits a kernel: of several the one nearest to its roof.

    Every instruction is issued, and data of shared memory passes L1, so these two come last. A wide
    estimate counts if all of it is near the roof, and forbids a verdict if only its upper end is.
    """
    if not facts.uses and not facts.withheld:
        return None
    known = dict(facts.uses)
    known |= {
        name: use for name, use in facts.withheld.items() if use.ratio - use.half_ratio >= BOUND
    }
    found = [
        (unit, known[unit]) for unit in _KIND_OF if unit in known and known[unit].ratio >= BOUND
    ]
    special = [each for each in found if each[0] not in {"issue", "l1"}]
    nearest = max(special or found, key=lambda each: each[1].ratio, default=None)
    if nearest is None or nearest[0] in {"issue", "l1"}:
        return nearest
    doubtful = (
        facts.withheld[unit] for unit in _KIND_OF if unit in facts.withheld and unit not in known
    )
    if any(use.ratio + use.half_ratio > nearest[1].ratio for use in doubtful):
        return None
    return nearest


def _beside(facts: RowFacts, quantity: str) -> tuple[Evidence, ...]:
    """Return the use of one unit, and of the two others that say most."""
    others = [each for each in ("tensor", "dram", "sm_active") if each != quantity]
    uses = facts.uses
    if quantity in facts.withheld:
        uses = {**uses, quantity: facts.withheld[quantity]}
    return tuple(
        counter_evidence(each, uses[each], brief=each != quantity)
        for each in (quantity, *others)
        if each in uses
    )


def _of_unit(kind: str) -> Callable[[RowFacts], Match | None]:
    units = [unit for unit, its in _KIND_OF.items() if its == kind]
    work = [metric for unit in units for metric in _WORK.get(unit, ())]

    def find(facts: RowFacts) -> Match | None:
        if kind == "memory:dram" and (match := _is_within_device(facts)) is not None:
            return match
        limit = _limit(facts)
        if limit is not None and limit[0] in _OF_LINES and _used_part(facts) is not None:
            return None  # busy with what is not used: `uncoalesced`
        if limit is not None:
            return _at_roof(facts, *limit) if limit[0] in units else None
        if any(unit in facts.uses for unit in units):  # what was measured beats what was declared
            return None
        declared = max((facts.declared.get(each, 0.0) for each in work), default=0.0)
        if not BOUND <= declared <= _MOST_OF_PEAK:  # caches serve more, or it was not done
            return None
        text = f"the declared work takes {declared * 100:.0f} % of the time at peak"
        work_done = Evidence("declared.work", text, declared, "fraction of peak")
        return Match(f"{declared * 100:.0f} %", (work_done,), max(0.0, 1.0 - declared))

    return find


def _at_roof(facts: RowFacts, unit: str, use: Use) -> Match:
    evidence = _beside(facts, unit)
    if _KIND_OF[unit].startswith("memory:"):
        evidence = (*evidence, *_asked(facts), *_coalescing(facts))
    elif facts.clock <= _CAPPED:
        evidence = (*evidence, _clock_evidence(facts))
    return Match(f"{_percent(use.ratio)} %", evidence, max(0.0, 1.0 - use.ratio))


def _asked_ratio(facts: RowFacts) -> float | None:
    """Return the bytes that the code asks for / those that DRAM moved, None if one is unknown."""
    asked, moved = facts.declared.get("code_bytes", 0.0), facts.uses.get("dram")
    if asked <= 0 or moved is None or moved.fraction <= moved.half_width:
        return None
    return asked / moved.fraction


def _asked(facts: RowFacts) -> tuple[Evidence, ...]:
    ratio = _asked_ratio(facts)
    if ratio is None:
        return ()
    text = f"its code asks for {ratio:.{1 if ratio >= _TENTHS else 2}f} x the bytes that DRAM moved"
    if ratio >= _REUSED:
        text += ": caches serve the rest, or it is masked"
    elif ratio <= 1 / _REUSED:
        text += ": lines are moved again, or for a part of them"
    return (Evidence("code.bytes", text, ratio, "of the bytes that DRAM moved"),)


def _sectors(facts: RowFacts) -> float | None:
    """Return the sectors of a request of L2, None if unknown."""
    sectors, requests = facts.uses.get("l2"), facts.uses.get("l2_requests")
    at_peaks = _SECTORS_AT_PEAKS.get(facts.device.arch) if facts.device is not None else None
    if sectors is None or requests is None or at_peaks is None:
        return None
    if requests.fraction - requests.half_width < _LEAST_REQUESTS:
        return None
    return at_peaks * sectors.fraction / requests.fraction


def _coalescing(facts: RowFacts) -> tuple[Evidence, ...]:
    sectors = _sectors(facts)
    if sectors is None or sectors > _FEW_SECTORS:
        return ()
    text = (
        f"a request of L2 has {sectors:.1f} sectors of 32 bytes, "
        f"{_ALL_SECTORS:.0f} if lanes read side by side"
    )
    return (Evidence("counter.sectors", text, sectors, "sectors per request"),)


def _used_part(facts: RowFacts) -> float | None:
    """Return which part of what is moved is used at most, None if accesses seem coalesced."""
    sectors, asked, moved = _sectors(facts), _asked_ratio(facts), facts.uses.get("dram")
    parts = []
    if sectors is not None and sectors <= _FEW_SECTORS:
        requests = facts.uses["l2_requests"]
        if requests.fraction - requests.half_width >= _MANY_REQUESTS:
            parts.append(sectors / _ALL_SECTORS)
    if facts.launch.local_bytes > 0:
        asked = None  # its code does not count spilled registers, which are moved too
    if asked is not None and asked <= _WASTED and moved is not None and moved.ratio >= _MUCH_MOVED:
        parts.append(asked)
    return min(parts, default=None)


def _is_uncoalesced(facts: RowFacts) -> Match | None:
    """Return a match if requests are many and small, unless another unit is at its roof."""
    used, limit = _used_part(facts), _limit(facts)
    if used is None or (limit is not None and limit[0] not in _OF_LINES):
        return None
    requests = facts.uses.get("l2_requests")
    beside = () if requests is None else (counter_evidence("l2_requests", requests, brief=True),)
    evidence = (*_coalescing(facts), *_asked(facts), *beside, *_beside(facts, "dram"))
    return Match(f"{used * 100:.0f} % used", evidence, 1.0 - used)


def _is_contended(facts: RowFacts) -> Match | None:
    """Return a match if one slice of L2 works much more than the others."""
    mean, busiest = facts.uses.get("l2_requests"), facts.uses.get("l2_slice")
    if mean is None or busiest is None:
        return None
    least = busiest.fraction - busiest.half_width
    hotter = least / max(mean.fraction, 1e-9)
    is_hot = least >= _HOT_SLICE and hotter >= _HOTTER
    if not (is_hot or (least >= BOUND and hotter >= _HOTTER_AT_ROOF)):
        return None
    text = (
        f"one slice of L2 at {_percent(busiest.fraction)} %, "
        f"all together at {_percent(mean.fraction)} %"
    )
    evidence = Evidence("counter.l2_slice", text, busiest.fraction, "fraction of peak")
    gain = max(1.0 - mean.fraction, 0.0)
    return Match("few addresses", (evidence, *_beside(facts, "sm_active")), gain)


def _clock_evidence(facts: RowFacts) -> Evidence:
    text = f"the SM clock was at {facts.clock * 100:.0f} % of its highest rate"
    return Evidence("counter.clock", text, facts.clock, "fraction of highest clock")


def _is_capped(facts: RowFacts) -> Match | None:
    """Return a match if the lower clock costs more than the unit leaves unused."""
    limit = _limit(facts)
    if limit is None or not _KIND_OF[limit[0]].startswith("compute:"):
        return None
    if not facts.clock <= _CAPPED:
        return None
    if facts.clock > limit[1].ratio:
        return None
    evidence = (_clock_evidence(facts), *_beside(facts, limit[0]))
    return Match(f"{facts.clock * 100:.0f} % clock", evidence, 1.0 - max(facts.clock, 0.0))


# -- launches ------------------------------------------------------------------------------------
def _is_launch_bound(facts: RowFacts) -> Match | None:
    device = facts.use_of_device
    if device is None or device.reason != "launch-bound" or not facts.mean_ns < _SHORT_NS:
        return None
    if facts.is_captured:
        return None
    launches = count_text(facts.launches, "launch", "launches")
    idle = device.use.idle_ns / device.use.wall_ns
    mean = f"{facts.mean_ns / 1e3:.1f} us"
    evidence = (
        Evidence("row.mean_time", f"{launches} of {mean}", facts.mean_ns, "ns"),
        Evidence(
            "device.idle",
            f"{device.device} idle {idle * 100:.0f} % between kernels",
            idle,
            "fraction",
        ),
    )
    part = min(facts.launches / device.use.launches, 1.0) if device.use.launches else 0.0
    return Match(mean, evidence, 0.0, idle=part)


def _grid_text(facts: RowFacts) -> str:
    blocks = f"{facts.launch.blocks:.0f} blocks" if facts.launch.blocks != 1.0 else "1 block"
    return f"{blocks} for {facts.launch.units:.0f} multiprocessors"


def _is_small(facts: RowFacts) -> Match | None:
    fill, waves = facts.launch.fill, facts.launch.waves
    active = facts.uses.get("sm_active")
    grid = Evidence("launch.grid", _grid_text(facts), facts.launch.blocks, "blocks")
    short = f"{facts.launch.blocks:.0f} of {facts.launch.units:.0f}"
    if facts.launch.blocks >= facts.launch.units:  # small and large grids, by their mean
        short = f"{fill * 100:.0f} % filled"
        text = f"some grids are small: {fill * 100:.0f} % of the multiprocessors have blocks (mean)"
        grid = Evidence("launch.fill", text, fill, "fraction of multiprocessors")
    if fill < _FILLED:
        if active is not None and active.fraction > _ACTIVE:
            return None
        return Match(short, (grid, *_beside(facts, "sm_active")), _unfilled(facts))
    # Blocks for all, but so little work that starting and ending is a large part of it.
    if active is None or not (waves <= 1 and facts.mean_ns < _LITTLE_NS):
        return None
    if active.fraction >= _ACTIVE:
        return None
    text = f"{facts.mean_ns / 1e3:.1f} us in less than one wave of blocks"
    little = Evidence("launch.waves", text, waves, "waves")
    return Match(f"{waves:.1f} waves", (little, *_beside(facts, "sm_active")), _unfilled(facts))


def _unfilled(facts: RowFacts) -> float:
    """Return the most that more blocks save: they fill the device then, or a unit has its limit.

    A multiprocessor holds several blocks, so one for each of them is not yet all that helps.
    """
    waves, active = facts.launch.waves, facts.uses.get("sm_active")
    filled = min(waves, facts.launch.fill) if math.isfinite(waves) else 0.0
    if active is not None:
        filled = min(filled, active.fraction)
    used = [facts.uses[unit].ratio for unit in _KIND_OF if unit in facts.uses]
    return max(1.0 - max(filled, *used, 0.0), 0.0)


def _has_tail(facts: RowFacts) -> Match | None:
    loss, waves = facts.launch.tail_loss, facts.launch.waves
    active = facts.uses.get("sm_active")
    if (
        active is not None
        and active.fraction + active.half_width < _ACTIVE
        and facts.launch.fill >= _FILLED
        and facts.mean_ns >= _LITTLE_NS
        and not loss >= _TAIL
    ):
        text = f"{_grid_text(facts)}, but some blocks last longer than the others"
        grid = Evidence("launch.grid", text, facts.launch.blocks, "blocks")
        evidence = (grid, *_beside(facts, "sm_active"))
        return Match(f"{_percent(active.fraction)} % active", evidence, 1.0 - active.fraction)
    # Blocks that take different times fill the gap: then multiprocessors stay active.
    if not loss >= _TAIL or (active is not None and active.fraction > 1.0 - loss / 2):
        return None
    text = f"{waves:.1f} waves of blocks: the last one leaves most multiprocessors empty"
    tail = Evidence("launch.waves", text, waves, "waves")
    return Match(f"{waves:.1f} waves", (tail, *_beside(facts, "sm_active")), loss)


# -- PC samples ----------------------------------------------------------------------------------
def _stall_evidence(facts: RowFacts, reason: str, share: float) -> Evidence:
    known = explain_stall(reason)
    meaning = f": {known.meaning}" if known is not None else ""
    place = f" at {facts.stalls.place}" if facts.stalls is not None and facts.stalls.place else ""
    text = f"{share * 100:.0f} % of stalls {reason.replace('_', ' ')}{place}{meaning}"
    return Evidence(f"samples.{reason}", text, share, "fraction of stalled samples")


_QUEUES = {"mio_throttle": "memory:shared", "lg_throttle": "memory:l1", "tex_throttle": "memory:l1"}


def _of_queue(kind: str) -> Callable[[RowFacts], Match | None]:
    unit = kind.removeprefix("memory:")

    def find(facts: RowFacts) -> Match | None:
        if facts.stalls is None or unit in facts.uses:
            return None
        reason, share = facts.stalls.shares[0]
        if _QUEUES.get(reason) != kind or share < _STALLED:
            return None
        known = explain_stall(reason)
        helps = known.remedy if known is not None else ""
        evidence = (_stall_evidence(facts, reason, share),)
        return Match(reason.replace("_", " "), evidence, share, helps=helps)

    return find


# Reasons that also mean that a unit is used fully: only its counter tells.
_AMBIGUOUS = {
    "long_scoreboard": ("dram", "l2", "l2_requests", "l2_slice", "l1"),
    "waitcnt": ("dram", "l2"),
    "short_scoreboard": ("shared", "xu"),
    "wait": ("issue", "fp64", "xu"),
}
_NO_LATENCY = {
    *("math_pipe_throttle", "gmma", "mio_throttle", "lg_throttle", "tex_throttle"),
    *("misc", "internal_instruction", "other_wait", "arbiter_win_ex_stall", "drain"),
}


def _is_latency(facts: RowFacts) -> Match | None:
    """Return a match if warps wait although no unit is near its roof."""
    uses = {unit: facts.uses[unit] for unit in _KIND_OF if unit in facts.uses}
    if any(use.ratio + use.half_ratio >= BOUND for use in uses.values()):
        return None
    largest = max(uses.items(), key=lambda each: each[1].ratio, default=None)
    evidence = [] if largest is None else [counter_evidence(*largest)]
    gain = 1.0 if largest is None else 1.0 - largest[1].ratio
    if facts.stalls is not None:
        reason, share = facts.stalls.shares[0]
        needed = _AMBIGUOUS.get(reason, ())
        is_told = all(facts.is_known(each) for each in needed) and reason not in _NO_LATENCY
        # Without counters other waits may hide that a unit is busy.
        if share >= (_LATENCY if uses else _STALLED) and is_told:
            known = explain_stall(reason)
            helps = known.remedy if known is not None else ""
            evidence.insert(0, _stall_evidence(facts, reason, share))
            # Without these stalls a warp takes less time by no more than their share.
            gain = min(gain, share)
            return Match(reason.replace("_", " "), tuple(evidence), gain, helps=helps)
    active = facts.uses.get("sm_active")
    if active is None or active.fraction < _ACTIVE:
        return None
    if not all(facts.is_known(each) for each in _COMPLETE):
        return None
    evidence.append(counter_evidence("sm_active", active))
    occupancy = facts.launch.occupancy
    if math.isfinite(occupancy):
        text = f"at most {occupancy * 100:.0f} % of the warps fit"
        evidence.append(Evidence("launch.occupancy", text, occupancy, "fraction"))
    helps = _FULL if occupancy >= _MANY_WARPS else ""
    return Match("no unit is busy", tuple(evidence), gain, helps=helps)


_COALESCE = (
    "neighbouring lanes read neighbouring addresses: another layout or order of the loops, a tile "
    "in shared memory for transposed reads, sorted indices"
)
_FULL = (
    "more independent work per warp: unrolled loops, more loads on their way; `-m pcsampling` "
    "names what warps wait for"
)
_HELPS = {
    "compute:tensor": "that is what the kernel is for: a smaller type (FP8), or less work",
    "compute:fp32": "tensor cores (TF32, BF16) for products, or fewer operations",
    "compute:fp64": "FP32 where the result allows it",
    "compute:alu": "fewer integer operations and comparisons: indices of 32 bits, computed once",
    "compute:xu": "fewer exp, log, sin, roots, divisions and conversions; exp2 in place of exp",
    "compute:issue": "fewer instructions: wider loads, less index arithmetic, fewer conversions",
    "memory:dram": "move less: fuse with the kernels around it, smaller types, no copies",
    "memory:l2": "larger tiles, so that data is reused in shared memory; fewer atomics",
    "memory:l1": "coalesced and wider accesses; no spilled registers",
    "memory:shared": "no bank conflicts; wider accesses; keep data in registers; fewer reductions "
    "across lanes and warps, whose shuffles pass it too",
}
_ROOF_RULES = tuple(
    Rule(
        kind,
        _of_unit(kind),
        _HELPS[kind],
        _ROOFLINE,
    )
    for unit, kind in _KIND_OF.items()
    if unit != "l2_requests"  # with the sectors
)
_QUEUE_RULES = tuple(
    Rule(
        kind,
        _of_queue(kind),
        _HELPS[kind],
        _GUIDE,
    )
    for kind in ("memory:shared", "memory:l1")
)

RULES: tuple[Rule, ...] = (
    Rule(
        "copy-engine",
        _copies,
        "keep data on the device; pinned memory with non_blocking=True overlaps with kernels",
        _BEST_PRACTICES,
    ),
    Rule(
        "waiting",
        _waits,
        "balance the ranks (proton merge --stragglers), overlap with the computation",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/index.html",
    ),
    Rule(
        "power-capped",
        _is_capped,
        "a higher power limit, better cooling, no locked clocks; smaller types take less power",
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
    ),
    *_ROOF_RULES,
    Rule(
        "contention",
        _is_contended,
        "fewer atomics on the same addresses: reduce within a block first, or into several copies",
        _GUIDE,
    ),
    Rule(
        "uncoalesced",
        _is_uncoalesced,
        _COALESCE,
        _BEST_PRACTICES,
    ),
    Rule(
        "launch-bound",
        _is_launch_bound,
        "CUDA graphs: torch.compile(mode='reduce-overhead'), larger batches, fused kernels",
        "https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",
    ),
    Rule(
        "small-grid",
        _is_small,
        "more blocks: smaller tiles, split along K, larger batches, or other work beside it",
        _BEST_PRACTICES,
    ),
    Rule(
        "tail",
        _has_tail,
        "even work per block, smaller blocks, a grid that is a multiple of what the GPU holds, a "
        "persistent kernel",
        _GUIDE,
    ),
    *_QUEUE_RULES,
    Rule(
        "latency",
        _is_latency,
        "more warps or more independent work per warp; `-m pcsampling` names what they wait for",
        f"{_GUIDE}; {AMD_SOURCE}",
    ),
)


# -- on the host -----------------------------------------------------------------------------------
# By the length of calls, because their limits are not counted: a call that takes about as long as
# torch needs to begin an operator is overhead, and of a longer one it is said how long it took.
SHORT_CALL_NS = 10_000.0  # of which torch's dispatch, checks and allocation are a large part

COMPILERS = "https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html"
LOADERS = "https://docs.pytorch.org/docs/stable/data.html"
_TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_BACKENDS = ("gloo:", "nccl:")  # of torch.distributed, in the names of collectives
_OPERATOR = "::"  # in the names of torch's
_COMPILED = "Torch-Compiled Region"
_PRODUCT = re.compile(r"mm(_|$)|addbmm|matmul|linear|conv|dot_product|einsum|lstm|gru")
_MOVE = re.compile(r"copy|clone|contiguous|::to$|::cat$|::stack$|index|gather|scatter|embedding")


def is_short(facts: RowFacts) -> bool:
    """Return whether calls of an operator of torch take so little that they are overhead."""
    return _OPERATOR in facts.name and facts.mean_ns < SHORT_CALL_NS


def help_for(name: str) -> str:
    """Return what usually helps with a row of this name; "" for operators that can be fused."""
    if name.startswith(_COMPILED):
        return "mode='max-autotune', larger inputs, fewer regions"
    if _OPERATOR not in name:
        return "less work or waiting in it, or other threads and processes beside it"
    if _PRODUCT.search(name):
        return "a thread per free processor (torch.set_num_threads), BF16 where it has units"
    if _MOVE.search(name):
        return "fewer copies: keep layout, type and device, write results in place"
    return ""


def _calls(facts: RowFacts) -> Evidence:
    calls = count_text(facts.launches, "call")
    text = f"{calls} of {duration_text(facts.mean_ns)}, without operators below"
    return Evidence("row.mean_time", text, facts.mean_ns, "ns")


def _serves(purpose: str, words: str) -> Callable[[RowFacts], Match | None]:
    def find(facts: RowFacts) -> Match | None:
        if not (facts.is_on_host and facts.purpose == purpose):
            return None
        text = f"{duration_text(facts.time_ns)} to {words}"
        evidence = [Evidence(f"row.{purpose}", text, facts.time_ns, "ns")]
        if facts.launches > 0:
            evidence.append(_calls(facts))
        return Match("", tuple(evidence), 1.0)

    return find


def _is_overhead(facts: RowFacts) -> Match | None:
    if not facts.is_on_host or not is_short(facts):
        return None
    return Match(f"{duration_text(facts.mean_ns)} a call", (_calls(facts),), 1.0)


def _is_work(facts: RowFacts) -> Match | None:
    if not facts.is_on_host:
        return None
    evidence = Evidence("row.time", f"{duration_text(facts.time_ns)} in all", facts.time_ns, "ns")
    short = ""
    if facts.launches > 0:
        evidence, short = _calls(facts), f"{duration_text(facts.mean_ns)} a call"
    return Match(short, (evidence,), 1.0, helps=help_for(facts.name))


def _is_exchange(facts: RowFacts) -> Match | None:
    if not (facts.is_on_host and facts.name.startswith(_BACKENDS) and facts.launches > 0):
        return None
    return Match(f"{duration_text(facts.mean_ns)} a call", (_calls(facts),), 1.0)


CPU_RULES: tuple[Rule, ...] = (
    Rule(
        "waiting",
        _is_exchange,
        "merge the ranks: proton why then names the one that the others wait for",
        _TUNING,
    ),
    Rule(
        "input-bound",
        _serves(INPUT, "read batches of a DataLoader"),
        "num_workers of the DataLoader, so that it is read during the step; a faster transform",
        LOADERS,
    ),
    Rule(
        "compile-bound",
        _serves(COMPILATION, "compile"),
        "a cache that lasts, fixed shapes, fewer graph breaks; of no weight if it is once",
        COMPILERS,
    ),
    Rule(
        "overhead",
        _is_overhead,
        "fewer and larger calls: batches, operators on whole tensors, torch.compile",
        _TUNING,
    ),
    Rule(
        "elapsed",
        _is_work,
        "torch.compile, which fuses operators; smaller types",
        _TUNING,
    ),
)
