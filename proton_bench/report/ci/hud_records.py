"""Records of PyTorch's benchmark database, version 3, which its HUD shows.

https://github.com/pytorch/pytorch/wiki/PyTorch-OSS-benchmark-infra
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from proton_bench.report.ci.series import Series
from proton_bench.support.text import json_text

__all__ = ["hud_records"]

_BENCHMARK = "proton_bench"


def hud_records(series: Iterable[Series]) -> bytes:
    """Return one record for each value; its other fields are texts, as the database requires."""
    return (json_text(json.dumps([_record(each) for each in series], indent=1)) + "\n").encode()


def _record(series: Series) -> dict[str, Any]:
    extra = {"unit": series.unit, "runs": str(series.runs), "verdict": series.verdict}
    numbers = {"base": series.base, "change": series.change}
    extra |= {key: repr(value) for key, value in numbers.items() if math.isfinite(value)}
    name = f"{series.metric} ({series.unit})" if series.unit else series.metric
    return {
        "benchmark": {"name": _BENCHMARK, "mode": "performance", "extra_info": {}},
        "model": {"name": series.name, "type": "call path"},
        "metric": {
            "name": name,
            "benchmark_values": [series.value],
            "extra_info": {key: value for key, value in extra.items() if value},
        },
    }
