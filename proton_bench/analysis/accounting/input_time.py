"""How long the main thread waited for torch's DataLoaders, by samples of the host or operators."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from proton_bench.analysis.accounting.compilation import compile_stage, outermost, recorded_in_ns
from proton_bench.analysis.accounting.host_time import IDLE, host_paths, is_input
from proton_bench.analysis.naming.frame_names import Places, parse_frame
from proton_bench.model.profile import Profile
from proton_bench.model.steps import HOST_WALL

_OF_MAIN = "_SingleProcess"
LOADING, WAITING, RECEIVING, STARTING = "loading", "waiting", "receiving", "starting"
_READING = "reading"
# What a frame of torch's DataLoader does, by the end of its file and its function.
_LOADER = re.compile(r"/torch/utils/data/dataloader\.py$")
_STARTS = re.compile(r"__iter__|_get_iterator|_reset|__init__|_shutdown_workers|__del__")
_PARTS: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (part, re.compile(file), re.compile(function))
    for part, file, function in (
        (LOADING, r"/torch/utils/data/_utils/(fetch|collate|pin_memory)\.py$", r""),
        (RECEIVING, r"/multiprocessing/(reductions|resource_sharer|queues)\.py$", r""),
        (RECEIVING, r"/multiprocessing/connection\.py$", r"^_?recv"),
        (WAITING, r"/(multiprocessing/connection|selectors)\.py$", r"^(_?poll|wait|select)$"),
        (WAITING, r"/(queue|threading)\.py$", r"^(get|wait)$"),
    )
)


@dataclass(frozen=True, slots=True)
class InputTime:
    """Time of the main thread in which it read batches of a DataLoader, in ns.

    Attributes:
        wall_ns: All of it.
        idle_ns: The part in which no device worked; None where the file does not say.
        parts: Where it was sampled, by what it did: it loaded and collated the batch itself, waited
            for workers, received what they had made, or started and ended them.
        lines: By the line of own code that read, as recorded, the longest first.
    """

    wall_ns: float = 0.0
    idle_ns: float | None = None
    parts: Mapping[str, float] | None = None
    lines: Mapping[str, float] | None = None

    @property
    def main_part(self) -> str:
        """What took most of it, "" if unknown."""
        parts = self.parts or {}
        return max(parts, key=lambda part: parts[part], default="")


def input_time_of(profile: Profile) -> InputTime:
    """Return how long the main thread read batches, as far as a profile says."""
    parts: dict[str, float] = {}
    lines: dict[str, float] = {}
    wall_ns = idle_ns = 0.0
    places = Places.of(profile.provenance)
    is_idle_known = False
    sampled = host_paths(profile)
    for spot in sampled:
        at, part = _read_at(spot.path)
        if not part or compile_stage(spot.path):
            continue
        own = [name for name in spot.path[:at] if not places.library_of(name)]
        line = own[-1] if own else spot.path[0]
        lines[line] = lines.get(line, 0.0) + spot.wall_ns
        parts[part] = parts.get(part, 0.0) + spot.wall_ns
        wall_ns += spot.wall_ns
        idle_ns += spot.idle_ns or 0
        is_idle_known |= spot.idle_ns is not None
    names = set(filter(is_input, profile.strings))
    in_lines = {spot.row for spot in sampled}  # which have its name below them
    rows = [row for row in outermost(profile, names) if row not in in_lines]
    sampled_ns = _inclusive(profile, HOST_WALL, rows)
    ranges_ns = sampled_ns or recorded_in_ns(profile, names)
    of_ranges_idle_ns = _inclusive(profile, IDLE, rows)
    if ranges_ns > 0:
        of_main = all(_OF_MAIN in profile.name(row) for row in rows)
        part = LOADING if of_main else WAITING
        parts[part] = parts.get(part, 0.0) + ranges_ns
        is_idle_known |= of_ranges_idle_ns is not None
    ordered = dict(sorted(lines.items(), key=lambda pair: -pair[1]))
    all_idle_ns = idle_ns + (of_ranges_idle_ns or 0.0) if is_idle_known else None
    return InputTime(wall_ns + ranges_ns, all_idle_ns, parts, ordered)


def _inclusive(profile: Profile, name: str, rows: Sequence[int]) -> float | None:
    column = profile.columns.get(name)
    if column is None or not column.kind.is_number:
        return None
    values = profile.inclusive(name)
    return sum(float(values[row]) for row in rows)


def _read_at(path: Sequence[str]) -> tuple[int, str]:
    """Return at which frame of a path a batch is read, and what is done there; "" if none is."""
    at, part = -1, ""
    for number, name in enumerate(path):
        if at < 0:
            part = _of_loader(name)
            at = number if part else -1
        elif part == STARTING:
            break
        elif (inner := _part_of(name)) and part != LOADING:
            part = inner
    return at, part


@lru_cache(maxsize=4096)
def _of_loader(name: str) -> str:
    frame = parse_frame(name)
    if frame is None or not _LOADER.search(frame.file):
        return ""
    if frame.function == "__next__":
        return _READING
    return STARTING if _STARTS.fullmatch(frame.function) else ""


@lru_cache(maxsize=4096)
def _part_of(name: str) -> str:
    frame = parse_frame(name)
    if frame is None:
        return ""
    matching = (
        part
        for part, file, function in _PARTS
        if file.search(frame.file) and function.search(frame.function)
    )
    return next(matching, "")
