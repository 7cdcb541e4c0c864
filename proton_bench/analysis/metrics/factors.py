"""Derived metrics by source, in the tables of upstream's viewer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from proton_bench.analysis.metrics.formula import FLOPS_WIDTHS

__all__ = [
    "FactorDict",
    "avg_cpu_time_factor_dict",
    "avg_time_factor_dict",
    "bytes_factor_dict",
    "cpu_time_factor_dict",
    "default_flop_factor_dict",
    "derivable_metrics",
    "time_factor_dict",
]


class FactorDict(NamedTuple):
    """Metrics derived from a metric.

    Attributes:
        name: The metric.
        factor: Size of a unit by the name of what is derived.
    """

    name: str
    factor: Mapping[str, float]


def _times(name: str) -> FactorDict:
    units = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    return FactorDict(name, {f"{name}/{unit}": size for unit, size in units.items()})


def _rates(name: str, unit: str) -> FactorDict:
    return FactorDict(name, {f"{prefix}{unit}/s": size for prefix, size in _PREFIXES.items()})


_PREFIXES = {"": 1, "g": 1e9, "t": 1e12}
time_factor_dict = _times("time")
avg_time_factor_dict = _times("avg_time")
cpu_time_factor_dict = _times("cpu_time")
avg_cpu_time_factor_dict = _times("avg_cpu_time")
bytes_factor_dict = _rates("bytes", "byte")
default_flop_factor_dict = dict(_rates("flops", "flop").factor)
derivable_metrics: dict[str, FactorDict] = {
    name: table
    for table in (
        bytes_factor_dict,
        *(_rates(f"flops{width}", f"flop{width}") for width in ("", *FLOPS_WIDTHS)),
    )
    for name in table.factor
}
