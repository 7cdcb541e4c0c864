"""Results of benchmarks as tables of plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from proton_bench.pytest_plugin.benchmarks.record import BenchmarkRecord
from proton_bench.pytest_plugin.benchmarks.settings import UNITS, Settings
from proton_bench.support.text import visible
from proton_bench.support.units import Unit

__all__ = ["tables"]

_COUNTS: dict[str, Callable[[BenchmarkRecord], str]] = {
    "rounds": lambda record: str(len(record.gated_ns)),
    "calls": lambda record: str(record.calls),
    "clock": lambda record: "gpu" if record.gated_ns is record.gpu_ns else "cpu",
}


def tables(records: Iterable[BenchmarkRecord], settings: Settings) -> list[str]:
    """Return the lines of one table for each group, with times per call."""
    groups: dict[str, list[BenchmarkRecord]] = {}
    for record in records:
        groups.setdefault(_group(record, settings.group_by), []).append(record)
    lines = []
    for name, members in groups.items():
        lines += [f"{name}:"] if name else []
        lines += _table(_sorted(members, settings.sort), settings)
    return lines


def _group(record: BenchmarkRecord, by: str) -> str:
    test = record.node_id.rpartition("::")[2]
    return {
        "group": record.group,
        "name": test,
        "func": test.partition("[")[0],
        "fullname": record.node_id,
        "param": ", ".join(f"{name}={text}" for name, text in record.parameters.items()),
    }[by]


def _sorted(records: Sequence[BenchmarkRecord], by: str) -> list[BenchmarkRecord]:
    if by == "none":
        return list(records)
    if by == "name":
        return sorted(records, key=lambda record: record.id)
    return sorted(records, key=lambda record: record.statistics()[by])


def _table(records: Sequence[BenchmarkRecord], settings: Settings) -> list[str]:
    unit = settings.time_unit
    if unit == "auto":
        shortest = min(min(record.gated_ns) for record in records)
        unit = max((each for each in UNITS if UNITS[each] <= shortest), key=UNITS.get, default="ns")  # type: ignore[arg-type]
    rows = [[_cell(record, name, unit) for name in settings.columns] for record in records]
    titles = [name if name in _COUNTS else f"{name} ({unit})" for name in settings.columns]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    named = [[*row, visible(record.id)] for row, record in zip(rows, records, strict=True)]
    return [_line(cells, widths) for cells in [[*titles, "benchmark"], *named]]


def _cell(record: BenchmarkRecord, name: str, unit: str) -> str:
    count = _COUNTS.get(name)
    if count is not None:
        return count(record)
    # The unit is in the heading.
    return Unit(UNITS[unit]).text(record.statistics()[name])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    placed = [cell.rjust(width) for cell, width in zip(cells, widths, strict=False)]
    return "  ".join([*placed, cells[-1]])
