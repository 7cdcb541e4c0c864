"""The rules of verdicts: one table, tried from the top; the first that fits decides.

A unit is the limit of a kernel if it does at least 70 % of what this GPU's unit can do. Fractions
are divided by measured ceilings, because no kernel reaches the peak of a data sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from proton_bench.analysis.kernels.stall_reasons import AMD_SOURCE, NVIDIA_SOURCE, explain_stall
from proton_bench.analysis.why.row_facts import QUANTITIES, RowFacts, Use
from proton_bench.analysis.why.verdict import Evidence
from proton_bench.model.frame import FrameKind
from proton_bench.support.units import count_text, duration_text

__all__ = ["BOUND", "RULES", "Match", "Rule", "counter_evidence"]

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
_REUSED = 1.2  # asked for / moved; smaller ratios may be errors of the counter
# If these were measured, it is unlikely that another unit of the GPU limits a kernel.
_COMPLETE = ("tensor", "fp64", "issue", "dram", "l2", "l1")
_HALF_RATE = 0.45  # of the issue slots fill the pipe of integers and comparisons

_GUIDE = "Nsight Compute's Kernel Profiling Guide, " + NVIDIA_SOURCE
_ROOFLINE = "Williams, Waterman and Patterson, Roofline, CACM 52, 2009: the roof that is near"
_BEST_PRACTICES = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html"

# The unit of a verdict, and the metrics of work that indicate its use.
_UNITS = {
    "compute:tensor": ("tensor", ("flops8", "flops16", "flops32")),
    "compute:fp32": ("fp32", ()),
    "compute:fp64": ("fp64", ("flops64",)),
    "memory:dram": ("dram", ("bytes",)),
    "memory:l2": ("l2", ()),
    "memory:shared": ("shared", ()),
    "memory:l1": ("l1", ()),
    "compute:issue": ("issue", ()),
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
        when: The condition in words.
        find: Returns a match, or None.
        helps: What usually helps.
        source: Where the rule comes from.
    """

    kind: str
    when: str
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
    elif brief or quantity in {"sm_active", "warps"}:
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
    count = count_text(int(facts.launches), "copy", "copies") if facts.launches > 0 else "copies"
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
    """Return the verdict of the unit that limits a kernel: of several the one nearest to its roof.

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
        (kind, known[quantity])
        for kind, (quantity, _) in _UNITS.items()
        if quantity in known and known[quantity].ratio >= BOUND
    ]
    special = [each for each in found if each[0] not in {"compute:issue", "memory:l1"}]
    nearest = max(special or found, key=lambda each: each[1].ratio, default=None)
    if nearest is None or nearest[0] in {"compute:issue", "memory:l1"}:
        return nearest
    doubtful = (
        facts.withheld[quantity]
        for quantity, _ in _UNITS.values()
        if quantity in facts.withheld and quantity not in known
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
    quantity, work = _UNITS[kind]

    def find(facts: RowFacts) -> Match | None:
        if kind == "memory:dram" and (match := _is_within_device(facts)) is not None:
            return match
        limit = _limit(facts)
        if limit is not None:
            if limit[0] != kind:
                return None
            ratio = limit[1].ratio
            evidence = _beside(facts, quantity)
            if kind.startswith("memory:"):
                evidence = (*evidence, *_asked(facts))
            if kind.startswith("compute:") and facts.clock <= _CAPPED:
                evidence = (*evidence, _clock_evidence(facts))
            return Match(f"{_percent(ratio)} %", evidence, max(0.0, 1.0 - ratio))
        if quantity in facts.uses:  # what was measured beats what was declared
            return None
        declared = max((facts.declared.get(each, 0.0) for each in work), default=0.0)
        if not BOUND <= declared <= _MOST_OF_PEAK:  # caches serve more, or it was not done
            return None
        text = f"the declared work takes {declared * 100:.0f} % of the time at peak"
        work_done = Evidence("declared.work", text, declared, "fraction of peak")
        return Match(f"{declared * 100:.0f} %", (work_done,), max(0.0, 1.0 - declared))

    return find


def _asked(facts: RowFacts) -> tuple[Evidence, ...]:
    """Return how much more the kernel's code asks for than DRAM moved, if both are known."""
    asked, moved = facts.declared.get("code_bytes", 0.0), facts.uses.get("dram")
    if asked <= 0 or moved is None or moved.fraction <= moved.half_width:
        return ()
    ratio = asked / moved.fraction
    text = f"its code asks for {ratio:.1f} x the bytes that DRAM moved"
    if ratio >= _REUSED:
        text += ": caches serve the rest, or it is masked"
    elif ratio <= 1 / _REUSED:
        text += ": lines are moved again, or for a part of them"
    return (Evidence("code.bytes", text, ratio, "of the bytes that DRAM moved"),)


def _clock_evidence(facts: RowFacts) -> Evidence:
    text = f"the SM clock was at {facts.clock * 100:.0f} % of its highest rate"
    return Evidence("counter.clock", text, facts.clock, "fraction of highest clock")


def _is_capped(facts: RowFacts) -> Match | None:
    """Return a match if the lower clock costs more than the unit leaves unused."""
    limit = _limit(facts)
    if limit is None or not limit[0].startswith("compute:") or not facts.clock <= _CAPPED:
        return None
    if facts.clock > limit[1].ratio:
        return None
    evidence = (_clock_evidence(facts), *_beside(facts, _UNITS[limit[0]][0]))
    return Match(f"{facts.clock * 100:.0f} % clock", evidence, 1.0 - max(facts.clock, 0.0))


