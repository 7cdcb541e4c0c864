"""Where a session's files go, and whether they can be written at all."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time

# At an end nothing can be imported: the program may be out of descriptors, or in another root.
from _socket import AF_UNIX, SOCK_DGRAM, socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from proton_bench.errors import OutputError, ProtonError
from proton_bench.recording.children.child_profiles import AddedProfile
from proton_bench.recording.native import native
from proton_bench.recording.session.conversion import decode_phase, encode_scopes, encode_tree
from proton_bench.recording.session.options import STDOUT, CapturePlan
from proton_bench.recording.session.output_format import (
    TRACE_FORMATS,
    TREE_FORMATS,
    suffix_of,
)
from proton_bench.support.files import write_file
from proton_bench.support.text import bytes_for, visible

if TYPE_CHECKING:
    from proton_bench.model.profile import Profile


_TRUE = ("1", "on", "true")
_PIECE_BYTES = 1 << 20
_ADDRESS_BYTES = 90
_MOST_ROWS_TWICE = 100_000  # of a phase that is written in two formats
_TURN_S = 5.0  # longest wait for another process with the same output


class Recorded(Protocol):
    """What writing needs of a session."""

    @property
    def core(self) -> native.Session:
        """Its native session."""

    @property
    def path(self) -> str:
        """Absolute output path without a suffix, or "-"."""

    @property
    def plan(self) -> CapturePlan:
        """What the session records."""

    @property
    def remarks(self) -> list[str]:
        """What there is to say to the user at the end."""

    @property
    def clock_drift_ns(self) -> int:
        """How much the clock of the devices gained on the host's while the session recorded."""

    @property
    def added_profiles(self) -> Sequence[AddedProfile]:
        """What other processes recorded for the current phase."""

    def profile(self, phase: int | None = None) -> Profile:
        """Return what a phase recorded."""


def library_formats(output_format: str, defaults: Sequence[str] = ("hatchet",)) -> tuple[str, ...]:
    """Return what ``finalize(output_format=...)`` writes.

    Args:
        output_format: A format, or "" for the session's defaults.
        defaults: What the session writes where no format is named.
    """
    formats = [output_format] if output_format else list(defaults)
    if asks_native() and "proton" not in formats:
        formats.append("proton")
    return tuple(formats)


def asks_native() -> bool:
    """Whether the library writes ``.proton`` beside what it was asked for."""
    return os.environ.get("PROTON_BENCH_NATIVE", "").lower() in _TRUE


def check_writable(path: str) -> None:
    """Try whether a file can be made beside the later output.

    Args:
        path: Absolute output path without a suffix, or "-" for stdout.

    Raises:
        OutputError: The folder is missing or read-only, or the name is too long.
    """
    if path == STDOUT:
        return
    for name in (*TREE_FORMATS, *TRACE_FORMATS):
        file = f"{path}.{suffix_of(name)}"
        if os.path.isdir(file):
            raise OutputError(
                f"cannot write profile {path!r}: {file} is a folder; remove it, or name "
                "another file with name=, -n or -o"
            )
    # As long as the longest name that may be written: a timeline's, next to another process's.
    probe = f"{path}.part_999.partial.{os.getpid():07}-99.proton-probe"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise OutputError(
            f"cannot write profile {path!r}: {reason}; "
            "make the folder, or name another one with name=, -n or -o"
        ) from None
    with contextlib.suppress(OSError):
        os.unlink(probe)


def write_session(session: Recorded, formats: Sequence[str]) -> list[Path]:
    """Write every live phase in every format, and end the files of its timeline.

    Args:
        session: A session whose records were all consumed, and settled.
        formats: Formats to write, each beside the others; none removes what was written so far.

    Returns:
        The files; none for stdout.

    Raises:
        OutputError: A file could not be written; nothing of it is left behind.
    """
    streamed = [name for name in formats if name in session.plan.trace_formats]
    paths: list[Path] = []
    try:
        with output_turn(session.path), contextlib.ExitStack() as steps:
            # A failure with one kind of files must not lose the other.
            if formats and session.plan.is_written_meanwhile:
                steps.callback(lambda: paths.extend(_end_timeline(session, streamed)))
            paths += _write_phases(session, [name for name in formats if name not in streamed])
    except ProtonError as error:
        if not session.added_profiles:
            raise
        kept = ", ".join(each.kept for each in session.added_profiles)
        raise OutputError(f"{error}; the profiles of other processes are kept: {kept}") from None
    if formats:
        for each in session.added_profiles:
            each.release()
    return paths


