"""The formats that a recording process writes, and which of them fit a kind of data."""

from __future__ import annotations

import os
from collections.abc import Sequence

from proton_bench.errors import UsageError

TREE_FORMATS = ("hatchet", "hatchet_msgpack", "proton", "json")
TRACE_FORMATS = ("chrome_trace", "perfetto")
_VARIABLE = "PROTON_BENCH_TRACE_FORMATS"
_SUFFIXES = {"perfetto": "pftrace"}


def suffix_of(name: str) -> str:
    """Return what the names of files of a format end in, without the dot."""
    return _SUFFIXES.get(name, name)


def chosen_trace_formats(default: str) -> tuple[str, ...]:
    """Return the formats in which timelines are written.

    Args:
        default: The format where ``PROTON_BENCH_TRACE_FORMATS`` names none.

    Raises:
        UsageError: ``PROTON_BENCH_TRACE_FORMATS`` names another one.
    """
    text = os.environ.get(_VARIABLE, "")
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    for name in names:
        if name not in TRACE_FORMATS:
            known = ", ".join(TRACE_FORMATS)
            raise UsageError(f"{_VARIABLE}={text!r} names {name!r}; choose from: {known}")
    return names or (default,)


def trace_formats_of(formats: Sequence[str], data: str) -> tuple[str, ...]:
    """Return the formats that are timelines; none unless ``data`` is ``trace``."""
    return tuple(name for name in formats if data == "trace" and name in TRACE_FORMATS)


def default_formats(data: str, trace_formats: Sequence[str] = TRACE_FORMATS[:1]) -> tuple[str, ...]:
    """Return what a session writes where no format is named: as upstream does.

    Args:
        data: Kind of data of the session.
        trace_formats: Formats that its timeline is written in.
    """
    return tuple(trace_formats or TRACE_FORMATS[:1]) if data == "trace" else ("hatchet",)


def check_formats(
    formats: Sequence[str], data: str = "tree", written: Sequence[str] = TRACE_FORMATS
) -> None:
    """Refuse a format that a session of such data cannot write.

    Args:
        formats: Formats that are asked for.
        data: Kind of data of the session.
        written: Formats that its timeline is written in while it records.

    Raises:
        UsageError: A format is unknown, needs a timeline, or was not chosen when the session
            started; the message names the choices.
    """
    choices = ", ".join((*TREE_FORMATS, *written) if data == "trace" else TREE_FORMATS)
    for name in formats:
        if name not in (*TREE_FORMATS, *TRACE_FORMATS):
            raise UsageError(f"Unknown output format: {name}; choose from: {choices}")
        if name in TRACE_FORMATS and data != "trace":
            raise UsageError(
                f"{name} needs a timeline: start the session with data='trace' (-d trace), or "
                f"choose from: {choices}"
            )
        if name in TRACE_FORMATS and name not in written:
            raise UsageError(
                f"{name} cannot be written at the end, because timelines are written while the "
                f"program runs: set {_VARIABLE}={name} before the session starts, or choose from: "
                f"{choices}"
            )
