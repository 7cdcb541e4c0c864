"""Histograms of rounds of benchmarks, drawn in characters."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from proton_bench.pytest_plugin.benchmarks.record import BenchmarkRecord
from proton_bench.report.tree.bars import bar_text
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text

__all__ = ["histograms"]

_MOST_BINS = 12
_WIDTH = 40
# Rounds more than this many interquartile ranges above the third quartile share one line.
_FAR = 3.0


def histograms(records: Iterable[BenchmarkRecord], *, ascii_only: bool = False) -> list[str]:
    """Return the lines of a histogram of the rounds of each benchmark, per call.

    Args:
        records: What benchmarks measured.
        ascii_only: Draw with ``#``.
    """
    lines: list[str] = []
    for record in records:
        times = sorted(record.gated_ns)
        unit = Unit.of_times(times)
        lines.append(f"{visible(record.id)}: {count_text(len(times), 'round')} ({unit.name})")
        lines += _drawn(times, unit, ascii_only=ascii_only)
    return lines


def _drawn(times: Sequence[float], unit: Unit, *, ascii_only: bool) -> list[str]:
    near = [each for each in times if each <= _edge(times)]
    edges = _edges(near)
    counts = [0] * (len(edges) - 1)
    for each in near:
        place = sum(each >= edge for edge in edges[1:-1])
        counts[place] += 1
    texts = unit.texts(edges)
    rows = [
        (f"{low} .. {high}", count)
        for low, high, count in zip(texts, texts[1:], counts, strict=False)
    ]
    if len(near) < len(times):
        rows.append((f"up to {unit.texts(times[-1:])[0]}", len(times) - len(near)))
    width = max(len(text) for text, _ in rows)
    most = max(count for _, count in rows)
    return [
        f"  {text.rjust(width)}  {bar_text(count / most, width=_WIDTH, ascii_only=ascii_only)}"
        f"  {count}"
        for text, count in rows
    ]


def _edge(times: Sequence[float]) -> float:
    if len(times) < 4:
        return times[-1]
    first, _, third = statistics.quantiles(times, n=4)
    return third + _FAR * (third - first)


def _edges(times: Sequence[float]) -> list[float]:
    """Return the limits of equal bins, as many as the square root of the number."""
    low, high = times[0], times[-1]
    if high <= low:
        return [low, high]
    bins = min(_MOST_BINS, math.ceil(math.sqrt(len(times))))
    return [low + (high - low) * place / bins for place in range(bins)] + [high]
