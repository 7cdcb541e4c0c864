"""Findings of merged ranks: one that comes late to collectives, and slow transfers."""

from __future__ import annotations

from collections.abc import Iterator

from proton_bench.analysis.collectives import Operation, is_collective, operations_of
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import BUSY, Claim, Evidence
from proton_bench.model.profile import Profile
from proton_bench.support.units import count_text, duration_text

_OFTEN = 0.5  # of the calls: no rank is last so often by chance
_LEAST_LATE = 0.25  # of the time that the transfer takes
_MOSTLY = 0.75  # of the calls
_SLOW = 1.25  # of the others' time


def late_texts(profile: Profile) -> Iterator[tuple[Operation, int, str]]:
    """Yield the operations for which one rank is late, its position, and a sentence."""
    for operation in operations_of(profile):
        for at, rank in enumerate(operation.ranks):
            late, late_ns = operation.late[at], operation.late_ns[at]
            if late <= _OFTEN * operation.compared or late_ns < _LEAST_LATE * operation.transfer_ns:
                continue
            text = f"rank {rank} was late in {late} of {operation.compared} {operation.name}, by "
            text += f"{duration_text(late_ns)} in the median"
            if operation.places[at]:
                text += f"; it was longer than the others in {operation.places[at]}"
            yield operation, at, text


def slow_texts(profile: Profile) -> Iterator[tuple[Operation, int, str]]:
    """Yield the operations in which transfers of one rank are slow, its position, a sentence."""
    for operation in operations_of(profile):
        for at, rank in enumerate(operation.ranks):
            ratio, slowest = operation.slowness[at], operation.slowest[at]
            if not ratio >= _SLOW or slowest < _MOSTLY * operation.together:
                continue
            before = operation.ranks[at - 1]
            text = (
                f"transfers to rank {rank} (in a ring from rank {before}) run at {1 / ratio:.2g} "
            )
            text += f"of the others' bandwidth in {slowest} of {operation.together} "
            text += f"{operation.name} to which all ranks came together"
            yield operation, at, text


def slow_ranks(run: WholeRun) -> Iterator[Claim]:
    """Find ranks that come late, so that the others wait."""
    for operation, at, text in late_texts(run.recorded):
        waited_ns = sum(operation.waited_ns)
        evidence = [
            Evidence("ranks.late", text, operation.late_ns[at], "ns"),
            Evidence("ranks.waited", f"ranks waited {duration_text(waited_ns)}", waited_ns, "ns"),
        ]
        error_ns = operation.clock_error_ns
        if error_ns is not None:
            clocks = f"clocks of several hosts, aligned within {duration_text(error_ns)}"
            evidence.append(Evidence("ranks.clock", clocks, error_ns, "ns"))
        pools, rows = _parts(run, operation.name, operation.lost_ns[at])
        yield Claim(text, tuple(evidence), pools=pools, rows=rows)


def slow_links(run: WholeRun) -> Iterator[Claim]:
    """Find ranks whose transfers take longer than those of the others."""
    for operation, at, text in slow_texts(run.recorded):
        ratio = operation.slowness[at]
        gain_ns = (ratio - 1.0) / ratio * operation.transfer_ns * operation.calls
        calls = f"{count_text(operation.calls, 'call')} with {duration_text(operation.transfer_ns)}"
        evidence = [
            Evidence("ranks.slow", text, 1.0 / ratio, "fraction"),
            Evidence("ranks.transfer", f"{calls} of transfer", operation.transfer_ns, "ns"),
        ]
        pools, rows = _parts(run, operation.name, gain_ns)
        yield Claim(text, tuple(evidence), pools=pools, rows=rows)


def _parts(run: WholeRun, name: str, gain_ns: float) -> tuple[dict[str, float], dict[int, float]]:
    """Return the pool and the rows that a gain is taken from: those of that operation first."""
    own_ns = run.verdicts.facts.own_ns
    rows = [row for row in run.verdicts.facts.rows() if is_collective(run.profile.name(row))]
    rows = [row for row in rows if run.profile.name(row) == name] or rows
    whole_ns = float(sum(own_ns[row] for row in rows))
    part = min(gain_ns / whole_ns, 1.0) if whole_ns > 0 else 0.0
    rest_ns = gain_ns - part * whole_ns
    pools = {BUSY: rest_ns} if rest_ns > 0 else {}
    return pools, {row: float(own_ns[row]) * part for row in rows}
