"""A comparison as one versioned JSON document."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.compare.compare import CONFIDENCE, Changes, Comparison
from proton_bench.analysis.compare.explanation import Cause, explain
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.ranking import Ranking
from proton_bench.analysis.run import Run
from proton_bench.model.frame import FrameKind
from proton_bench.report.words.diff_rows import notes
from proton_bench.report.words.diff_summary import cost_warning, headline

__all__ = ["diff_document"]

_VERSION = (1, 0)


def diff_document(comparison: Comparison, ranking: Ranking) -> dict[str, Any]:
    """Return what ``proton diff --json`` prints.

    ``rows`` follow their parent, the largest change of siblings first; ``parent`` is an index in
    ``rows``, None for the total. ``inclusive`` values include all rows below, ``own`` ones add up
    to the total. Values are in ``unit``, None if a side has none. If ``at_base_calls`` is true,
    ``benchmarks_scaled`` lists the benchmarks whose values are scaled to ``calls`` calls, and the
    calls of each run of ``base`` and ``new``.

    Args:
        comparison: What to print.
        ranking: Which rows, in which order.
    """
    explanation = explain(comparison)
    lines = zip(ranking.above, ranking.rows, strict=True)
    rows = [each for above, row in lines for each in (*above, row)]
    positions = {row: place for place, row in enumerate(rows)}
    scale = comparison.measure.scale
    return {
        "schema": "proton_bench.diff",
        "version": _VERSION,
        "headline": headline(comparison),
        "metric": comparison.measure.name,
        "source": comparison.measure.source or None,
        "unit": _unit(comparison),
        "adds_up": comparison.measure.is_additive,
        "by": comparison.by.value,
        "confidence": CONFIDENCE if comparison.interval is not None else None,
        "base": _side(comparison.base, comparison.base_runs[:, 0].tolist(), scale),
        "new": _side(comparison.new, comparison.new_runs[:, 0].tolist(), scale),
        "cost_warning": cost_warning(comparison),
        "at_base_calls": bool(comparison.scaled),
        "benchmarks_scaled": [asdict(each) for each in comparison.scaled],
        "causes": [_cause(comparison, each) for each in explanation.causes] if explanation else [],
        "rows": [_row(comparison, row, positions) for row in rows],
        "rows_below_threshold": ranking.small,
        "change_below_threshold": _plain(ranking.small_change, scale),
        "deeper_rows": ranking.deep,
        "change_deeper": _plain(ranking.deep_change, scale),
        "include": ranking.names.include,
        "exclude": ranking.names.exclude,
        "rows_filtered": ranking.named,
        "change_filtered": _plain(ranking.named_change, scale),
    }


def _unit(comparison: Comparison) -> str | None:
    measure = comparison.measure
    return measure.unit or None if measure.scale == 1.0 else measure.name.rpartition("/")[2]


def _side(runs: tuple[Run, ...], totals: list[float], scale: float) -> list[dict[str, Any]]:
    return [
        {
            "source": run.source.encode("utf-8", "backslashreplace").decode(),
            "total": _plain(total, scale),
            "partial": run.profile.partial,
            "dropped": dict(run.profile.dropped),
            "estimated_cost_ns": _cost(run),
            "devices": [f"{device.kind}:{device.index}" for device in run.profile.devices],
        }
        for run, total in zip(runs, totals, strict=True)
    ]


def _cost(run: Run) -> float | None:
    cost = own_cost(run.profile)
    return None if cost is None else cost.cost_ns


def _plain(value: float | None, scale: float = 1.0) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return value if scale == 1.0 else value / scale


def _row(comparison: Comparison, row: int, positions: dict[int, int]) -> dict[str, Any]:
    tree = comparison.tree
    above = int(tree.parents[row])
    found: dict[str, Any] = {
        "parent": positions[above] if above >= 0 else None,
        "name": tree.name(row),
        "kind": FrameKind(tree.kinds[row]).name.lower(),
        "device": tree.device_names[int(tree.devices[row])] or None,
        "fate": RowState(tree.states[row]).name.lower(),
        "former_name": tree.former_name(row),
        "moved_from": list(tree.origins[row]) if row in tree.origins else None,
        "code_changed": tree.code_changed(row),
        "notes": list(notes(comparison, row)),
        "inclusive": _values(comparison, comparison.inclusive, row),
    }
    if comparison.own is not None:
        found["own"] = _values(comparison, comparison.own, row)
    interval = comparison.interval
    if interval is not None:
        scale = comparison.measure.scale
        found["interval"] = [
            _plain(float(each[row]), scale) for each in (interval.low, interval.high)
        ]
    return found


def _values(comparison: Comparison, values: Changes, row: int) -> dict[str, Any]:
    scale, is_additive = comparison.measure.scale, comparison.measure.is_additive
    base = values.base[row].item() if values.base_valid[row] else None
    new = values.new[row].item() if values.new_valid[row] else None
    is_known = is_additive or (base is not None and new is not None)
    found = {
        "base": _plain(base, scale),
        "new": _plain(new, scale),
        "change": _plain(values.change[row].item(), scale) if is_known else None,
    }
    if is_additive:
        found["base_launches"] = values.base_count[row].item()
        found["new_launches"] = values.new_count[row].item()
    if values.split is not None:
        found["by_launches"] = _plain(values.split.launches[row].item(), scale)
        found["by_latency"] = _plain(values.split.latency[row].item(), scale)
        found["unlaunched"] = _plain(values.split.rest[row].item(), scale)
    return found


def _cause(comparison: Comparison, cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind.value,
        "name": comparison.tree.name(cause.row),
        "path": list(comparison.tree.path(cause.row)),
        "places": cause.places,
        "change": _plain(cause.change, comparison.measure.scale),
        "share": cause.share,
        "per_launch": cause.per_launch,
        "launches": cause.new_count - cause.base_count,
        "fate": cause.state.name.lower(),
    }
