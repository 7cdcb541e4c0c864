"""The ``replay`` backend: replays a recorded stream of Records, for tests without a GPU.

``-b replay -m replay:file=PATH[:pace=all|manual]``
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proton_bench.errors import UsageError
from proton_bench.plugin import (
    Availability,
    Backend,
    Collector,
    Mode,
    ModeSpec,
    hookimpl,
)
from proton_bench.plugin.flushing import PERIODIC_FLUSHING
from proton_bench_plugins.libraries import native_obstacle

if TYPE_CHECKING:
    from proton_bench._native import ReplayCollector


_PACES = ("all", "manual")
_USAGE = "select it with the mode replay:file=PATH[:pace=all|manual]"

_manual: list[ReplayCollector] = []  # the newest manual stream of this process, if any


def launch(count: int = 1) -> int:
    """Feed the next launches of the stream that was opened with ``pace=manual``.

    They get the call path of the calling thread, as launches of a real device would.

    Args:
        count: Launches to replay.

    Returns:
        Number of replayed launches; fewer than requested at the end of the stream.

    Raises:
        UsageError: No stream is open with ``pace=manual``.
    """
    if not _manual:
        raise UsageError("no stream is replayed manually: start a session with pace=manual first")
    return _manual[-1].launch(count)


def _availability() -> Availability:
    if missing := native_obstacle("ReplayCollector"):
        return Availability(available=False, reason=missing)
    return Availability(available=True, reason="needs no device; replays a recorded file")


def _open(mode: Mode) -> Collector:
    from proton_bench._native import ReplayCollector

    file = mode.options.get("file")
    if not file:
        raise UsageError(f"backend 'replay' has no file to replay; {_USAGE}")
    pace = mode.options.get("pace", "all")
    if pace not in _PACES:
        raise UsageError(f"backend 'replay' knows no pace {pace!r}; choose from: all, manual")
    path = Path(file).absolute()
    if not path.is_file():
        raise UsageError(f"backend 'replay' finds no file {str(path)!r}; {_USAGE}")
    collector = ReplayCollector(str(path), pace == "manual")
    if pace == "manual":
        _manual[:] = [collector]
    return collector


BACKEND = Backend(
    name="replay",
    summary="records read from a file, for tests without a GPU",
    availability=_availability,
    open=_open,
    modes=(
        ModeSpec(
            "replay",
            options={
                "file": "recording to replay; its path must not contain ':'",
                "pace": "all: as fast as possible; manual: launch by launch",
            },
            summary="replay a recorded stream",
        ),
        PERIODIC_FLUSHING,
    ),
    data=("tree", "trace"),
    device_kinds=("CUDA", "HIP", "CPU"),
)


@hookimpl
def proton_backends() -> Sequence[Backend]:
    """Offer the backend ``replay``."""
    return [BACKEND]
