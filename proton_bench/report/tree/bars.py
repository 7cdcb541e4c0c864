"""Bars: the first metric of each row as a length."""

from __future__ import annotations

import numpy as np

from proton_bench.analysis.view.tree import MetricTree

__all__ = ["BAR_WIDTH", "bar_text", "bar_texts"]

BAR_WIDTH = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar_texts(tree: MetricTree, *, ascii_only: bool = False) -> list[str]:
    """Return one bar per row, `BAR_WIDTH` characters each, full for the largest value.

    Args:
        tree: Rows; the absolute value of their first metric is drawn.
        ascii_only: Draw with ``#``.
    """
    if not tree.metrics or not tree.metrics[0].is_number:
        return []
    first = tree.metrics[0]
    sizes = np.abs(np.where(first.valid, first.values, 0).astype(np.float64))
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    largest = float(sizes.max(initial=0.0))
    shares = sizes / largest if largest > 0 else sizes
    return [bar_text(share, ascii_only=ascii_only) for share in shares.tolist()]


def bar_text(share: float, *, width: int = BAR_WIDTH, ascii_only: bool = False) -> str:
    """Return a bar of this width, full for a share of 1.

    Args:
        share: From 0 to 1.
        width: Characters.
        ascii_only: Draw with ``#``.
    """
    if ascii_only:
        return ("#" * round(share * width)).ljust(width)
    whole, rest = divmod(round(share * width * 8), 8)
    return (_EIGHTHS[8] * whole + (_EIGHTHS[rest] if rest else "")).ljust(width)
