"""Sessions of ours and of upstream around a block of launches, and their files' contents."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

_EVENT = re.compile(rb'"name":\s*"([^"]{1,40})"')


@dataclass(frozen=True, slots=True)
class Ended:
    """Results at the end of a session.

    Attributes:
        finalize_s: Seconds until its files were written.
        bytes: Their size.
        instances: Instances of each scope in them; None if the files do not say.
        lost: Records that the profiler says were lost; None if it does not report them.
    """

    finalize_s: float
    bytes: int
    instances: Mapping[str, int] | None
    lost: int | None


@dataclass(frozen=True, slots=True)
class Kind:
    """What a session records, and where records go first.

    Attributes:
        data: ``tree`` or ``trace``.
        buffer: Where records go first: ``global`` memory or ``shared``.
    """

    data: str
    buffer: str = "global"

    def options(self) -> dict[str, Any]:
        """Return options of the mode, with room for the 130 records that a warp writes."""
        if self.buffer == "global":
            return {"buffer_type": "global"}
        return {"buffer_type": "shared", "buffer_size": 16384}


class Session(ABC):
    """A session of one of the profilers.

    Args:
        folder: Where it writes.
        kind: What it records, and how.
        on_gpu: False: host time of the interpreter instead.
    """

    def __init__(self, folder: Path, kind: Kind, *, on_gpu: bool) -> None:
        self.folder, self.kind, self.data, self.on_gpu = folder, kind, kind.data, on_gpu

    @abstractmethod
    def start(self) -> None:
        """Begin."""

    @abstractmethod
    def finish(self) -> Ended:
        """End, and read what was written."""


class Ours(Session):
    """proton_bench."""

    def start(self) -> None:
        """Begin."""
        import proton_bench
        from proton_bench.recording.session.session import SessionOptions, open_session

        mode = proton_bench.mode.Default(**self.kind.options())
        gpu = {"backend": "instrumentation", "mode": mode, "data": self.data}
        options: dict[str, Any] = gpu if self.on_gpu else {"backend": "cpu"}
        self._session = open_session(SessionOptions(name=str(self.folder / "ours"), **options))

    def finish(self) -> Ended:
        """End, and read what was written."""
        is_tree = self.data == "tree" or not self.on_gpu
        begin = time.perf_counter()
        paths = self._session.finalize(formats=("proton",) if is_tree else ("chrome_trace",))
        seconds = time.perf_counter() - begin
        size = sum(path.stat().st_size for path in paths)
        if not is_tree:
            return Ended(seconds, size, _events(paths[0]), None)
        return Ended(seconds, size, *read_scopes(paths[0]))


class Upstream(Session):
    """triton.profiler, in a process without ours."""

    def start(self) -> None:
        """Begin."""
        import triton.profiler as upstream

        mode = upstream.mode.Default(**self.kind.options())
        self._upstream = upstream
        self._session = upstream.start(
            str(self.folder / "upstream"), backend="instrumentation", mode=mode, data=self.data
        )

    def finish(self) -> Ended:
        """End, and read what was written."""
        begin = time.perf_counter()
        if self.data == "trace":
            self._upstream.finalize(self._session, "chrome_trace")
        else:
            self._upstream.finalize(self._session)
        seconds = time.perf_counter() - begin
        suffix = "hatchet" if self.data == "tree" else "chrome_trace"
        path = self.folder / f"upstream.{suffix}"
        instances = None if self.data == "tree" else _events(path)
        return Ended(seconds, path.stat().st_size, instances, None)


def _events(path: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    for found in _EVENT.finditer(path.read_bytes()):
        name = found[1].decode()
        counts[name] = counts.get(name, 0) + 1
    return counts


def read_scopes(path: Path) -> tuple[dict[str, int], int]:
    """Return instances of each scope and the number of lost records, of a ``.proton`` file."""
    from proton_bench.formats.registry import read_profile

    profile = read_profile(path)
    instances: dict[str, int] = {}
    for row, samples in profile.distributions.get("cycles", ()):
        name = profile.name(row)
        instances[name] = instances.get(name, 0) + samples.n
    lost = profile.columns.get("lost_records")
    return instances, 0 if lost is None else int(lost.values[lost.values > 0].sum())


def kernel_time_us(
    folder: Path, kernel: str, launch: Callable[[], object], *, passes: str | None
) -> tuple[float, int]:
    """Return the median device time of a kernel alone, from CUPTI, and how often it ran.

    Args:
        folder: Where the session writes.
        kernel: Its name.
        launch: Launches it a number of times.
        passes: Operations that get scopes, "" for those of the source; None instruments nothing.
    """
    import proton_bench
    from proton_bench.formats.registry import read_profile
    from proton_bench.recording.session.session import SessionOptions, open_session

    options: dict[str, Any] = {"backend": "cupti"}
    if passes is not None:
        options = {
            "backend": "cupti+instrumentation",
            "mode": proton_bench.mode.Default(passes=passes),
        }
    session = open_session(SessionOptions(name=str(folder / "kernel"), **options))
    try:
        launch()
    finally:
        [path] = session.finalize(formats=("proton",))
    profile = read_profile(path)
    times = [
        float(time_ns)
        for row, samples in profile.distributions["time (ns)"]
        if profile.name(row) == kernel
        for time_ns in samples.samples
    ]
    if not times:
        raise LookupError(f"CUPTI saw no kernel {kernel} among {sorted(set(profile.strings))}")
    return median(times) / 1000, len(times)


SESSIONS: Mapping[str, tuple[type[Session], Kind]] = {
    "ours_tree": (Ours, Kind("tree")),
    # Timelines copy the whole buffer, and in global memory the smallest is eight times as large.
    "ours_trace": (Ours, Kind("trace", "shared")),
    "upstream_tree": (Upstream, Kind("tree")),
    "upstream_trace": (Upstream, Kind("trace", "shared")),
    "ours_tree_shared": (Ours, Kind("tree", "shared")),
    "upstream_tree_shared": (Upstream, Kind("tree", "shared")),
}
