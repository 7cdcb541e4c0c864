"""Cost of records inside kernels: registers, shared memory, resident blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proton_bench.analysis.metrics.occupancy import resident_blocks
from proton_bench.model.profile import Profile

__all__ = ["RecordCost", "record_costs"]

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
