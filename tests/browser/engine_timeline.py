"""What Perfetto's engine reads in a timeline of ours, in either format."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browser.trace_engine import TraceEngine
from reference.chrome_timeline import Path_, Sums

# Category in Chrome's format, where Perfetto's has another one for the same thing.
_CATEGORIES = {
    "cpu_op": "op",
    "cuda_runtime": "launch",
    "gpu_memcpy": "copy",
    "gpu_memset": "copy",
}
_SLICES = """
select slice.id, slice.name, category, ts, dur, track_id,
       coalesce(track.name, thread.name), coalesce(process.name, owner.name)
from slice join track on track.id = track_id
left join thread_track on thread_track.id = track_id left join thread using (utid)
left join process using (upid)
left join process_track on process_track.id = track_id
left join process owner on owner.upid = process_track.upid
where category is not null order by slice.id
"""
_STACKS = """
select slice.id, args.key, display_value from slice join args using (arg_set_id)
where flat_key in ('args.call_stack', 'debug.call_stack') order by slice.id, args.id
"""


@dataclass(frozen=True)
class EngineSlice:
    """A slice as the engine has it."""

    name: str
    category: str
    start_ns: int
    duration_ns: int
    track_id: int
    track: str
    process: str
    path: Path_


class EngineTimeline:
    """A file in the engine.

    Attributes:
        complaints: What the engine could not read or had to leave out.
        slices: By the engine's id.
    """

    def __init__(self, engine: TraceEngine, content: bytes | Path) -> None:
        engine.load(content.read_bytes() if isinstance(content, Path) else content)
        self._engine = engine
        self.complaints = engine.complaints()
        stacks: dict[int, list[str]] = defaultdict(list)
        for number, key, value in engine.query(_STACKS):
            stacks[number] += json.loads(value) if key == "debug.call_stack" else [value]
        self.slices = {
            number: EngineSlice(
                name,
                _CATEGORIES.get(category, category) if number in stacks else "graph run",
                *times_and_track,
                path=tuple(stacks.get(number, ())[1:]),
            )
            for number, name, category, *times_and_track in engine.query(_SLICES)
        }

    def of(self, *categories: str) -> list[EngineSlice]:
        """Return the slices of these categories."""
        return [each for each in self.slices.values() if each.category in categories]

    def sums(self, *categories: str) -> Sums:
        """Return count and time of the slices of these categories, by path."""
        found: dict[Path_, list[int]] = defaultdict(lambda: [0, 0])
        for each in self.of(*categories):
            found[each.path][0] += 1
            found[each.path][1] += each.duration_ns
        return {path: (count, time_ns) for path, (count, time_ns) in found.items()}

    def flows(self) -> list[tuple[EngineSlice, EngineSlice]]:
        """Return the pairs of slices that an arrow joins."""
        rows = self._engine.query("select slice_out, slice_in from flow")
        return [(self.slices[out], self.slices[into]) for out, into in rows]

    def counters(self) -> dict[str, int]:
        """Return how many readings each counter has."""
        rows: Any = self._engine.query(
            "select counter_track.name, count(*) from counter"
            " join counter_track on counter_track.id = track_id group by 1"
        )
        return dict(rows)
