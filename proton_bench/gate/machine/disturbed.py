"""Runs that something else disturbed, and what is left without them.

A clock that heat limits, or another process on the GPU, spoils one run. In pairs it costs the pair,
because the other run of it has nothing to be compared with.
"""

from __future__ import annotations

from proton_bench.gate.machine.fingerprint import disturbances_of
from proton_bench.gate.statistics.arrangement import Arrangement

__all__ = ["left_out", "without"]


def left_out(arrangement: Arrangement) -> dict[int, str]:
    """Return the disturbed pairs, each with what disturbed it, counted from 0.

    It is empty if the sides are apart, or if every pair was disturbed: then the conditions are
    those of the whole experiment.
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
