"""What can be computed from profiles: derived metrics, selected rows, differences, data frames.

`proton_bench.analysis.dataframe` imports pandas; this room's other modules need numpy alone.
"""

from __future__ import annotations

from proton_bench.analysis.derive import (
    MetricValues,
    available_metrics,
    default_metrics,
)
from proton_bench.analysis.select import MetricTree, Selection, build_tree
from proton_bench.analysis.subtract import subtract

__all__ = [
    "MetricTree",
    "MetricValues",
    "Selection",
    "available_metrics",
    "build_tree",
    "default_metrics",
    "subtract",
]