# -- launches ------------------------------------------------------------------------------------
def _is_launch_bound(facts: RowFacts) -> Match | None:
    device = facts.use_of_device
    if device is None or device.reason != "launch-bound" or not facts.mean_ns < _SHORT_NS:
        return None
    if facts.is_captured:
        return None
    launches = count_text(int(facts.launches), "launch", "launches")
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
    used = [facts.uses[unit].ratio for unit, _ in _UNITS.values() if unit in facts.uses]
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
    quantity, _ = _UNITS[kind]

    def find(facts: RowFacts) -> Match | None:
        if facts.stalls is None or quantity in facts.uses:
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
    "long_scoreboard": ("dram", "l2", "l1"),
    "waitcnt": ("dram", "l2"),
    "short_scoreboard": ("shared",),
    "wait": ("issue", "fp64"),
}
_NO_LATENCY = {
    *("math_pipe_throttle", "gmma", "mio_throttle", "lg_throttle", "tex_throttle"),
    *("misc", "internal_instruction", "other_wait", "arbiter_win_ex_stall", "drain"),
}


def _is_latency(facts: RowFacts) -> Match | None:
    """Return a match if warps wait although no unit is near its roof."""
    uses = {name: facts.uses[name] for name, _ in _UNITS.values() if name in facts.uses}
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
    if "issue" in uses and uses["issue"].fraction >= _HALF_RATE:
        return None
    evidence.append(counter_evidence("sm_active", active))
    share_of_warps = facts.uses.get("warps")
    if share_of_warps is not None:
        evidence.append(counter_evidence("warps", share_of_warps))
    if math.isfinite(facts.launch.occupancy):
        text = f"at most {facts.launch.occupancy * 100:.0f} % of the warps fit"
        evidence.append(Evidence("launch.occupancy", text, facts.launch.occupancy, "fraction"))
    return Match("no unit is busy", tuple(evidence), gain)


_HELPS = {
    "compute:tensor": "that is what the kernel is for: a smaller type (FP8), or less work",
    "compute:fp32": "tensor cores (TF32, BF16) for products, or fewer operations",
    "compute:fp64": "FP32 where the result allows it",
    "compute:issue": "fewer instructions: wider loads, less index arithmetic, fewer conversions",
    "memory:dram": "move less: fuse with the kernels around it, smaller types, no copies",
    "memory:l2": "larger tiles, so that data is reused in shared memory; fewer atomics",
    "memory:l1": "coalesced and wider accesses; no spilled registers",
    "memory:shared": "no bank conflicts; wider accesses; keep data in registers",
}
_ROOF_RULES = tuple(
    Rule(
        kind,
        f"{QUANTITIES[quantity]} at {BOUND:.0%} of its ceiling or more"
        + (f", or by declared work ({', '.join(work)})" if work else ""),
        _of_unit(kind),
        _HELPS[kind],
        _ROOFLINE,
    )
    for kind, (quantity, work) in _UNITS.items()
)
_QUEUE_RULES = tuple(
    Rule(
        kind,
        f"{_STALLED:.0%} of stalled samples wait for its queue, and its counter is not recorded",
        _of_queue(kind),
        _HELPS[kind],
        _GUIDE,
    )
    for kind in ("memory:shared", "memory:l1")
)

RULES: tuple[Rule, ...] = (
    Rule(
        "copy-engine",
        "the row is a copy or a memset",
        _copies,
        "keep data on the device; pinned memory with non_blocking=True overlaps with kernels",
        _BEST_PRACTICES,
    ),
    Rule(
        "waiting",
        "the kernel is a collective of NCCL",
        _waits,
        "balance the ranks (proton merge --stragglers), overlap with the computation",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/index.html",
    ),
    Rule(
        "power-capped",
        f"an arithmetic unit is at its ceiling, the SM clock at {_CAPPED:.0%} of its highest rate "
        "or less, and this costs more than the unit leaves unused",
        _is_capped,
        "a higher power limit, better cooling, no locked clocks; smaller types take less power",
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
    ),
    *_ROOF_RULES,
    Rule(
        "launch-bound",
        "the device waits for the host between kernels, and this one takes less than "
        f"{_SHORT_NS / 1e3:.0f} us",
        _is_launch_bound,
        "CUDA graphs: torch.compile(mode='reduce-overhead'), larger batches, fused kernels",
        "https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",
    ),
    Rule(
        "small-grid",
        f"blocks for less than {_FILLED:.0%} of the multiprocessors; or a launch below "
        f"{_LITTLE_NS / 1e3:.0f} us in less than one wave, with less than {_ACTIVE:.0%} of them "
        "active",
        _is_small,
        "more blocks: smaller tiles, split along K, larger batches, or other work beside it",
        _BEST_PRACTICES,
    ),
    Rule(
        "tail",
        f"a last wave of blocks that costs {_TAIL:.0%} of the time or more; or blocks for all "
        f"multiprocessors in a launch of {_LITTLE_NS / 1e3:.0f} us or more, with less than "
        f"{_ACTIVE:.0%} of them active",
        _has_tail,
        "even work per block, smaller blocks, a grid that is a multiple of what the GPU holds, a "
        "persistent kernel",
        _GUIDE,
    ),
    *_QUEUE_RULES,
    Rule(
        "latency",
        f"no unit is at {BOUND:.0%} of its ceiling; {_LATENCY:.0%} of stalled samples (without "
        f"counters {_STALLED:.0%}) have one reason, or all units were measured",
        _is_latency,
        "more warps or more independent work per warp; `-m pcsampling` names what they wait for",
        f"{_GUIDE}; {AMD_SOURCE}",
    ),
)
