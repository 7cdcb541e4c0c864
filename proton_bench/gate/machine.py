"""Device, tools and conditions of runs, and the meaning of differences.

=====  =====================================================  ====================================
tier   what                                                   a difference
=====  =====================================================  ====================================
HARD   kind of device, architecture, name of the GPU, ...     the runs cannot be compared
UNIT   this very GPU, this machine                            of a stored base: no regression is
                                                              certain; in turn on both: none
TOOL   driver, CUDA, Triton, torch, Python, profiler, ...     is reported
STATE  throttled clocks, other processes on the GPU, lost     costs a pair its runs; where all
       records, unfinished runs; another temperature          pairs differ, without pairs, and for
                                                              a temperature: none is certain
=====  =====================================================  ====================================

A missing fact is not a difference.
"""

from __future__ import annotations

import math
import os
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.decision import Background, Limits, decide, weigh
from proton_bench.model.arrays import Floats
from proton_bench.model.profile import Profile
from proton_bench.recording.gpu.nvidia import gpu_facts

CANARY_SCOPE = "<canary>"
WARM_UP_SCOPE = "<warm-up>"
# On the log scale: 1 %.
LARGEST_SHIFT = 0.01


@dataclass(frozen=True, slots=True)
class CanaryShift:
    """Change of the canary kernels between the sides.

    Attributes:
        count: Canary kernels that ran in every run.
        shift: The mean of their changes on the log scale, NaN if unknown.
        low: Lower end of its 95 % interval, NaN with a single run on a side.
        high: Upper end.
    """

    count: int = 0
    shift: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def moved(self) -> bool:
        """Whether the machine's speed changed between the sides."""
        return self.low > LARGEST_SHIFT or self.high < -LARGEST_SHIFT

    @property
    def is_steady(self) -> bool:
        """Whether it did not; neither holds if the runs cannot tell."""
        return self.low > -LARGEST_SHIFT and self.high < LARGEST_SHIFT


def shift_of(base: Floats, new: Floats) -> CanaryShift:
    """Return the shift of canary kernels between the sides.

    Args:
        base: ``ln`` of their times, one line for each run, one column for each kernel; NaN for
            unknown.
        new: The same of the new side.
    """
    count = base.shape[1]
    if not count:
        return CanaryShift()
    nothing, limits = np.zeros(1), Limits(np.array([LARGEST_SHIFT]), np.ones(1))
    before, after = (side.mean(axis=1, keepdims=True) for side in (base, new))
    background = Background(nothing, nothing, ["median"])
    evidence = weigh(before, after, (), background=background, margin=limits.margin, fewest_runs=2)
    found = decide(evidence, limits)
    return CanaryShift(count, *(float(each[0]) for each in (found.effect, found.low, found.high)))


def log_clocks(runs: Sequence[Run]) -> Floats:
    """Return ``ln`` of the SM clock of each run, NaN if it was not measured."""
    return np.array([_log_clock(run) for run in runs], dtype=np.float64)


def _log_clock(run: Run) -> float:
    canary = run.profile.provenance.get("canary")
    clock = canary.get("sm_clock_hz") if isinstance(canary, Mapping) else None
    if isinstance(clock, bool) or not isinstance(clock, int | float):
        return math.nan
    return math.log(clock) if math.isfinite(clock) and clock > 0 else math.nan


def tick_of(profile: Profile, unit: str) -> float:
    """Return the tick in the unit of the times: the largest that a collector reports, else 1 ns.

    Args:
        profile: A run.
        unit: Unit of the compared metric; units other than ns have no tick.
    """
    if unit != "ns":
        return 0.0
    collectors = profile.provenance.get("collectors")
    ticks = [1.0]
    for facts in collectors.values() if isinstance(collectors, Mapping) else ():
        devices = facts.get("devices") if isinstance(facts, Mapping) else None
        for device in devices if isinstance(devices, tuple) else ():
            tick = device.get("tick_ns") if isinstance(device, Mapping) else None
            if isinstance(tick, int | float) and 0 < tick <= 1e6:
                ticks.append(float(tick))
    return max(ticks)


