"""Bars: the first metric of each row as a length."""

from __future__ import annotations

import numpy as np

from proton_bench.analysis.tree import MetricTree

__all__ = ["BAR_WIDTH", "bar_texts"]

BAR_WIDTH = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar_texts(tree: MetricTree, *, ascii_only: bool = False) -> list[str]:
    """Return one bar per row, `BAR_WIDTH` characters each, full for the largest value.

    Args:
        tree: Rows; their first metric is drawn, by its size where it is negative.
        ascii_only: Draw with ``#``.
    """
    if not tree.metrics or not tree.metrics[0].is_number:
        return []
    first = tree.metrics[0]
    sizes = np.abs(np.where(first.valid, first.values, 0).astype(np.float64))
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    largest = float(sizes.max(initial=0.0))
    shares = sizes / largest if largest > 0 else sizes
    if ascii_only:
        return [
            "#" * round(share * BAR_WIDTH) + " " * (BAR_WIDTH - round(share * BAR_WIDTH))
            for share in shares.tolist()
        ]
    return [_bar(round(share * BAR_WIDTH * 8)) for share in shares.tolist()]


def _bar(eighths: int) -> str:
    whole, rest = divmod(eighths, 8)
    text = _EIGHTHS[8] * whole + (_EIGHTHS[rest] if rest else "")
    return text.ljust(BAR_WIDTH)
