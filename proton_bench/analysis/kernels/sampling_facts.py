"""Facts about the sampling of program counters, from the provenance of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proton_bench.analysis.metrics.occupancy import resident_blocks
from proton_bench.model.profile import Profile

__all__ = ["RecordCost", "SamplingFacts", "record_costs", "sampling_facts"]

_MOST = 1 << 31  # no kernel needs more; a hostile file may claim it


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


def record_costs(profile: Profile) -> tuple[RecordCost, ...]:
    """Return the known costs of each kernel, in the order of loading.

    Args:
        profile: A profile; one without records inside kernels has none.
    """
    return tuple(_cost(entry) for entry in _entries(profile))


def _entries(profile: Profile) -> Iterator[Mapping[str, Any]]:
    found: Any = profile.provenance
    for key in ("collectors", "instrumentation", "kernels"):
        found = found.get(key) if isinstance(found, Mapping) else None
    for entry in found if isinstance(found, list | tuple) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            yield entry


def _cost(entry: Mapping[str, Any]) -> RecordCost:
    registers = _pair(entry, "registers")
    shared = _pair(entry, "shared_bytes")
    return RecordCost(
        str(entry["name"]),
        registers,
        shared,
        _blocks(entry, registers, shared),
        _number(entry, "dropped_maxnreg") or 0,
    )


def _blocks(
    entry: Mapping[str, Any], registers: tuple[int, int] | None, shared: tuple[int, int] | None
) -> tuple[int, int] | None:
    warps = _number(entry, "warps")
    if not warps or registers is None or shared is None:
        return None
    arch = str(entry.get("arch", ""))
    found = [resident_blocks(arch, warps, needs) for needs in zip(registers, shared, strict=True)]
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _pair(entry: Mapping[str, Any], key: str) -> tuple[int, int] | None:
    instrumented, plain = _number(entry, key), _number(entry, f"plain_{key}")
    return None if instrumented is None or plain is None else (instrumented, plain)


def _number(entry: Mapping[str, Any], key: str) -> int | None:
    value = entry.get(key)
    return value if type(value) is int and 0 <= value < _MOST else None


@dataclass(frozen=True, slots=True)
class SamplingFacts:
    """How program counters were sampled.

    Attributes:
        period_cycles: Cycles between samples of a multiprocessor, 0 if unknown.
        asked_cycles: The requested cycles, 0 for none.
        automatic: Whether the backend chose the period.
        samples: Samples that were read.
        dropped: Samples for which the hardware had no room.
        doubled: Times that the period was doubled because the hardware's buffer was full.
        drain_ns: Processor time of reading samples.
        publish_ns: Processor time of finding their lines and call paths.
        most_bytes: The most memory that they took.
        attribution: How samples were assigned to call paths, "" if the file does not say.
        error: Why nothing or not everything was sampled, or "".
    """

    period_cycles: int = 0
    asked_cycles: int = 0
    automatic: bool = False
    samples: int = 0
    dropped: int = 0
    doubled: int = 0
    drain_ns: int = 0
    publish_ns: int = 0
    most_bytes: int = 0
    attribution: str = ""
    error: str = ""

    @property
    def is_estimated(self) -> bool:
        """Whether call paths of one kernel share its samples by an estimate."""
        return self.attribution.startswith("estimated")


def sampling_facts(profile: Profile) -> SamplingFacts | None:
    """Return the facts of the sampling backend, or None."""
    collectors = profile.provenance.get("collectors")
    for facts in collectors.values() if isinstance(collectors, Mapping) else ():
        said = facts.get("pc_sampling") if isinstance(facts, Mapping) else None
        if isinstance(said, Mapping) and said:
            return _read(said)
    return None


def _read(said: Mapping[str, Any]) -> SamplingFacts:
    # A file may contain anything.
    def number(key: str) -> int:
        value = said.get(key)
        return value if type(value) is int and value >= 0 else 0

    def text(key: str) -> str:
        value = said.get(key)
        return value if isinstance(value, str) else ""

    return SamplingFacts(
        period_cycles=number("period_cycles"),
        asked_cycles=number("asked_cycles"),
        automatic=said.get("is_automatic") is True,
        samples=number("samples"),
        dropped=number("dropped"),
        doubled=number("doubled"),
        drain_ns=number("drain_ns"),
        publish_ns=number("publish_ns"),
        most_bytes=number("most_bytes"),
        attribution=text("attribution"),
        error=text("error"),
    )
