"""The formats for charts of other tools, by the names that options accept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from proton_bench.errors import UsageError
from proton_bench.gate.judge.outcome import Outcome
from proton_bench.report.ci.action_benchmark import action_benchmark
from proton_bench.report.ci.hud_records import hud_records
from proton_bench.report.ci.open_metrics import open_metrics
from proton_bench.report.ci.series import Series

__all__ = ["CHART_FORMATS", "ChartFile", "read_chart_files"]

CHART_FORMATS: dict[str, Callable[[Sequence[Series], Outcome | None], bytes]] = {
    "openmetrics": open_metrics,
    "github-action-benchmark": lambda series, _outcome: action_benchmark(series),
    "pytorch-hud": lambda series, _outcome: hud_records(series),
}


@dataclass(frozen=True, slots=True)
class ChartFile:
    """A wanted file.

    Attributes:
        format: A key of `CHART_FORMATS`, or another one of the caller.
        path: Where to write it.
    """

    format: str
    path: Path


def read_chart_files(
    texts: Sequence[str], option: str, more: Sequence[str] = ()
) -> tuple[ChartFile, ...]:
    """Parse texts of the form ``FORMAT=FILE``.

    Args:
        texts: Of the command line.
        option: Name of the option, for messages.
        more: Formats besides those of `CHART_FORMATS`.

    Raises:
        UsageError: A text has another form or an unknown format.
    """
    found = []
    known = (*CHART_FORMATS, *more)
    for text in texts:
        name, mark, file = text.partition("=")
        if not mark or not file:
            raise UsageError(f"{option} {text!a} is not FORMAT=FILE")
        if name not in known:
            raise UsageError(f"{option}: {name!a} is not a format; choose from: {', '.join(known)}")
        found.append(ChartFile(name, Path(file)))
    return tuple(found)
