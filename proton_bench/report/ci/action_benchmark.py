"""JSON for github-action-benchmark (tool ``customSmallerIsBetter``), which charts it over commits.

https://github.com/benchmark-action/github-action-benchmark
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from proton_bench.report.ci.series import Series
from proton_bench.report.words.gate_reasons import part_text
from proton_bench.report.words.quantity import percent_text
from proton_bench.support.text import json_text

__all__ = ["action_benchmark"]


def action_benchmark(series: Iterable[Series]) -> bytes:
    """Return one entry for each value that is worse when it grows; rates are left out."""
    entries = [_entry(each) for each in series if each.grows_when_worse]
    return (json_text(json.dumps(entries, indent=1)) + "\n").encode()


def _entry(series: Series) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{series.name} [{series.metric}]",
        "unit": series.unit,
        "value": series.value,
    }
    if math.isfinite(series.low):
        # The action prints it after the value, so it is about the value.
        entry["range"] = f"± {part_text((series.high - series.low) / 2.0)}"
    if series.verdict:
        change = percent_text(series.change) if math.isfinite(series.change) else "unknown"
        entry["extra"] = f"{series.verdict}, {change} against the base, {series.runs} runs"
    return entry
