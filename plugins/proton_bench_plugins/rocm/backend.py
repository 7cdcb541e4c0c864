"""Makes the backends of AMD GPUs from their differences."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.plugin import Availability, Backend, Collector, Mode, ModeSpec
from proton_bench.plugin.flushing import PERIODIC_FLUSHING
from proton_bench_plugins.mode_values import AskedValues, Number
from proton_bench_plugins.rocm.availability import RocmLibrary, find_obstacle, find_reason

__all__ = ["RocmBackend", "Settings"]

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


_NO_SAMPLES = "PC sampling of AMD GPUs is not collected: see docs/reference/amd.md"


@dataclass(frozen=True, slots=True)
class RocmBackend:
    """The differences between the backends of AMD GPUs.

    Attributes:
        name: Name for ``-b``.
        summary: One line for ``proton doctor``.
        native: Its class of the compiled module.
        library: The profiler's library that it needs.
    """

    name: str
    summary: str
    native: str
    library: RocmLibrary

    def obstacle(self) -> str | None:
        """Return why it cannot run here and what to do, or None."""
        return find_obstacle(self.library, self.native)

    def declare(self) -> Backend:
        """Return the backend for the hook."""
        return Backend(
            name=self.name,
            summary=self.summary,
            availability=self._availability,
            open=self._open,
            modes=(ModeSpec("", options=OPTIONS, summary="every kernel"), PERIODIC_FLUSHING),
            data=("tree", "trace"),
            device_kinds=("HIP",),
            refused_modes={"pcsampling": _NO_SAMPLES},
        )

    def _availability(self) -> Availability:
        found = self.obstacle()
        if found is not None:
            return Availability(available=False, reason=found)
        return Availability(available=True, reason=find_reason(self.library))

    def _open(self, mode: Mode) -> Collector:
        settings = read_settings(mode)
        from proton_bench import _native
        from proton_bench_plugins.rocm.collector import RocmCollector

        return RocmCollector(getattr(_native, self.native), self.library, settings)
