"""A shown tree as one versioned JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from proton_bench.analysis.accounting.device_use import device_verdicts
from proton_bench.analysis.accounting.host_time import recorded_of, run_time_of
from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.metrics.derive import AvailableMetrics
from proton_bench.analysis.view.select import MetricTree
from proton_bench.model.frame import KIND_NAMES
from proton_bench.model.profile import Profile
from proton_bench.report.words.names import FrameFormat, format_name
from proton_bench.support.text import json_text

__all__ = ["encode_document", "list_document", "view_document"]

_VERSION = (1, 0)


def view_document(
    profile: Profile, tree: MetricTree, *, source: str, frames: FrameFormat, order: list[int] | None
) -> dict[str, Any]:
    """Return what ``proton view --json`` prints.

    ``rows`` are in pre-order; ``parent`` is an index in ``rows``, None for the root; ``values`` are
    in the order of ``metrics``, None if a row has none. ``name`` is the recorded name, ``text``
    what a terminal shows.

    Args:
        profile: The profile of the tree.
        tree: The rows to print.
        source: Name of the file.
        frames: Form of Python frames' names.
        order: Indexes in ``rows``, the largest first metric first, if requested.
    """
    names = [format_name(text, frames) for text in tree.recorded or tree.strings]
    texts = [format_name(text, frames) for text in tree.strings]
    values = zip(*(metric.to_list() for metric in tree.metrics), strict=True)
    cells = list(values) if tree.metrics else [()] * len(tree)
    columns = zip(
        tree.parents.tolist(),
        tree.depths().tolist(),
        tree.frames.tolist(),
        tree.kinds.tolist(),
        tree.devices,
        cells,
        strict=True,
    )
    rows = [
        {
            "parent": parent if parent >= 0 else None,
            "depth": depth,
            "name": names[frame],
            "text": texts[frame],
            "kind": KIND_NAMES[kind],
            "device": device or None,
            "values": row_values,
        }
        for parent, depth, frame, kind, device, row_values in columns
    ]
    document = _document("proton_bench.view", profile, source)
    document["metrics"] = [
        {"name": metric.name, "aggregation": metric.aggregation.value} for metric in tree.metrics
    ]
    document["rows"] = rows
    document["deeper_rows"] = tree.cut
    if order is not None:
        document["sorted"] = order
    return document


def list_document(profile: Profile, available: AvailableMetrics, source: str) -> dict[str, Any]:
    """Return what ``proton view --list --json`` prints."""
    document = _document("proton_bench.metrics", profile, source)
    document["inclusive"] = available.inclusive
    document["exclusive"] = available.exclusive
    document["derived"] = available.derivable
    return document


def encode_document(document: Mapping[str, Any]) -> bytes:
    """Return the document as UTF-8 JSON of one line, safe to print."""
    return json_text(msgspec.json.encode(document).decode()).encode() + b"\n"


def _device_use(profile: Profile) -> list[dict[str, Any]]:
    return [
        {
            "device": verdict.device,
            "busy_ns": verdict.use.busy_ns,
            "waiting_ns": verdict.use.waiting_ns,
            "idle_ns": verdict.use.idle_ns,
            "long_idle_ns": verdict.use.long_idle_ns,
            "uncertain_ns": verdict.use.uncertain_ns,
            "launches": verdict.use.launches,
            "launch_latency_median_ns": verdict.latency_ns,
            "launch_latency_sum_ns": verdict.use.latency_sum_ns,
            "reason": verdict.reason or None,
        }
        for verdict in device_verdicts(profile)
    ]


def _document(schema: str, profile: Profile, source: str) -> dict[str, Any]:
    cost, recorded = own_cost(profile), recorded_of(profile)
    return {
        "schema": schema,
        "version": _VERSION,
        "source": source.encode("utf-8", "backslashreplace").decode(),
        "partial": profile.partial,
        "dropped": dict(profile.dropped),
        "devices": [f"{device.kind}:{device.index}" for device in profile.devices],
        "device_use": _device_use(profile),
        "estimated_cost_ns": cost.cost_ns if cost is not None else None,
        "recorded": asdict(recorded) if recorded is not None else None,
        "run_time": asdict(run_time_of(profile)),
    }
