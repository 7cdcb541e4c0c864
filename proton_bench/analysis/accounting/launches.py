"""Counts launched kernels, without operators and copies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.formula import find_metric, unknown_metric
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

__all__ = ["LAUNCHES", "kernel_counts", "launch_values"]

LAUNCHES = "launches"


def launch_values(profile: Profile) -> MetricValues:
    """Return the launches of kernels in each row and below it.

    In files without kinds of rows, all work on a device is a kernel.

    Raises:
        MetricError: No counts were recorded.
    """
    own = kernel_counts(profile)
    running = np.zeros(len(profile) + 1, dtype=np.int64)
    np.cumsum(own, out=running[1:])
    values = running[profile.subtree_end] - running[:-1]
    return MetricValues(LAUNCHES, Aggregation.INCLUSIVE, values, values > 0)


def kernel_counts(profile: Profile) -> npt.NDArray[np.int64]:
    """Return the launches of each row's own kernel, 0 for other rows.

    Raises:
        MetricError: No counts were recorded.
    """
    full = find_metric("count", profile.columns)
    if full is None or not profile.columns[full].kind.is_number:
        raise unknown_metric("count", profile.columns)
    column = profile.columns[full]
    unnamed = (profile.kinds == FrameKind.UNKNOWN) & (profile.device_rows >= 0)
    is_kernel = ((profile.kinds == FrameKind.KERNEL) | unnamed) & column.valid
    return np.where(is_kernel & np.isfinite(column.values), column.values, 0).astype(np.int64)
