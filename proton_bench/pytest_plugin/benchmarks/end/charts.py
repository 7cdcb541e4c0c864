"""Files for charts of other tools, from the gate or from benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.gate.judge.outcome import Outcome
from proton_bench.pytest_plugin.benchmarks.end.pytest_benchmark import pytest_benchmark_document
from proton_bench.pytest_plugin.benchmarks.record import BenchmarkRecord
from proton_bench.pytest_plugin.benchmarks.settings import PYTEST_BENCHMARK, Settings
from proton_bench.report.ci.chart_files import CHART_FORMATS
from proton_bench.report.ci.series import Series, series_of
from proton_bench.support.files import write_file
from proton_bench.support.text import visible

__all__ = ["write_charts"]

_MOST_NAME = 2000


def write_charts(
    settings: Settings, records: Sequence[BenchmarkRecord], outcome: Outcome | None
) -> None:
    """Write the requested files; each is complete or missing.

    Args:
        settings: Which files.
        records: Records of the benchmarks of this process.
        outcome: The gate's outcome from fresh processes, None without a gate.

    Raises:
        OutputError: A file cannot be written.
    """
    series = [] if outcome is None else list(series_of(outcome))
    series = series or [_series(record) for record in records]
    for name, path in settings.written:
        if name == PYTEST_BENCHMARK:
            write_file(path, pytest_benchmark_document(records, settings.project))
        else:
            write_file(path, CHART_FORMATS[name](series, outcome).decode())


def _series(record: BenchmarkRecord) -> Series:
    return Series(
        name=visible(record.id, _MOST_NAME),
        metric="median",
        unit="ns",
        value=record.statistics()["median"],
    )
