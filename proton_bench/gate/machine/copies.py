"""Checks that no two runs are copies of one run."""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError

__all__ = ["check_replicates", "identity_of"]

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