_IDENTITY = ("host", "pid", "start_time_ns")


def check_replicates(runs: Sequence[Run]) -> None:
    """Find copies of one run, by host, process and start time.

    Raises:
        UsageError: There are copies; the message names two.
    """
    seen: dict[tuple[object, ...], str] = {}
    for run in runs:
        identity = identity_of(run)
        if identity is None:
            continue
        if identity in seen:
            raise UsageError(
                f"{seen[identity]!a} and {run.source!a} are the same run (process {identity[1]} "
                f"of {identity[0]!a}): name each run once, and record every run in its own process"
            )
        seen[identity] = run.source


def identity_of(run: Run) -> tuple[object, ...] | None:
    """Return what copies of a run have in common, None if it is unknown."""
    found = tuple(run.profile.provenance.get(key) for key in _IDENTITY)
    return found if all(isinstance(each, str | int) for each in found) else None


class Tier(StrEnum):
    """How much a difference matters."""

    HARD = "hard"
    UNIT = "unit"
    TOOL = "tool"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between runs.

    Attributes:
        tier: How much it matters.
        fact: Its name.
        base: Value of the base runs, "" for none.
        new: Value of the new runs.
    """

    tier: Tier
    fact: str
    base: str
    new: str


# Facts of a whole run and of a GPU by their key in the provenance.
_OF_RUN = {
    "backend": Tier.HARD,
    "host": Tier.UNIT,
    "mode": Tier.TOOL,
    "context": Tier.TOOL,
    "proton_bench": Tier.TOOL,
    "python": Tier.TOOL,
    "system": Tier.TOOL,
    "torch": Tier.TOOL,
    "triton": Tier.TOOL,
    "numpy": Tier.TOOL,
    "cuda": Tier.TOOL,
    "hip": Tier.TOOL,
}
_OF_GPU = {
    "name": Tier.HARD,
    "memory_bytes": Tier.HARD,
    "mig": Tier.HARD,
    "ecc": Tier.HARD,
    "uuid": Tier.UNIT,
    "driver": Tier.TOOL,
    "power_limit_w": Tier.TOOL,
}
# Bits of NVML: clocks limited by temperature, by the board or by its power supply. Large kernels
# often reach the power cap (4), so it matters only if some runs reached it and others did not.
SLOWED = {8: "hardware slowdown", 32: "heat", 64: "temperature of the board", 128: "power brake"}
_POWER_CAP = 4
_WARMER_C = 10


def examine_runs(base: Sequence[Run], new: Sequence[Run]) -> tuple[Finding, ...]:
    """Return all differences and disturbances of the runs, the most severe first."""
    facts = [facts_of(run.profile) for run in (*base, *new)]
    keys = dict.fromkeys(key for each in facts for key in each)
    found = []
    for tier, fact in keys:
        known = [each.get((tier, fact)) for each in facts]
        sides = [_text(side) for side in (known[: len(base)], known[len(base) :])]
        if len({value for value in known if value is not None}) > 1:
            found.append(Finding(tier, fact, *sides))
    found += _kinds_apart(base, new)
    found += _disturbances(base, new)
    return tuple(sorted(found, key=lambda each: (list(Tier).index(each.tier), each.fact)))


def machine_of(profile: Profile) -> dict[str, str]:
    """Return the facts that identify a machine and its device: those of `HARD` and `UNIT`."""
    return {
        fact: value
        for (tier, fact), value in facts_of(profile).items()
        if tier in {Tier.HARD, Tier.UNIT}
    }


def _text(values: Sequence[str | None]) -> str:
    return ", ".join(sorted({value for value in values if value is not None}))


def facts_of(profile: Profile) -> dict[tuple[Tier, str], str]:
    """Return the facts of a run about its machine, device and tools, each with its tier."""
    provenance = profile.provenance
    facts: dict[tuple[Tier, str], str] = {}
    kinds: dict[str, set[str]] = {}
    for device in profile.devices:
        parts = [f"architecture {device.arch}"] if device.arch else []
        parts += [f"{device.num_sms} multiprocessors"] if device.num_sms else []
        kinds.setdefault(device.kind, set()).add(", ".join(parts) or device.kind)
    for kind, models in kinds.items():
        facts[Tier.HARD, f"{kind} device"] = "; ".join(sorted(models))
    for key, tier in _OF_RUN.items():
        if isinstance(provenance.get(key), str | int | float):
            facts[tier, key] = str(provenance[key])
    gpus = list(_used_gpus(profile, "gpus_at_start"))
    for key, tier in _OF_GPU.items():
        values = sorted({str(gpu[key]) for gpu in gpus if key in gpu})
        if values:
            facts[tier, f"GPU {key}"] = ", ".join(values)
    return facts


def _used_gpus(profile: Profile, key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the driver's facts about the GPUs of the run, or about all if these are unknown."""
    listed = profile.provenance.get(key)
    gpus = [gpu for gpu in listed if isinstance(gpu, Mapping)] if isinstance(listed, tuple) else []
    used = {_plain_uuid(uuid) for uuid in _uuids_of_records(profile)}
    chosen = [gpu for gpu in gpus if _plain_uuid(gpu.get("uuid")) in used]
    yield from chosen or gpus


