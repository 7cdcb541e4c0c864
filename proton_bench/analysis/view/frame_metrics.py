"""Derived metrics on data frames, with upstream's column names and tables.

A frame has one line per node, columns of a node's own values under the recorded names, and sums
over the subtree under ``<name> (inc)``; ``device_id`` and ``device_type`` name the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from proton_bench.analysis.metrics.formula import (
    FLOPS_WIDTHS,
    SECONDS,
    Divisor,
    Formula,
    find_metric,
    parse_formula,
    unknown_metric,
)
from proton_bench.errors import MetricError
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.specs import max_bps, max_flops


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

DeviceInfo = Mapping[str, Mapping[str, Mapping[str, Any]]]
INCLUSIVE = " (inc)"


class RecordedColumns:
    """The columns of a data frame by the names of metrics.

    Args:
        frame: The data frame; derived columns are added to it.
        inclusive: Full names of inclusive metrics.
        exclusive: Full names of the others.
    """

    def __init__(
        self, frame: pd.DataFrame, inclusive: tuple[str, ...], exclusive: tuple[str, ...]
    ) -> None:
        self.frame = frame
        self._inclusive = inclusive
        self._names = inclusive + exclusive

    def column(self, name: str) -> str:
        """Return the column that shows a recorded metric.

        Raises:
            MetricError: It was not recorded.
        """
        full = find_metric(name, self._names)
        if full is None:
            raise unknown_metric(name, self._names)
        return f"{full}{INCLUSIVE}" if full in self._inclusive else full

    def seconds(self, name: str) -> pd.Series:
        """Return a recorded time in seconds.

        Raises:
            MetricError: It was not recorded or is not a time.
        """
        column = self.column(name)
        unit = MetricSpec(column.removesuffix(INCLUSIVE)).unit
        if unit not in SECONDS:
            raise MetricError(f"metric {column!r} is not a time")
        return self.frame[column] * SECONDS[unit]

    def derive(self, metric: str, device_info: DeviceInfo) -> str:
        """Add the column of a metric and return its name; recorded metrics have theirs already.

        Raises:
            MetricError: The metric is unknown or its source was not recorded.
        """
        formula = parse_formula(metric)
        if formula is None:
            return self.column(metric)
        if formula.divisor is Divisor.PEAK:
            self.frame[formula.name] = _utilization(self, device_info)
            return formula.name
        column, values = _evaluate(self, formula)
        self.frame[column] = values
        return column


def _evaluate(recorded: RecordedColumns, formula: Formula) -> tuple[str, pd.Series]:
    frame = recorded.frame
    if formula.divisor is Divisor.TOTAL:
        column = recorded.column(formula.source)
        inclusive = column.endswith(INCLUSIVE)
        total = frame[column].iloc[0] if inclusive else frame[column].sum()
        return formula.name + INCLUSIVE * inclusive, frame[column] / total * 100.0
    if formula.timed:
        values = recorded.seconds(formula.source)
        if formula.divisor is Divisor.COUNT:
            values = values / frame[recorded.column("count")]
    else:
        values = frame[recorded.column(formula.source)] / recorded.seconds("time")
    return formula.name + INCLUSIVE, values / formula.scale


def _utilization(recorded: RecordedColumns, device_info: DeviceInfo) -> pd.Series:
    frame = recorded.frame
    flops = get_min_time_flops(frame, device_info)["min_time"]
    moved = get_min_time_bytes(frame, device_info)["min_time"]
    used = np.fmax(flops, moved) / recorded.seconds("time")
    return used.where(frame["device_id"].notna())


def get_min_time_flops(df: pd.DataFrame, device_info: DeviceInfo) -> pd.DataFrame:
    """Return in ``min_time`` how many seconds each row's operations take at the peak rate.

    Raises:
        UsageError: The peak rate of a device with operations is unknown.
    """

    def least(rows: pd.DataFrame, kind: str, device: Mapping[str, Any]) -> Any:
        units, clock = device["num_sms"], device["clock_rate"]
        widths = [width for width in FLOPS_WIDTHS if f"flops{width}" in rows]
        return sum(
            rows[f"flops{width}"].fillna(0) / max_flops(kind, device["arch"], width, units, clock)
            for width in widths
        )

    return _least_seconds(df, device_info, least)


def get_min_time_bytes(df: pd.DataFrame, device_info: DeviceInfo) -> pd.DataFrame:
    """Return in ``min_time`` how many seconds each row's bytes take at the peak bandwidth.

    Raises:
        UsageError: The peak bandwidth of a device with moved bytes is unknown.
    """

    def least(rows: pd.DataFrame, kind: str, device: Mapping[str, Any]) -> Any:
        if "bytes" not in rows:
            return 0.0
        bandwidth = max_bps(kind, device["arch"], device["bus_width"], device["memory_clock_rate"])
        return rows["bytes"] / bandwidth

    return _least_seconds(df, device_info, least)


def _least_seconds(
    frame: pd.DataFrame,
    device_info: DeviceInfo,
    least: Callable[[pd.DataFrame, str, Mapping[str, Any]], Any],
) -> pd.DataFrame:
    result = pd.DataFrame(0.0, index=frame.index, columns=["min_time"])
    for kind, devices in device_info.items():
        for index, device in devices.items():
            rows = frame["device_id"] == index
            if "device_type" in frame:
                rows &= frame["device_type"].isin([kind]) | frame["device_type"].isna()
            if bool(rows.any()):
                result.loc[rows, "min_time"] += least(frame[rows], kind, device)
    return result
