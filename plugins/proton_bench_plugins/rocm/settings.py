"""Settings of the backends of AMD GPUs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.plugin import Mode
from proton_bench_plugins.mode_values import AskedValues, Number

OPTIONS = {
    "copies": "on: memory copies and memsets have their own nodes; off (default)",
    "buffer_bytes": "size of the record buffer, 65536 to 268435456; default 1048576",
    "flush_period_ms": (
        "records are read at least this often; default 100, 0 leaves it to the library"
    ),
}
_BUFFER_BYTES = Number(
    "buffer_bytes",
    range(64 << 10, (256 << 20) + 1),
    1 << 20,
)
_FLUSH_PERIOD_MS = Number("flush_period_ms", range(3_600_001), 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to collect.

    Attributes:
        buffer_bytes: Size of the record buffer.
        flush_period_ms: Records are read at least this often; 0 leaves it to the library.
        copies: Also record memory copies and memsets.
        ranges: ROCTX ranges of the target are scopes.
    """

    buffer_bytes: int = _BUFFER_BYTES.default
    flush_period_ms: int = _FLUSH_PERIOD_MS.default
    copies: bool = False
    ranges: bool = True


def read_settings(mode: Mode, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a session.

    Args:
        mode: Mode with its options.
        environ: Environment to read; None is this process's.

    Raises:
        UsageError: A value is malformed or out of its range.
    """
    asked = AskedValues(mode, os.environ if environ is None else environ)
    return Settings(
        buffer_bytes=asked.number(_BUFFER_BYTES),
        flush_period_ms=asked.number(_FLUSH_PERIOD_MS),
        copies=asked.choice("copies", "", ("off", "on")) == "on",
        ranges=asked.switch("TRITON_ENABLE_NVTX", unless_set=True),
    )
