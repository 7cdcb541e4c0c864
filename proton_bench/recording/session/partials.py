"""Partial files: what a session recorded so far is written every few seconds.

A native thread does so (``session/partial_writer.h``), because the process may be killed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Protocol

from proton_bench.errors import UsageError
from proton_bench.recording.native import native
from proton_bench.recording.session.options import STDOUT, CapturePlan
from proton_bench.recording.session.output_format import check_formats

_INTERVAL = "PROTON_BENCH_PARTIAL_INTERVAL_S"
_DEFAULT_INTERVAL_S = 2.0
_MAX_INTERVAL_S = 1e6


def library_asks() -> bool:
    """Whether sessions of ``start()`` have partial files: only where the variable is set."""
    return bool(os.environ.get(_INTERVAL))


class Recording(Protocol):
    """What partial files need of a session."""

    @property
    def core(self) -> native.Session:
        """The native session."""

    @property
    def plan(self) -> CapturePlan:
        """What it records."""

    def finalize(self, *, formats: Sequence[str]) -> object:
        """End it."""


def write_partials(session: Recording, formats: Sequence[str]) -> None:
    """Have what the session recorded so far written as ``NAME.partial.proton``.

    Every ``PROTON_BENCH_PARTIAL_INTERVAL_S`` seconds (2; 0 switches it off), until the session is
    finalized, which removes the file. A recording on stdout has none.

    Args:
        session: A live session, which is finalized if this fails.
        formats: What its end will write.

    Raises:
        UsageError: The interval is not a number of seconds, or the end cannot write a format.
        BackendUnavailableError: The thread cannot be started.
    """
    try:
        _begin(session.core, session.plan, formats)
    except BaseException:
        session.finalize(formats=())
        raise


def _begin(core: native.Session, plan: CapturePlan, formats: Sequence[str]) -> None:
    check_formats(formats, plan.data, plan.writable_timelines)
    text = os.environ.get(_INTERVAL, "")
    try:
        seconds = float(text) if text else _DEFAULT_INTERVAL_S
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _MAX_INTERVAL_S:
        raise UsageError(
            f"{_INTERVAL}={text!r} is not a number of seconds: give one, or 0 for never"
        )
    if seconds and plan.path != STDOUT:
        core.write_partials(os.fsencode(plan.path), seconds)
