"""A history as a JSON document."""

from __future__ import annotations

import math
from typing import Any

from proton_bench.gate.history.history import History, Trace
from proton_bench.gate.history.points import Point
from proton_bench.gate.history.steps import Step
from proton_bench.gate.verdict.result import EXIT_CODES
from proton_bench.model.frame import escape_surrogates

__all__ = ["history_document"]

_SCHEMA = "proton_bench.history"
_VERSION = (1, 0)


def history_document(history: History) -> dict[str, Any]:
    """Return what ``proton history --json`` and ``proton gate --history --json`` print."""
    return {
        "schema": _SCHEMA,
        "version": _VERSION,
        "verdict": str(history.verdict),
        "exit_code": EXIT_CODES[history.verdict],
        "false_discovery_rate": history.level,
        "fewest_points_after_a_step": history.fewest_after,
        "series": [_series(trace) for trace in history.traces],
        "left_out": {
            escape_surrogates(source): escape_surrogates(why)
            for source, why in history.left_out.items()
        },
    }


def _series(trace: Trace) -> dict[str, Any]:
    series, known = trace.series, trace.acknowledged
    key = series.key
    return {
        "id": key.digest,
        "baseline": escape_surrogates(key.group) or None,
        "path": [escape_surrogates(name) for name in key.path],
        "occurrence": key.occurrence,
        "metric": series.metric,
        "unit": key.unit or None,
        "machine": {
            escape_surrogates(fact): escape_surrogates(value) for fact, value in key.machine
        },
        "quarantined": series.is_quarantined,
        "levels": list(trace.levels),
        "change": trace.change,
        "later_points_without_it": series.later,
        "points": [
            {**_point(point), "value": value}
            for point, value in zip(series.points, series.values.tolist(), strict=True)
        ],
        "steps": [_step(trace, step) for step in trace.steps],
        "acknowledged": None
        if known is None
        else {
            "until_ns": known.until_ns,
            "by": escape_surrogates(known.by),
            "at_ns": known.at_ns,
            "revision": escape_surrogates(known.revision) or None,
        },
    }


def _step(trace: Trace, step: Step) -> dict[str, Any]:
    points = trace.series.points
    return {
        "change": math.expm1(step.change),
        "low": math.expm1(step.low),
        "high": math.expm1(step.high),
        "adjusted_p_value": step.p_value,
        "first_after": _point(points[step.at]),
        "last_before": _point(points[step.at - 1]),
        "begins_after": _point(points[step.earliest - 1]),
        "begins_until": _point(points[step.latest]),
        "acknowledged": trace.is_acknowledged(step),
        "fails": step in trace.failing,
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "source": escape_surrogates(point.source),
        "time_ns": point.time_ns,
        "revision": escape_surrogates(point.revision) or None,
        "dirty": point.is_dirty,
        "runs": point.runs,
    }