def _uuids_of_records(profile: Profile) -> Iterator[Any]:
    collectors = profile.provenance.get("collectors")
    for facts in collectors.values() if isinstance(collectors, Mapping) else ():
        devices = facts.get("devices") if isinstance(facts, Mapping) else None
        for device in devices if isinstance(devices, tuple) else ():
            if isinstance(device, Mapping) and "uuid" in device:
                yield device["uuid"]


def _plain_uuid(uuid: Any) -> str:
    return str(uuid).lower().removeprefix("gpu-")


def _kinds_apart(base: Sequence[Run], new: Sequence[Run]) -> list[Finding]:
    """Find sides without a common kind of device."""
    sides = [{each.kind for run in side for each in run.profile.devices} for side in (base, new)]
    if not (sides[0] and sides[1]) or sides[0] & sides[1]:
        return []
    names = [", ".join(sorted(side)) for side in sides]
    return [Finding(Tier.HARD, "kind of device", *names)]


def disturbances_of(runs: Sequence[Run]) -> dict[int, str]:
    """Return which runs were disturbed, each with what disturbed it: ``clocks: heat``."""
    found: dict[int, str] = {}
    for fact, marks in _marks(runs).items():
        for place, mark in enumerate(_odd(marks) if fact == "power cap" else marks):
            if mark:
                found.setdefault(place, f"{fact}: {mark}")
    return found


def _odd(marks: Sequence[str]) -> list[str]:
    """Return the marks of the runs that are unlike most others."""
    met = sum(map(bool, marks))
    if 2 * met <= len(marks):
        return list(marks)
    return ["" if mark else "not met" for mark in marks] if met < len(marks) else [""] * met


