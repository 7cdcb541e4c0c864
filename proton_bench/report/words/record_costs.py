"""Sentences about kernels that records inside them made larger."""

from __future__ import annotations

from collections.abc import Iterator

from proton_bench.analysis.kernels.record_costs import RecordCost, record_costs
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = ["record_cost_notes"]

_MOST_KERNELS = 5


def record_cost_notes(profile: Profile) -> tuple[str, ...]:
    """Return a sentence for each kernel that runs differently because of records inside it.

    Args:
        profile: A profile; one without records inside kernels has none.
    """
    # A kernel compiled in several configurations has one sentence per difference.
    notes = [*dict.fromkeys(filter(None, map(_note, record_costs(profile))))]
    rest = len(notes) - _MOST_KERNELS
    more = (f"RECORDS: also for {count_text(rest, 'more kernel')}",) if rest > 0 else ()
    return (*notes[:_MOST_KERNELS], *more)


def _note(cost: RecordCost) -> str:
    changes = list(_changes(cost))
    return f"RECORDS: {visible(cost.kernel)} {'; '.join(changes)}" if changes else ""


def _changes(cost: RecordCost) -> Iterator[str]:
    needs = []
    if cost.registers is not None and cost.registers[0] != cost.registers[1]:
        needs.append(f"{cost.registers[0]} registers instead of {cost.registers[1]}")
    if cost.shared_bytes is not None and cost.shared_bytes[0] != cost.shared_bytes[1]:
        extra = cost.shared_bytes[0] - cost.shared_bytes[1]
        needs.append(f"{extra:+,d} B of shared memory")
    if needs:
        yield f"takes {' and '.join(needs)}"
    if cost.blocks is not None and cost.blocks[0] != cost.blocks[1]:
        fitting = count_text(cost.blocks[0], "program")
        verb = "fits" if cost.blocks[0] == 1 else "fit"
        yield f"{fitting} {verb} a multiprocessor instead of {cost.blocks[1]}"
    if cost.dropped_maxnreg:
        yield f"its maxnreg={cost.dropped_maxnreg} is dropped by Triton"
