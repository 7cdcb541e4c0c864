"""``proton view --watch``: follows a recording by the files that it writes meanwhile."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from proton_bench.analysis.live import last_seconds, written_at
from proton_bench.cli.files import print_document
from proton_bench.errors import ProtonError, UsageError
from proton_bench.formats.registry import PARTIAL, read_profile
from proton_bench.model.profile import Profile
from proton_bench.report.text.live import LiveReport, live_document
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.files import file_state

_SUFFIX = ".proton"
_PARTIAL_NAME = re.compile(r"\.partial(\.\d+(-\d+)?)?\.proton\Z")
_PROC = Path("/proc")
_LOOK_S = 0.5
_WHY_NONE = (
    "partial files are written every PROTON_BENCH_PARTIAL_INTERVAL_S seconds (2), never if that "
    "is 0, and by sessions of start() only if it is set"
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How to wait, and what time it is.

    Attributes:
        pause: Waits for so many seconds.
        now_ns: Returns the unix time in ns.
    """

    pause: Callable[[float], object] = threading.Event().wait
    now_ns: Callable[[], int] = time.time_ns


def watch(target: Path, *, once: bool, as_json: bool, waiting: Waiting | None = None) -> None:
    """Show the last seconds of a recording, until it ends.

    Args:
        target: A process, by its number, or the file of a recording by either of its names.
        once: Show one reading, from the next two files, and end.
        as_json: Print a JSON document instead of text.
        waiting: How to wait.

    Raises:
        UsageError: There is no such process or file, it is not recorded, or the output is not a
            terminal.
    """
    console = open_console()
    if not once and not console.file.isatty():
        raise UsageError("--watch needs a terminal: give --once for one reading")
    file = _file_of(target)
    readings = _readings(file, waiting or Waiting())
    if once:
        report, pid = _first_new(readings)
        if as_json:
            print_document(live_document(report, pid))
        else:
            print_report(console, report)
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False) as live:
        for report, _ in readings:
            live.update(report, refresh=True)


def _first_new(readings: Iterator[tuple[LiveReport, int]]) -> tuple[LiveReport, int]:
    """Return the first reading between two files, or the last one of a recording that ends."""
    return next(
        reading for reading in readings if reading[0].is_over or reading[0].last.length_ns > 1
    )


def _readings(file: Path, waiting: Waiting) -> Iterator[tuple[LiveReport, int]]:
    """Yield a reading every half second, the last one when the recording is over."""
    state, first = file_state(file), _read(file)
    if first is None:
        raise UsageError(f"{str(file)!a}: there is no such recording in progress; {_WHY_NONE}")
    before, after, pid = first, first, _pid(first)
    while True:
        is_over = file_state(file) is None or not _is_running(pid, after)
        newer = None if file_state(file) in (None, state) else _read(file)
        if newer is not None:
            state, before, after = file_state(file), after, newer
        age_ns = max(waiting.now_ns() - written_at(after), 0)
        report = LiveReport(os.fspath(file), last_seconds(before, after), age_ns)
        yield replace(report, is_over=is_over), pid
        if is_over:
            return
        waiting.pause(_LOOK_S)


def _read(file: Path) -> Profile | None:
    """Return the profile, None if there is none: the end took its place."""
    try:
        return read_profile(file)
    except ProtonError:
        if file.exists():
            raise
        return None


def _file_of(target: Path) -> Path:
    """Return the partial file of a process, or of a recording."""
    if not target.exists() and str(target).isdecimal():
        return _file_of_process(int(str(target)))
    if _PARTIAL_NAME.search(target.name):
        return target
    return target.with_name(f"{target.name.removesuffix(_SUFFIX)}{PARTIAL}{_SUFFIX}")


def _file_of_process(pid: int) -> Path:
    """Return the newest partial file that a process, or one of its children, holds open."""
    if not (_PROC / str(pid)).exists():
        raise UsageError(f"there is no process {pid}")
    try:
        files = [file for each in (pid, *_children(pid)) for file in _held(each)]
    except PermissionError:
        raise UsageError(f"process {pid} belongs to another user") from None
    if not files:
        raise UsageError(f"process {pid} is not recorded, or wrote nothing yet: {_WHY_NONE}")
    return max(files, key=lambda file: file.stat().st_mtime_ns)


def _held(pid: int) -> list[Path]:
    found = []
    for link in (_PROC / str(pid) / "fd").iterdir():
        try:
            file = Path(os.readlink(link))
        except OSError:  # closed meanwhile
            continue
        if _PARTIAL_NAME.search(file.name) and file.exists():
            found.append(file)
    return found


def _children(pid: int) -> list[int]:
    try:
        words = (_PROC / str(pid) / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return []
    children = [int(word) for word in words]
    return [*children, *(each for child in children for each in _children(child))]


def _pid(profile: Profile) -> int:
    found = profile.provenance.get("pid")
    return found if type(found) is int else 0


def _is_running(pid: int, profile: Profile) -> bool:
    """Whether the recorded process lives; that of another machine is believed to."""
    return profile.provenance.get("host") != os.uname().nodename or (_PROC / str(pid)).exists()