def _marks(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Return what disturbed each run, "" for nothing, by fact."""
    return {
        "clocks": [_slowed(run.profile) for run in runs],
        "power cap": _unlike([_met_power_cap(run.profile) for run in runs]),
        "other processes": [_others(run.profile) for run in runs],
        "lost records": [", ".join(sorted(run.profile.dropped)) for run in runs],
        "unfinished": ["yes" if run.profile.partial else "" for run in runs],
    }


def _disturbances(base: Sequence[Run], new: Sequence[Run]) -> list[Finding]:
    runs = (*base, *new)
    temperatures = _apart([_temperature(run.profile) for run in runs], len(base))
    found = []
    for fact, marks in {**_marks(runs), "temperature": temperatures}.items():
        if any(marks):
            sides = (marks[: len(base)], marks[len(base) :])
            found.append(Finding(Tier.STATE, fact, *(_text([*filter(None, s)]) for s in sides)))
    return found


def _throttle_bits(profile: Profile) -> int:
    bits = 0
    for key in ("gpus_at_start", "gpus_at_end"):
        for gpu in _used_gpus(profile, key):
            reasons = gpu.get("throttle_reasons")
            bits |= reasons if isinstance(reasons, int) else 0
    return bits


def _slowed(profile: Profile) -> str:
    bits = _throttle_bits(profile)
    return ", ".join(name for bit, name in SLOWED.items() if bits & bit)


def _met_power_cap(profile: Profile) -> str:
    return "met" if _throttle_bits(profile) & _POWER_CAP else ""


def _temperature(profile: Profile) -> float:
    """Return the temperature of the GPUs at the end of a run, NaN if unknown."""
    known = [gpu.get("temperature_c") for gpu in _used_gpus(profile, "gpus_at_end")]
    numbers = [each for each in known if isinstance(each, int | float)]
    return max(numbers, default=math.nan)


def _apart(temperatures: Sequence[float], first_new: int) -> list[str]:
    """Return them as texts if they differ so much that clocks may too."""
    sides = temperatures[:first_new], temperatures[first_new:]
    middles = [statistics.median(known) for side in sides if (known := _known(side))]
    if len(middles) < len(sides) or abs(middles[0] - middles[1]) <= _WARMER_C:
        return [""] * len(temperatures)
    return [f"{each:g} C" if math.isfinite(each) else "" for each in temperatures]


def _known(temperatures: Sequence[float]) -> list[float]:
    return [each for each in temperatures if math.isfinite(each)]


def _others(profile: Profile) -> str:
    """Return how many other processes computed on the GPUs of a run."""
    pids: set[int] = set()
    for key in ("gpus_at_start", "gpus_at_end"):
        for gpu in _used_gpus(profile, key):
            listed = gpu.get("other_processes")
            known = listed if isinstance(listed, tuple | list) else ()
            pids.update(pid for pid in known if isinstance(pid, int))
    return str(len(pids)) if pids else ""


def _unlike(marks: list[str]) -> list[str]:
    return marks if len(set(marks)) > 1 else [""] * len(marks)


def left_out(arrangement: Arrangement) -> dict[int, str]:
    """Return the disturbed pairs, each with what disturbed it, counted from 0.

    It is empty if the sides are apart, or if every pair was disturbed: then no regression of the
    whole experiment is certain.
    """
    if not arrangement.is_paired:
        return {}
    pairs = len(arrangement.order)
    found: dict[int, str] = {}
    for run, what in disturbances_of((*arrangement.base, *arrangement.new)).items():
        found.setdefault(run % pairs, what)
    return found if len(found) < pairs else {}


def without(arrangement: Arrangement, pairs: dict[int, str]) -> Arrangement:
    """Return the arrangement without these pairs."""
    kept = [at for at in range(len(arrangement.order)) if at not in pairs]
    return Arrangement(
        tuple(arrangement.base[at] for at in kept),
        tuple(arrangement.new[at] for at in kept),
        tuple(arrangement.order[at] for at in kept),
    )


# -- what disturbs it now ------------------------------------------------------------------------
# Fewer periods in which a limit stopped a container do not matter.
_STOPPED = 0.01
_CGROUPS = "sys/fs/cgroup"


def disturbances_now(
    root: Path = Path("/"),
    gpus: Callable[[], Sequence[Mapping[str, Any]]] = gpu_facts,
    environ: Mapping[str, str] = os.environ,
) -> tuple[str, ...]:
    """Return what will disturb measurements, each as half a sentence; nothing if it is quiet.

    What cannot be read is not reported.

    Args:
        root: Folder with ``proc`` and ``sys``.
        gpus: Queries the GPUs, see `gpu_facts`.
        environ: Says in ``CUDA_VISIBLE_DEVICES`` which of them count.
    """
    found = (_load(root), _limit(root), _clocks(root), *_gpus(gpus(), environ))
    return tuple(filter(None, found))


def _load(root: Path) -> str:
    """Compare the load of the last minute with the cores; measured programs need one.

    Work that has ended, such as a build before the gate, is still part of that load, but then this
    process is the only one that runs.
    """
    seen = re.match(r"(\d+\.\d+)(?: \S+ \S+ (\d+)/)?", _content(root / "proc/loadavg"))
    cores = len(re.findall(r"^cpu\d+ ", _content(root / "proc/stat"), flags=re.MULTILINE))
    if seen is None or not cores or float(seen[1]) <= max(cores - 1, 0.5) or seen[2] in {"0", "1"}:
        return ""
    plural = "" if cores == 1 else "s"
    return (
        f"load {float(seen[1]):.1f} on {cores} core{plural}: other work takes the CPU from the "
        "measured program"
    )


def _limit(root: Path) -> str:
    """Return how often the CPU limit of a group of this process stopped its processes."""
    worst = 0.0
    for folder in _groups(root):
        counts = dict(re.findall(r"^(nr_\w+) (\d+)$", _content(folder / "cpu.stat"), re.MULTILINE))
        periods = int(counts.get("nr_periods", 0))
        worst = max(worst, int(counts.get("nr_throttled", 0)) / periods if periods else 0.0)
    if worst <= _STOPPED:
        return ""
    return (
        f"the CPU limit of this container stopped it in {100.0 * worst:.0f} % of periods: give it "
        "more CPU"
    )


def _groups(root: Path) -> list[Path]:
    """Return the folders of the control groups of this process, of both versions, and above."""
    found: list[Path] = []
    for line in _content(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names and "cpu" not in names.split(","):
            continue
        own = PurePosixPath("/", path)
        above = [each for each in (own, *own.parents) if ".." not in each.parts]
        # In a container the path may be that of the host; its own top folder is there anyway.
        for top in [f"{_CGROUPS}/{names}", f"{_CGROUPS}/cpu"] if names else [_CGROUPS]:
            found += [root / top / each.relative_to("/") for each in above]
    return found


def _clocks(root: Path) -> str:
    """Return the range of CPU clocks, if a governor changes them."""
    lows, highs, governors = [], [], set()
    for policy in sorted((root / "sys/devices/system/cpu/cpufreq").glob("policy*")):
        governor = _content(policy / "scaling_governor").strip()
        ends = [_content(policy / f"scaling_{end}_freq").strip() for end in ("min", "max")]
        if governor in {"", "performance"} or not all(end.isdecimal() for end in ends):
            continue
        low, high = (int(end) / 1e6 for end in ends)  # kHz
        if low < high:
            lows.append(low)
            highs.append(high)
            governors.add(governor)
    if not governors:
        return ""
    named = " and ".join(sorted(governors))
    return (
        f"governor {named} changes CPU clocks between {min(lows):.1f} and {max(highs):.1f} GHz: "
        "use performance"
    )


def _gpus(gpus: Sequence[Mapping[str, Any]], environ: Mapping[str, str]) -> list[str]:
    slowed: dict[str, list[str]] = {}
    shared = []
    for index, facts in enumerate(gpus):
        if not _is_visible(index, facts, environ.get("CUDA_VISIBLE_DEVICES")):
            continue
        bits = facts.get("throttle_reasons")
        for bit, name in SLOWED.items():
            if isinstance(bits, int) and bits & bit:
                slowed.setdefault(name, []).append(str(index))
        if facts.get("other_processes"):
            shared.append(str(index))
    found = [f"{name} limits clocks of GPU {', '.join(where)}" for name, where in slowed.items()]
    return found + ([f"other processes run on GPU {', '.join(shared)}"] if shared else [])


def _is_visible(index: int, facts: Mapping[str, Any], listed: str | None) -> bool:
    """Return whether CUDA shows a GPU; its numbers are the driver's if all GPUs are alike."""
    if listed is None:
        return True
    names = [each.strip() for each in listed.split(",")]
    uuid = str(facts.get("uuid", ""))
    return str(index) in names or any(each and uuid.startswith(each) for each in names)


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
