"""Slices of a timeline, in either of our two formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeAlias

import msgspec

from proton_bench.errors import UsageError
from proton_bench.model.device import UNNAMED_KIND
from proton_bench.model.frame import ROOT_NAME
from proton_bench.model.origin import Origin

HOST = -1  # the device of what ran on a thread
# Categories of slices that repeat kernels, or show what ran inside them.
REPEATS = frozenset(("graph_scope", "program", "kernel_scope"))
_LINE = re.compile(r".* \(line \d+\)", re.DOTALL)
_INT64 = range(2**63)
_DIGITS = 20
_BYTES = "bytes"


class CallPath(tuple[str, ...]):
    """Names of a call path below the root.

    A few bytes of a file can name a deep path again and again, so what costs as much as the path
    is deep is computed once.
    """

    @classmethod
    def of(cls, stack: list[str]) -> CallPath:
        """Return the path of a stack, which may begin with the root."""
        return cls(stack[1:] if stack[:1] == [ROOT_NAME] else stack)

    @cached_property
    def parent(self) -> CallPath:
        """The path above it."""
        return CallPath(self[:-1])

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


class TimelineSlice(msgspec.Struct, frozen=True, gc=False):
    """One slice.

    Attributes:
        origin: The process that it is of.
        path: Its call path, itself last.
        program: Name of that process, "" where the file has none.
        kind: ``scope``, ``metric``, ``test``, ``op``, ``launch``, ``kernel``, ``copy``, ``graph``.
        name: Its name; that of a launch is one of the CUDA runtime's calls.
        start_ns: Unix time.
        duration_ns: Length.
        device: Index of the device, `HOST` for the host.
        device_kind: Kind of that device.
        row: Identifies its row in a viewer.
        lane: Number of the stream, or of the system's thread.
        lane_name: Name of the thread.
        correlation: Id that a launch and its work share, 0 for none.
        moved_bytes: Bytes that a copy moved, -1 for unknown.
        values: Metrics that the program gave it.
        is_open: Its end is not known.
    """

    origin: Origin
    path: CallPath
    program: str
    kind: str
    name: str
    start_ns: int
    duration_ns: int
    device: int
    row: Hashable
    lane: int
    device_kind: str = UNNAMED_KIND
    lane_name: str = ""
    correlation: int = 0
    moved_bytes: int = -1
    values: dict[str, Any] = {}
    is_open: bool = False


Take: TypeAlias = Callable[[TimelineSlice], None]


def counted(value: Any, default: int = 0) -> int:
    """Return a number of 63 bits, also one that is given as text; the default for all else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _DIGITS:
        value = int(value)
    return value if type(value) is int and value in _INT64 else default


def copied_bytes(values: Any, own: Any = None) -> int:
    """Return how much a copy moved: its own field, or one of its values; -1 for neither."""
    found = own if own is not None or not isinstance(values, dict) else values.get(_BYTES)
    return counted(found, -1)


def is_further_lane(name: str) -> bool:
    """Whether a row is one beside the first of its thread or stream, by its name."""
    return _LINE.fullmatch(name) is not None


def not_ours(source: str) -> UsageError:
    """Return the error for a file that is not a timeline of a session."""
    return UsageError(
        f"{source} is not a timeline of proton_bench: record one with `proton run -d trace`, and "
        "name its .pftrace or .chrome_trace file"
    )
