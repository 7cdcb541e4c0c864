"""Backends as findings, and broken plugins."""

from __future__ import annotations

from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.plugin.manager import OfferedBackend, PluginManager, backend_availability


def backend_section(manager: PluginManager) -> Section:
    """Return for each backend whether it can run here, and why or why not."""
    default = manager.default_backend()
    offered = sorted(manager.backends().values(), key=lambda each: each.backend.name)
    found = [_backend(each, is_default=each.backend.name == default) for each in offered]
    found += [
        # After the backends, because loading them may find a plugin broken.
        Finding(plugin.name, Status.PROBLEM, f"broken: {plugin.reason}", f"from {plugin.origin}")
        for plugin in manager.broken
    ]
    none = Finding("backends", Status.PROBLEM, "no plugin offers one")
    return Section("backends", tuple(found) or (none,))


def _backend(offered: OfferedBackend, *, is_default: bool) -> Finding:
    backend = offered.backend
    availability = backend_availability(backend)
    status = Status.OK if availability.available else Status.ABSENT
    value = f"{'default: ' if is_default else ''}{availability.reason}"
    advice = backend.summary if availability.available else ""
    return Finding(backend.name, status, value, advice, provides=(backend.name,))
