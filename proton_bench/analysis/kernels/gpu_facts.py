"""What the collectors of a GPU say of themselves: sampled program counters, counters, GPM, records.

A file may contain anything, so a fact of another type than it should have is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from proton_bench.analysis.metrics.occupancy import resident_blocks
from proton_bench.model.metrics.counter_columns import COUNTED_TIME
from proton_bench.model.profile import Profile

_MOST_REGISTERS = 1 << 31  # or bytes, warps: no kernel needs more
_MOST_RATE = 2.0**63

_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class CounterFacts:
    """How hardware counters were sampled.

    Attributes:
        bursts: Bursts with samples.
        samples: Samples, over all devices.
        lost_samples: Samples that came without times or values.
        error: Why nothing or not everything was sampled, or "".
    """

    bursts: int = 0
    samples: int = 0
    lost_samples: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class SamplingFacts:
    """How program counters were sampled.

    Attributes:
        period_cycles: Cycles between samples of a multiprocessor, 0 if unknown.
        asked_cycles: The requested cycles, 0 for none.
        is_automatic: Whether the backend chose the period.
        samples: Samples that were read.
        dropped: Samples for which the hardware had no room.
        doubled: Times that the period was doubled because the hardware's buffer was full.
        attribution: How samples were assigned to call paths, "" if the file does not say.
        error: Why nothing or not everything was sampled, or "".
    """

    period_cycles: int = 0
    asked_cycles: int = 0
    is_automatic: bool = False
    samples: int = 0
    dropped: int = 0
    doubled: int = 0
    attribution: str = ""
    error: str = ""

    @property
    def is_estimated(self) -> bool:
        """Whether call paths of one kernel share its samples by an estimate."""
        return self.attribution.startswith("estimated")


@dataclass(frozen=True, slots=True)
class GpmMeans:
    """Means of a device over the run.

    Attributes:
        device: Number of the device in CUDA; -1 stands for all.
        means: Percent of the unit's peak, or bytes per second, by name such as ``dram_pct``.
        sampled_ns: Length of the windows that they are from.
        missing: Why there are none, or no more; "" if nothing is missing.
    """

    device: int
    means: Mapping[str, float]
    sampled_ns: int
    missing: str


@dataclass(frozen=True, slots=True)
class RecordCost:
    """A kernel with records beside the same kernel without.

    Attributes:
        kernel: Name of the kernel.
        registers: Registers of a thread, with and without; None if unknown.
        shared_bytes: Bytes of shared memory of a block, with and without; None if unknown.
        blocks: Blocks that a multiprocessor holds, with and without; None if unknown.
        dropped_maxnreg: Limit of registers that Triton dropped because of records; 0 for none.
    """

    kernel: str
    registers: tuple[int, int] | None
    shared_bytes: tuple[int, int] | None
    blocks: tuple[int, int] | None
    dropped_maxnreg: int = 0


def counter_facts(profile: Profile) -> CounterFacts | None:
    """Return the facts of the sampling backend, None where counters were not sampled."""
    return _read(CounterFacts, _facts_of(profile, "counters"))


def sampling_facts(profile: Profile) -> SamplingFacts | None:
    """Return the facts of the sampling backend, None where program counters were not sampled."""
    return _read(SamplingFacts, _facts_of(profile, "pc_sampling"))


def gpm_means(profile: Profile) -> tuple[GpmMeans, ...]:
    """Return the means of each device, () if the run did not ask for them."""
    entries = profile.provenance.get("gpm")
    return tuple(
        GpmMeans(
            device=_number(entry, "device", default=-1),
            means=_means(entry.get("means")),
            sampled_ns=_number(entry, "sampled_ns"),
            missing=_text(entry, "missing"),
        )
        for entry in (entries if isinstance(entries, tuple) else ())
        if isinstance(entry, Mapping)
    )


def record_costs(profile: Profile) -> tuple[RecordCost, ...]:
    """Return the known costs of each kernel with records inside, in the order of loading."""
    return tuple(_cost(entry) for entry in _instrumented(profile))


def cpu_counter_error(profile: Profile) -> str:
    """Return why a run counted no instructions although it asked for them, "" for no reason."""
    return _text(_facts_of(profile, "cpu_counters"), "error")


def are_missing(profile: Profile) -> bool:
    """Return whether counters of kernels of GPUs were asked for, and no kernel has any."""
    if profile.provenance.get("backend") == "cpu" or COUNTED_TIME in profile.columns:
        return False
    return _has_mode(profile, "counters")


def came_too_late(profile: Profile) -> bool:
    """Return whether the file was written before counters of its kernels were computed.

    That happens when a session ends, as do the facts of collectors: partial files have neither.
    """
    return are_missing(profile) and not profile.provenance.get("collectors")


def is_written_meanwhile(profile: Profile) -> bool:
    """Return whether the file is of a phase that was over, written while its session recorded."""
    if profile.partial or "end_time_ns" in profile.provenance:  # of the whole session
        return False
    return _has_mode(profile, "periodic_flushing")


def _has_mode(profile: Profile, name: str) -> bool:
    modes = profile.provenance.get("mode")
    return isinstance(modes, str) and any(mode.split(":")[0] == name for mode in modes.split("+"))


def _facts_of(profile: Profile, key: str) -> Mapping[str, Any]:
    """Return the facts of the first collector that has some under this key."""
    collectors = profile.provenance.get("collectors")
    for facts in collectors.values() if isinstance(collectors, Mapping) else ():
        found = facts.get(key) if isinstance(facts, Mapping) else None
        if isinstance(found, Mapping) and found:
            return found
    return {}


def _read(form: type[_Record], facts: Mapping[str, Any]) -> _Record | None:
    """Return a record of facts, None without any; the type of each is that of its default."""
    if not facts:
        return None
    known = {}
    for each in fields(form):  # type: ignore[arg-type]  # a class of this module
        value = facts.get(each.name)
        if type(value) is type(each.default) and not (type(value) is int and value < 0):
            known[each.name] = value
    return form(**known)


def _number(facts: Mapping[str, Any], key: str, *, default: int = 0) -> int:
    value = facts.get(key)
    return value if type(value) is int and value >= 0 else default


def _text(facts: Mapping[str, Any], key: str) -> str:
    value = facts.get(key)
    return value if isinstance(value, str) else ""


def _means(facts: object) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in (facts.items() if isinstance(facts, Mapping) else ())
        if type(value) in {int, float} and math.isfinite(value) and 0 <= value < _MOST_RATE
    }


def _instrumented(profile: Profile) -> Iterator[Mapping[str, Any]]:
    found: Any = profile.provenance
    for key in ("collectors", "instrumentation", "kernels"):
        found = found.get(key) if isinstance(found, Mapping) else None
    for entry in found if isinstance(found, list | tuple) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            yield entry


def _cost(entry: Mapping[str, Any]) -> RecordCost:
    registers, shared = _pair(entry, "registers"), _pair(entry, "shared_bytes")
    warps, blocks = _need(entry, "warps"), None
    if warps and registers is not None and shared is not None:
        arch = str(entry.get("arch", ""))
        instrumented, plain = (
            resident_blocks(arch, warps, needs) for needs in zip(registers, shared, strict=True)
        )
        if instrumented is not None and plain is not None:
            blocks = (instrumented, plain)
    dropped = _need(entry, "dropped_maxnreg") or 0
    return RecordCost(str(entry["name"]), registers, shared, blocks, dropped)


def _pair(entry: Mapping[str, Any], key: str) -> tuple[int, int] | None:
    instrumented, plain = _need(entry, key), _need(entry, f"plain_{key}")
    return None if instrumented is None or plain is None else (instrumented, plain)


def _need(entry: Mapping[str, Any], key: str) -> int | None:
    value = entry.get(key)
    return value if type(value) is int and 0 <= value < _MOST_REGISTERS else None