@contextlib.contextmanager
def output_turn(path: str) -> Iterator[None]:
    """Keep other processes that were given the same name from writing theirs in between.

    All files are then those of one run. Nothing is left behind by a process that is killed: its
    turn is an address of its own, which the system gives back. A process that waits too long goes
    on.

    Args:
        path: Absolute output path without a suffix, or "-" for stdout, which is for all.
    """
    if path == STDOUT:
        yield
        return
    # Only the end of a long path: paths that share it wait for each other without need.
    address = b"\0proton-bench " + os.fsencode(path)[-_ADDRESS_BYTES:]
    place = None
    with contextlib.suppress(OSError):
        place = socket(AF_UNIX, SOCK_DGRAM)
        deadline = time.monotonic() + _TURN_S
        while not _is_free(place, address) and time.monotonic() < deadline:
            time.sleep(0.01)
    try:
        yield
    finally:
        if place is not None:
            place.close()


def _is_free(place: Any, address: bytes) -> bool:
    try:
        place.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise
    return True


def _write_phases(session: Recorded, formats: Sequence[str]) -> list[Path]:
    paths: list[Path] = []
    missing: list[str] = []
    current = session.core.current_phase()
    for phase in session.core.live_phases():
        part = f".part_{phase}" if current > 0 else ""
        merged = session.profile(phase) if session.added_profiles and phase == current else None
        left = list(formats)
        while left:
            name = left.pop(0)
            if name == "hatchet" and "proton" in formats and _is_large(session, phase):
                continue
            path = Path(f"{session.path}{part}.{name}")
            if name == "proton" and merged is None:
                _write_native(session, phase, path)
            elif reason := _write_converted(session, phase, path, merged=merged):
                missing.append(
                    f"{visible(path.name)} was not written ({reason}): proton export can make it "
                    f"of {visible(path.stem)}.proton, unless it is a timeline"
                )
                left += [] if "proton" in (*formats, *left) else ["proton"]
                continue
            if session.path != STDOUT:
                paths.append(path)
    if missing:
        raise OutputError("; ".join(missing))
    return paths


def _write_native(session: Recorded, phase: int, path: Path) -> None:
    if session.path == STDOUT:
        _print(session.core.encode(phase, "proton"))
    else:
        session.core.write(phase, path, "proton")


def _write_converted(session: Recorded, phase: int, path: Path, *, merged: Profile | None) -> str:
    """Return why nothing was written: nothing can be imported any more; "" if it was."""
    name, note, shape = path.suffix[1:], "", session.plan.upstream_shape
    try:
        if name in TRACE_FORMATS:  # profiles of other processes hold no times of single events
            content = encode_scopes(session.core.scope_launches(phase), upstream_shape=shape)
        else:
            whole = merged or decode_phase(session.core, phase, name)
            content, note = encode_tree(whole, name, upstream_shape=shape)
    except ProtonError:
        raise
    except Exception as error:  # noqa: BLE001 - imports fail in any way by then
        return visible(str(error).strip().partition("\n")[0])
    if session.path == STDOUT:
        _print(content)
        return ""
    write_file(path, content)
    if note:
        sys.stderr.write(f"proton: warning: {visible(path.name)}: {note}\n")
    return ""


def _is_large(session: Recorded, phase: int) -> bool:
    """Whether upstream's file of a phase is left to ``proton export``; it is 12 times as large."""
    rows = session.core.row_count(phase)
    if rows <= _MOST_ROWS_TWICE or asks_native():
        return False
    name = visible(os.path.basename(session.path))
    session.remarks.append(
        f"{name}.hatchet was left out, for {rows} rows: proton export {name}.proton --to hatchet "
        "writes it"
    )
    return True


def _end_timeline(session: Recorded, formats: Sequence[str]) -> list[Path]:
    paths: list[Path] = []
    for _, _, path, spooled in session.core.end_timeline(formats, session.clock_drift_ns):
        if spooled < 0:
            paths.append(Path(os.fsdecode(path)))
            continue
        with os.fdopen(spooled, "rb") as file:
            while piece := file.read(_PIECE_BYTES):
                _print(piece)
    return paths


def _print(encoded: bytes) -> None:
    try:
        sys.stdout.flush()
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.buffer.write(bytes_for(sys.stdout, encoded))
        else:  # replaced by something that takes text only
            sys.stdout.write(encoded.decode("utf-8", "replace"))
        sys.stdout.flush()
    except OSError as error:
        raise OutputError(f"cannot write the profile to stdout: {error.strerror}") from None
