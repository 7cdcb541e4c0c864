"""``proton view --watch``: follows a recording by the files that it writes meanwhile."""

from __future__ import annotations

import contextlib
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
        UsageError: The process or file does not exist, it is not recorded, or the output is not a
            terminal.
    """
    console = open_console()
    if not once and not console.file.isatty():
        raise UsageError("--watch needs a terminal: give --once for one reading")
    readings = _followed(target, waiting or Waiting())
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
    return next(reading for reading in readings if reading[0].is_over or reading[0].last.has_length)


def _followed(target: Path, waiting: Waiting) -> Iterator[tuple[LiveReport, int]]:
    """Yield the readings of a file, or those of one file of a process after the other."""
    yield from _readings(_file_of(target), waiting)
    while _is_process(target) and (_PROC / str(target)).exists():
        waiting.pause(_LOOK_S)
        with contextlib.suppress(UsageError):  # it waits for a window, or ended
            yield from _readings(_file_of(target), waiting)


def _readings(file: Path, waiting: Waiting) -> Iterator[tuple[LiveReport, int]]:
    """Yield a reading every half second, the last one when the recording is over."""
    state, first = file_state(file), _read(file)
    if first is None:
        raise UsageError(
            f"{str(file)!a}: there is no such recording in progress, or it waits for a window "
            f"(--each writes NAME.w1, NAME.w2, ...); {_WHY_NONE}"
        )
    before, after, pid = first, first, _pid(first)
    while True:
        is_running = _is_running(pid, after)
        former, state = state, file_state(file)
        newer = None if state in (None, former) else _read(file)
        if newer is not None and written_at(newer) > written_at(after):
            before, after = after, newer
        is_over = state is None or not is_running
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
    if _is_process(target):
        return _file_of_process(int(str(target)))
    if _PARTIAL_NAME.search(target.name):
        return target
    return target.with_name(f"{target.name.removesuffix(_SUFFIX)}{PARTIAL}{_SUFFIX}")


def _is_process(target: Path) -> bool:
    return str(target).isdecimal() and not target.exists()


def _file_of_process(pid: int) -> Path:
    """Return the newest partial file that a process, or one of its children, holds open."""
    try:
        os.listdir(_PROC / str(pid) / "fd")
    except PermissionError:
        raise UsageError(f"process {pid} belongs to another user") from None
    except OSError:
        raise UsageError(f"there is no process {pid}") from None
    files = [file for each in (pid, *_children(pid)) for file in _held(each)]
    if not files:
        raise UsageError(
            f"process {pid} is not recorded, wrote nothing yet, or waits for a window: {_WHY_NONE}"
        )
    return max(files, key=_written_ns)


def _held(pid: int) -> list[Path]:
    folder, files = _PROC / str(pid) / "fd", []
    try:
        links = os.listdir(folder)
    except OSError:  # it ended
        return []
    for link in links:
        try:
            file = Path(os.readlink(folder / link))
        except OSError:  # closed meanwhile
            continue
        if _PARTIAL_NAME.search(file.name) and file.exists():
            files.append(file)
    return files


def _written_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:  # replaced or removed meanwhile
        return 0


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
