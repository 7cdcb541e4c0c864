"""The order of the runs of two sides in time: in turn, so that they pair, or apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.model.origin import Origin


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Runs in the order in which the gate reads them.

    Attributes:
        base: Base runs.
        new: New runs; of pairs, the n-th belongs to the n-th base run.
        order: For each pair +1 if the base ran first and -1 if the new side did; empty if the sides
            are apart.
    """

    base: tuple[Run, ...]
    new: tuple[Run, ...]
    order: tuple[float, ...] = ()

    @property
    def is_paired(self) -> bool:
        """Whether the runs pair."""
        return bool(self.order)

    @property
    def is_confounded(self) -> bool:
        """Whether the same side ran first in all of several pairs: drift looks like a change."""
        return len(self.order) > 1 and len(set(self.order)) == 1


def paired_as(base: Sequence[Run], new: Sequence[Run], base_first: Sequence[bool]) -> Arrangement:
    """Return runs that are known to pair.

    Raises:
        UsageError: The numbers of runs differ.
    """
    if not len(base) == len(new) == len(base_first):
        raise UsageError(
            f"{len(base)} base runs, {len(new)} new runs and the order of {len(base_first)} pairs "
            "do not go together: pairs have one run of each side"
        )
    return Arrangement(tuple(base), tuple(new), tuple(1.0 if each else -1.0 for each in base_first))


def arrange(base: Sequence[Run], new: Sequence[Run]) -> Arrangement:
    """Find out from the times of the runs whether they pair.

    They do if both sides have as many, on one machine, and the n-th of both ended before the next
    of either began. A single run on each side does not show that.
    """
    apart = Arrangement(tuple(base), tuple(new))
    hosts = {Origin.of(run.profile.provenance, "").host for run in (*base, *new)}
    if len(base) != len(new) or len(base) < 2 or len(hosts) > 1:
        return apart
    timed = [[(_span(run), run) for run in side] for side in (base, new)]
    if any(span is None for side in timed for span, _ in side):
        return apart
    sides = [sorted(side, key=lambda each: each[0] or (0, 0)) for side in timed]
    order, latest = [], None
    for (base_span, _), (new_span, _) in zip(*sides, strict=True):
        assert base_span is not None
        assert new_span is not None
        if latest is not None and min(base_span[0], new_span[0]) < latest:
            return apart
        latest = max(base_span[1], new_span[1])
        order.append(1.0 if base_span <= new_span else -1.0)
    return Arrangement(
        tuple(run for _, run in sides[0]), tuple(run for _, run in sides[1]), tuple(order)
    )


def _span(run: Run) -> tuple[int, int] | None:
    ends = [run.profile.provenance.get(key) for key in ("start_time_ns", "end_time_ns")]
    if not all(isinstance(each, int) for each in ends):
        return None
    return (ends[0], ends[1]) if ends[0] <= ends[1] else None  # type: ignore[return-value,operator]
