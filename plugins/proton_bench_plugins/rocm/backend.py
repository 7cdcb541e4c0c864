"""Makes the backends of AMD GPUs from their differences."""

from __future__ import annotations

from dataclasses import dataclass

from proton_bench.plugin import Availability, Backend, Collector, Mode, ModeSpec
from proton_bench.plugin.flushing import PERIODIC_FLUSHING
from proton_bench_plugins.rocm.availability import RocmLibrary, find_obstacle, find_reason
from proton_bench_plugins.rocm.settings import OPTIONS, read_settings

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
