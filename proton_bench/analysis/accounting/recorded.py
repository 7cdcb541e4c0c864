"""The part of a run that the rows of its profile cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton_bench.analysis.metrics.formula import SECONDS, find_metric
from proton_bench.model.metrics.spans import is_span
from proton_bench.model.profile import Profile

__all__ = ["Recorded", "recorded_of", "run_ns"]

_MOST_NS = 2**63


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded time and the duration of the run.

    Attributes:
        run_ns: From the start of the recording to its end, of all processes together.
        work_ns: Time of all launches and operators, summed over devices, streams and threads: it
            may exceed the run.
        scopes_ns: Time in outermost scopes, summed over threads; None if none was timed.
    """

    run_ns: int
    work_ns: float
    scopes_ns: float | None = None

    @property
    def share(self) -> float:
        """The work as a share of the run."""
        return self.work_ns / self.run_ns

    @property
    def parts(self) -> dict[str, float]:
        """Where the run went, by name; the times add up to it.

        {} if work or scopes lasted longer than the run, because several ran at the same time.
        """
        covered_ns = max(self.work_ns, self.scopes_ns or 0.0)
        if covered_ns > self.run_ns:
            return {}
        return {
            "in recorded work": self.work_ns,
            "elsewhere in scopes": covered_ns - self.work_ns,
            "without a row": self.run_ns - covered_ns,
        }


def recorded_of(profile: Profile) -> Recorded | None:
    """Return the recorded times of a run, None if the file does not say its duration."""
    length = run_ns(profile)
    if length is None:
        return None
    work = 0.0
    full = find_metric("time", profile.columns)
    if full is not None and profile.columns[full].kind.is_number:
        unit = SECONDS.get(profile.columns[full].spec.unit, 0.0) / SECONDS["ns"]
        work = float(profile.inclusive(full)[0]) * unit
    return Recorded(length, work, _outermost_ns(profile))


def run_ns(profile: Profile) -> int | None:
    """Return the duration of a recording, None if unknown.

    Durations of merged processes are added up.
    """
    parts = profile.provenance.get("parts")
    lengths = [_length(part) for part in (parts if isinstance(parts, tuple) else ())]
    if not lengths:
        return _length(profile.provenance)
    return sum(filter(None, lengths)) if all(lengths) else None


def _length(facts: Any) -> int | None:
    if not isinstance(facts, Mapping):
        return None
    started, ended = (facts.get(f"{what}_time_ns") for what in ("start", "end"))
    if type(started) is not int or type(ended) is not int:  # a flag is an int too
        return None
    length = ended - started
    return length if 0 < length < _MOST_NS else None


def _outermost_ns(profile: Profile) -> float | None:
    """Return the sum of wall times of rows without an ancestor with a wall time."""
    column = next(filter(is_span, profile.columns.values()), None)
    if column is None or not column.known.any():
        return None
    timed = np.flatnonzero(column.known)
    ends = np.maximum.accumulate(np.append(0, profile.subtree_end[timed]))[:-1]
    outermost = timed[timed >= ends]
    total = float(column.values[outermost].astype(np.float64).sum())
    return total * SECONDS[column.spec.unit] / SECONDS["ns"]
