"""Cost of records for the kernels of a session: registers, shared memory and dropped limits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from proton_bench_plugins.instrumentation.compiler.activation import dropped_maxnreg
from proton_bench_plugins.instrumentation.compiler.plain import PlainKernel, compile_plain
from proton_bench_plugins.instrumentation.compiler.scope_table import KernelScopes
from proton_bench_plugins.instrumentation.settings import Settings

__all__ = ["KernelCosts"]

# Most kernels to compile again at the end of the session, to limit the wait.
_MOST_COMPARED = 16


@dataclass(slots=True)
class _Noted:
    scopes: KernelScopes
    plain: PlainKernel | None = None
    is_compared: bool = False


class KernelCosts:
    """The loaded kernels with records, and their needs without.

    Args:
        settings: Options of the mode.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kernels: dict[str, _Noted] = {}

    @property
    def has_kernels(self) -> bool:
        """Whether a kernel with records was noted."""
        return bool(self._kernels)

    def note(self, scopes: KernelScopes) -> None:
        """Note a loaded kernel.

        Args:
            scopes: The kernel.
        """
        self._kernels.setdefault(str(scopes.metadata_path), _Noted(scopes))

    def facts(self) -> list[dict[str, Any]]:
        """Return one entry per kernel, compiling it without records if allowed."""
        if self._settings.compare and self._settings.custom is None:
            for noted in [*self._kernels.values()][:_MOST_COMPARED]:
                _compare(noted)
        return [_entry(noted) for noted in self._kernels.values()]

    def remark(self) -> str | None:
        """Return which limits of registers were dropped, or None."""
        dropped = {
            noted.scopes.name: limit
            for noted in self._kernels.values()
            if (limit := dropped_maxnreg(noted.scopes.mode)) is not None
        }
        if not dropped:
            return None
        kernels = ", ".join(f"{name} ({limit})" for name, limit in dropped.items())
        return f"Triton drops maxnreg of kernels with records; it did for {kernels}"


def _compare(noted: _Noted) -> None:
    if noted.is_compared:
        return
    noted.is_compared = True
    try:
        metadata = json.loads(noted.scopes.metadata_path.read_text(encoding="utf-8"))
        limit = dropped_maxnreg(noted.scopes.mode)
        noted.plain = compile_plain(noted.scopes.ttgir_path, metadata, limit)
    except Exception:  # noqa: BLE001 - only a comparison: Triton raises whatever it meets
        noted.plain = None


def _entry(noted: _Noted) -> dict[str, Any]:
    scopes, plain = noted.scopes, noted.plain
    entry = {
        "name": scopes.name,
        "scopes": len(scopes.names),
        "warps": scopes.num_warps,
        "arch": str(scopes.target["arch"]),
        "registers": scopes.registers,
        "shared_bytes": scopes.shared,
        "scratch_bytes_per_program": scopes.profile_scratch_size,
        "plain_registers": plain.registers if plain else None,
        "plain_shared_bytes": plain.shared if plain else None,
        "dropped_maxnreg": dropped_maxnreg(scopes.mode),
    }
    return {key: value for key, value in entry.items() if value is not None}
