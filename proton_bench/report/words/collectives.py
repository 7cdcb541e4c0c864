"""Sentences about collectives: how fast they were, and which rank the others waited for."""

from __future__ import annotations

from collections.abc import Iterator

from proton_bench.analysis.collectives import Operation, operations_of
from proton_bench.analysis.why.rank_findings import late_texts, slow_texts
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible
from proton_bench.support.units import bytes_text, count_text, duration_text

_MOST_SHOWN = 3


def collective_lines(profile: Profile) -> Iterator[str]:
    """Yield a line for each of the operations with the most time, and what slowed them down."""
    operations = operations_of(profile)
    for operation in operations[:_MOST_SHOWN]:
        yield visible(_line(operation))
    if len(operations) > _MOST_SHOWN:
        yield f"{count_text(len(operations) - _MOST_SHOWN, 'more collective')}"
    for _, _, text in (*late_texts(profile), *slow_texts(profile)):
        yield visible(text)


def _line(operation: Operation) -> str:
    text = f"{operation.name}: {count_text(operation.calls, 'call')}"
    if operation.bytes > 0:
        text += f" of {bytes_text(operation.bytes)}"
    if operation.size > 1:
        text += f" among {operation.size} ranks"
    if operation.time_ns > 0:
        text += f", {duration_text(operation.time_ns)} from arrival to end"
    if operation.compared:
        text += f", of it {duration_text(operation.transfer_ns)} after the last rank came (medians)"
    if (bus := operation.bus_bandwidth) is not None and operation.size > 1:
        text += f"; bus {bytes_text(bus)}/s"
    return text
