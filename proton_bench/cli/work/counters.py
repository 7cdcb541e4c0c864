"""The counters that ``proton view --counters`` adds to a profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proton_bench.analysis.counters.file import read_counters
from proton_bench.analysis.counters.headlines import add_hbm_traffic, headlines
from proton_bench.analysis.counters.join import join_counters
from proton_bench.analysis.counters.other_tools import CounterJoin
from proton_bench.analysis.metrics.derive import default_metrics
from proton_bench.model.profile import Profile
from proton_bench.report.text.counters import CounterReport, counter_document

__all__ = ["JoinedCounters"]


class JoinedCounters:
    """Counters of a file, joined with the rows of a profile.

    Args:
        profile: The profile.
        path: File of counters of another tool.

    Raises:
        UsageError: The file cannot be read.
        ProfileFormatError: It holds no counters that are known.
    """

    def __init__(self, profile: Profile, path: Path) -> None:
        file = read_counters(path)
        add_hbm_traffic(file)
        self._profile = profile
        self._source = str(path)
        self._join: CounterJoin = join_counters(profile, file)

    def extended(self, metrics: Sequence[str], sort: str | None) -> tuple[Profile, tuple[str, ...]]:
        """Return the profile with the shown counters, and the names of all shown metrics.

        Args:
            metrics: Requested metrics; none means the default ones and the most important counters.
            sort: Metric that orders the rows.
        """
        profile, join = self._profile, self._join
        shown = tuple(metrics) or (*default_metrics(profile), *headlines(join.file))
        asked = (*shown, sort) if sort else shown
        recorded = set(profile.columns)
        found = [name for name in map(join.find, asked) if name is not None]
        names = [name for name in found if name not in recorded]
        return join.extend(profile, dict.fromkeys(names)), shown

    def shown_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of sums and means."""
        return self._join.shown_names()

    def report(self) -> CounterReport:
        """Return a report about the file."""
        return CounterReport(self._join, self._source)

    def document(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return counter_document(self._join, self._source)
