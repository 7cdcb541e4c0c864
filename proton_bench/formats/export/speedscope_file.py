"""`.speedscope.json`: a flame graph per metric for https://www.speedscope.app; only written."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from proton_bench.formats.base import WriteOnly
from proton_bench.formats.export.flame_rows import (
    FlameFrame,
    flame_frame,
    flame_losses,
    flame_metrics,
    flame_rows,
    spelled_unit,
)
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.profile import Profile
from proton_bench.support.text import json_text

__all__ = ["SpeedscopeFile"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = ("nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")
_MOST = 2.0**62  # larger sums of whole numbers are floats


class SpeedscopeFile(WriteOnly):
    """Speedscope's own format, every metric as a tree of open and close events.

    Events are as many as rows, however deep the tree is.
    """

    name = "speedscope"
    suffixes = (".speedscope.json",)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        kept = [column.spec.name for column, _ in flame_metrics(profile)]
        return flame_losses(profile, kept)

    def encode(self, profile: Profile) -> bytes:
        """Return the file."""
        rows = flame_rows(profile)
        numbers: dict[FlameFrame, int] = {}
        frames = [
            numbers.setdefault(flame_frame(rows, row), len(numbers)) for row in range(len(rows))
        ]
        document = {
            "$schema": _SCHEMA,
            "exporter": "proton_bench",
            "name": _text(rows.provenance.get("command")),
            "activeProfileIndex": 0,
            "shared": {"frames": [_plain(frame) for frame in numbers]},
            "profiles": [
                _events(rows, frames, own, spec=column.spec) for column, own in flame_metrics(rows)
            ],
        }
        return json_text(msgspec.json.encode(document).decode()).encode() + b"\n"


def _text(command: Any) -> str:
    return " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command or "")


def _plain(frame: FlameFrame) -> dict[str, Any]:
    found: dict[str, Any] = {"name": frame.name}
    if frame.file:
        found |= {"file": frame.file, "line": frame.line}
    return found


def _events(rows: Profile, frames: list[int], own: Any, *, spec: MetricSpec) -> dict[str, Any]:
    """Return one metric as a timeline: rows open and close, each as wide as its subtree."""
    if own.dtype.kind == "i" and float(own.sum(dtype=np.float64)) >= _MOST:
        own = own.astype(np.float64)
    places = np.concatenate([np.zeros(1, dtype=own.dtype), np.cumsum(own)]).tolist()
    ends = rows.subtree_end.tolist()
    events: list[dict[str, Any]] = []
    opened: list[int] = []

    def close(before: int) -> None:
        while opened and ends[opened[-1]] <= before:
            row = opened.pop()
            events.append({"type": "C", "frame": frames[row], "at": places[ends[row]]})

    for row in range(len(frames)):
        if places[ends[row]] <= places[row]:
            continue
        close(row)
        events.append({"type": "O", "frame": frames[row], "at": places[row]})
        opened.append(row)
    close(len(frames))
    unit = spelled_unit(spec)
    return {
        "type": "evented",
        "name": spec.name,
        "unit": unit if unit in _UNITS else "none",
        "startValue": 0,
        "endValue": places[-1],
        "events": events,
    }
