"""Distributions as earlier versions wrote them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from proton_bench.model.metrics.distribution import Distribution


def open_below(values: Iterable[float], kept: int) -> Distribution:
    """Return the samples with all but the highest buckets merged into the lowest one kept."""
    return as_open_below(Distribution.from_samples(values), kept)


def as_open_below(whole: Distribution, kept: int) -> Distribution:
    """Return the same for samples that were recorded."""
    index, count = whole.bucket_index[-kept:], whole.bucket_count[-kept:].copy()
    count[0] += whole.bucket_count[:-kept].sum()
    return replace(whole, bucket_index=index, bucket_count=count, open_below=True)
