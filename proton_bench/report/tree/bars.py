"""Bars: the first metric of each row as a length, and a series as a line of heights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.view.tree import MetricTree

__all__ = ["BAR_WIDTH", "bar_text", "bar_texts", "sparkline"]

BAR_WIDTH = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS, _ASCII_HEIGHTS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
_SPARK_WIDTH = 24
# Noise must not fill the height of a line.
_LEAST_RANGE = 0.05


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


def sparkline(
    values: npt.NDArray[np.float64], *, width: int = _SPARK_WIDTH, ascii_only: bool = False
) -> str:
    """Return the values as a line of bars, on a logarithmic scale.

    Args:
        values: Positive values in order of time.
        width: Most characters; more points are joined by their medians.
        ascii_only: Draw with ASCII characters.
    """
    bars = _ASCII_HEIGHTS if ascii_only else _HEIGHTS
    logs = np.log(values)
    edges = np.linspace(0, len(logs), min(width, len(logs)) + 1).round().astype(int)
    parts = [logs[start:end] for start, end in pairwise(edges)]
    levels = np.array([np.median(part) for part in parts])
    low, high = float(levels.min()), float(levels.max())
    spare = max(_LEAST_RANGE - (high - low), 0.0) / 2.0
    shares = (levels - low + spare) / (high - low + 2.0 * spare)
    return "".join(bars[min(int(share * len(bars)), len(bars) - 1)] for share in shares)
