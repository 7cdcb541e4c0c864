"""Backends and plugins as findings."""

from __future__ import annotations

from collections.abc import Iterator

from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.plugin.manager import OfferedBackend, PluginManager, backend_availability

__all__ = ["backend_section", "examined_sections", "plugin_section"]


def backend_section(manager: PluginManager) -> Section:
    """Return for each backend whether it can run here, and why or why not."""
    default = manager.default_backend()
    offered = sorted(manager.backends().values(), key=lambda each: each.backend.name)
    findings = tuple(_backend(each, is_default=each.backend.name == default) for each in offered)
    none = Finding("backends", Status.PROBLEM, "no plugin offers one", "see the plugins below")
    return Section("backends", findings or (none,))


def _backend(offered: OfferedBackend, *, is_default: bool) -> Finding:
    backend = offered.backend
    availability = backend_availability(backend)
    status = Status.OK if availability.available else Status.ABSENT
    value = f"{'default: ' if is_default else ''}{availability.reason}"
    return Finding(backend.name, status, value, backend.summary, provides=(backend.name,))


def examined_sections(manager: PluginManager) -> Iterator[Section]:
    """Yield the sections of backends about their vendor's libraries."""
    for name, offered in sorted(manager.backends().items()):
        if offered.backend.examine is None:
            continue
        try:
            findings = tuple(offered.backend.examine())
        except Exception as error:  # noqa: BLE001 - a plugin of others must not end the examination
            value = f"the check failed: {type(error).__name__}: {error}"
            findings = (Finding("examination", Status.PROBLEM, value, f"from {offered.plugin}"),)
        if findings:
            yield Section(name, findings)


def plugin_section(manager: PluginManager) -> Section:
    """Return the origin of each plugin, or why it is left out."""
    broken = {plugin.name: plugin.reason for plugin in manager.broken}
    findings = [
        Finding(name, Status.PROBLEM, f"broken: {broken[name]}", f"from {origin}")
        if name in broken
        else Finding(name, Status.OK, origin)
        for name, origin in manager.origins.items()
    ]
    return Section("plugins", tuple(findings))
