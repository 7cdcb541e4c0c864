"""Turns the ``.proton`` bytes of native code into the other formats of trees.

What that takes is imported at the end: the program under study may have a say in how NumPy loads.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from proton_bench.errors import OutputError, ProtonError
from proton_bench.recording.stderr import warn
from proton_bench.support.files import write_file
from proton_bench.support.inputs import unreadable
from proton_bench.support.text import visible

if TYPE_CHECKING:
    from proton_bench.model.profile import Profile


_PERIOD_S = 0.1
_ANY_SIZE = 1 << 60  # bytes
_OF_UPSTREAM = {
    "hatchet": "proton_bench.formats.hatchet.json_file",
    "hatchet_msgpack": "proton_bench.formats.hatchet.msgpack_file",
}


def prepare(formats: Iterable[str]) -> None:
    """Import now what these formats take, if the program has loaded NumPy already."""
    if "numpy" in sys.modules and any(name in _OF_UPSTREAM for name in formats):
        importlib.import_module("proton_bench.formats.native.file")
        for name in _OF_UPSTREAM.values():
            importlib.import_module(name)


def encode_phase(
    core: EncodingSession, phase: int, name: str, *, upstream_shape: bool = False
) -> bytes:
    """Return a phase of a native session in a format of trees; see `encode_tree`."""
    return encode_tree(decode_phase(core, phase, name), name, upstream_shape=upstream_shape)[0]


def decode_phase(core: EncodingSession, phase: int, name: str) -> Profile:
    """Return what a format of trees holds of a phase; upstream's hold no distributions."""
    encoded = core.encode(phase, "tree" if name in _OF_UPSTREAM else "proton")
    return decode_tree(encoded, f"phase {phase}")


def decode_tree(encoded: bytes, source: str) -> Profile:
    """Return the profile of a native session's ``.proton`` bytes."""
    from proton_bench.formats.limits import reading
    from proton_bench.formats.native.file import NativeFile

    with reading(_ANY_SIZE, source):  # limits are for files of others
        return NativeFile().decode(encoded, source)


def encode_tree(profile: Profile, name: str, *, upstream_shape: bool) -> tuple[bytes, str]:
    """Return a file, and what there is to warn of.

    Args:
        profile: What was recorded.
        name: A format of trees.
        upstream_shape: Upstream's formats show the tree as upstream would.
    """
    from proton_bench.formats.hatchet.json_file import HatchetJson
    from proton_bench.formats.hatchet.msgpack_file import HatchetMsgpack
    from proton_bench.formats.hatchet.rows import depth_loss

    for each in (HatchetJson(), HatchetMsgpack()):
        if each.name == name:
            return each.encode(profile, upstream_shape=upstream_shape), depth_loss(profile)
    from proton_bench.formats.registry import find_format

    return find_format(name).encode(profile), ""


def encode_scopes(launches: Iterable[tuple[Any, ...]], *, upstream_shape: bool) -> bytes:
    """Return the timeline of scopes inside kernels, as a native session lists their launches."""
    from proton_bench.formats.chrome.scope_trace import ScopeLaunch, write_scope_trace

    whole = [ScopeLaunch(*fields) for fields in launches]
    return write_scope_trace(whole, upstream_shape=upstream_shape)


def convert_file(file: Path, name: str, *, upstream_shape: bool) -> None:
    """Write another format of a ``.proton`` file beside it.

    Raises:
        ProtonError: The file cannot be read, or the other one not written.
    """
    try:
        profile = decode_tree(file.read_bytes(), visible(file))
    except OSError as error:
        raise unreadable(file, error, "profile") from None
    content, _ = encode_tree(profile, name, upstream_shape=upstream_shape)
    write_file(file.with_suffix(f".{name}"), content)


class EncodingSession(Protocol):
    """What conversion needs of a native session."""

    def encode(self, phase: int, format: Literal["proton", "tree"], /) -> bytes:
        """Return the file of a phase."""


class WrittenPhases(Protocol):
    """What conversion needs of a native session that writes phases while it records."""

    def take_written(self) -> list[int]:
        """Return phases whose ``.proton`` file was written since the last call."""


class PhaseConverter:
    """Replaces the ``.proton`` files of phases that are over, on a thread that runs until `end`."""

    def __init__(self, session: WrittenPhases, convert: Callable[[Path], None], path: str) -> None:
        """Start the thread.

        Args:
            session: A native session that is not active yet.
            convert: Writes another format of the file.
            path: Absolute output path without a suffix.
        """
        self._session = session
        self._convert = convert
        self._path = path
        self._error: ProtonError | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proton_bench parts", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the thread, which leaves what is not converted yet."""
        self._ended.set()
        self._thread.join()

    def end(self) -> None:
        """Convert what is left.

        Raises:
            ProtonError: A phase could not be converted; its ``.proton`` file is there.
        """
        self.stop()
        self._convert_written()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while not self._ended.wait(_PERIOD_S):
            self._convert_written()

    def _convert_written(self) -> None:
        for phase in self._session.take_written():
            file = Path(f"{self._path}.part_{phase}.proton")
            try:
                self._convert(file)
            except Exception as error:  # noqa: BLE001 - imports fail in any way in the end
                if self._error is None:
                    self._error = (
                        error
                        if isinstance(error, ProtonError)
                        else OutputError(f"phases cannot be converted: {visible(str(error))}")
                    )
                    warn(f"{self._error}; {file.name} holds the phase")
                continue
            with contextlib.suppress(OSError):
                os.unlink(file)
