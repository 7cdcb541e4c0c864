"""Quantiles of all distributions of a metric at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.choices import QUANTILES
from proton_bench.model.metrics.distribution_table import DistributionTable

__all__ = ["QUANTILES", "quantiles"]


def quantiles(table: DistributionTable) -> npt.NDArray[np.float64]:
    """Return a line per distribution with the `QUANTILES` of its samples, NaN where unknown.

    They are those of `Distribution.quantile`: exact where single samples were kept, which is up to
    64 of them, and else within `Distribution.relative_error`.
    """
    wanted = list(QUANTILES.values())
    found = np.full((len(table), len(wanted)), np.nan)
    kept, buckets = np.diff(table.sample_offsets), np.diff(table.bucket_offsets)
    is_raw = (kept == table.n) & (buckets == 0) & (table.n > 0)
    # A matrix for each number of samples: numpy then does all of them in one call.
    for count in np.unique(kept[is_raw]).tolist():
        places = np.flatnonzero(is_raw & (kept == count))
        samples = _samples(table, places, count)
        with np.errstate(invalid="ignore"):
            known = np.quantile(samples, wanted, axis=1).T
        # Samples are float32, which may be rounded past the extremes.
        lows, highs = table.minimum[places, None], table.maximum[places, None]
        found[places] = np.clip(known, lows, highs)
    for place in np.flatnonzero(~is_raw).tolist():
        entry = table.get(int(table.rows[place]))
        if entry is not None and not entry.moments_only and entry.n:
            known = entry.quantiles(wanted)
            found[place] = [np.nan if value is None else value for value in known]
    return found


def _samples(table: DistributionTable, places: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    starts = table.sample_offsets[places].astype(np.int64)
    found: npt.NDArray[Any] = table.samples[starts[:, None] + np.arange(count)].astype(np.float64)
    return found
