"""The mode that writes finished phases while the program runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from proton_bench.errors import UsageError
from proton_bench.plugin.backend import Backend, Mode, ModeSpec, parse_mode, split_modes

_NAME = "periodic_flushing"
_FORMATS = ("hatchet", "hatchet_msgpack", "chrome_trace", "proton", "perfetto")
_MAX_INTERVAL_S = 1e9

PERIODIC_FLUSHING = ModeSpec(
    _NAME,
    options={
        "format": f"of the files: {', '.join(_FORMATS)}",
        "interval": "seconds after which a new phase begins automatically",
    },
    summary="write each finished phase as NAME.part_N, and free it",
)
"""The mode for backends with phases; it is joined to another mode with ``+``."""


@dataclass(frozen=True, slots=True)
class PeriodicFlushing:
    """How a session writes phases while the program runs.

    Attributes:
        format: Format of the files; "" is the default of the session's kind of data.
        interval_s: Seconds after which a new phase begins by itself; 0 for never.
        text: The mode as the user gave it.
    """

    format: str
    interval_s: float
    text: str


def take_flushing(
    backends: Sequence[Backend], text: str | None
) -> tuple[PeriodicFlushing | None, str]:
    """Extract the mode of this module from a mode text.

    Args:
        backends: The backends of one session.
        text: Modes joined by ``+``.

    Returns:
        The mode or None, and the text of the other modes.

    Raises:
        UsageError: No backend declares the mode, it is given twice, or an option is wrong.
    """
    parts = split_modes(backends, text or "")
    asked = [part for part in parts if part.partition(":")[0] == _NAME]
    able = [each.name for each in backends if PERIODIC_FLUSHING in each.modes]
    if not asked or not able:
        return None, text or ""  # if no backend declares it, it is an unknown mode
    if len(asked) > 1:
        raise UsageError(f"mode {text!r} has {_NAME} twice: give it once")
    rest = "+".join(part for part in parts if part not in asked)
    return _read(parse_mode(asked[0]), f"{able[0].capitalize()}Profiler"), rest


def with_flushing(backend: Backend, mode: Mode, flushing: PeriodicFlushing | None) -> Mode:
    """Add the flushing to a backend's mode, because two sessions must agree on it.

    Args:
        backend: The backend.
        mode: Its other mode.
        flushing: Result of ``take_flushing``.
    """
    if flushing is None or PERIODIC_FLUSHING not in backend.modes:
        return mode
    return Mode(mode.name, mode.options, "+".join(filter(None, (mode.text, flushing.text))))


def _read(mode: Mode, profiler: str) -> PeriodicFlushing:
    for key in mode.options:
        if key not in PERIODIC_FLUSHING.options:
            known = ", ".join(PERIODIC_FLUSHING.options)
            raise UsageError(f"{profiler}: unsupported option key: {key}; choose from: {known}")
    wanted = mode.options.get("format", "")
    if "format" in mode.options and wanted not in _FORMATS:
        raise UsageError(
            f"{profiler}: unsupported format: {wanted}; choose from: {', '.join(_FORMATS)}"
        )
    return PeriodicFlushing(wanted, _read_interval(mode, profiler), mode.text)


def _read_interval(mode: Mode, profiler: str) -> float:
    text = mode.options.get("interval")
    if text is None:
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _MAX_INTERVAL_S:
        raise UsageError(f"{profiler}: unsupported interval: {text}; give a number of seconds")
    return seconds
