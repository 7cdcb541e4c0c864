"""Backends as findings, with what keeps one from recording everything, and broken plugins."""

from __future__ import annotations

from collections.abc import Iterator

from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.plugin.manager import OfferedBackend, PluginManager, backend_availability

__all__ = ["backend_section"]


def backend_section(manager: PluginManager) -> Section:
    """Return for each backend whether it can run here, and why or why not."""
    default = manager.default_backend()
    offered = sorted(manager.backends().values(), key=lambda each: each.backend.name)
    found = [
        finding
        for each in offered
        for finding in _backend(each, is_default=each.backend.name == default)
    ]
    found += [
        # After the backends, because loading them may find a plugin broken.
        Finding(plugin.name, Status.PROBLEM, f"broken: {plugin.reason}", f"from {plugin.origin}")
        for plugin in manager.broken
    ]
    none = Finding("backends", Status.PROBLEM, "no plugin offers one")
    return Section("backends", tuple(found) or (none,))


def _backend(offered: OfferedBackend, *, is_default: bool) -> Iterator[Finding]:
    backend = offered.backend
    availability = backend_availability(backend)
    status = Status.OK if availability.available else Status.ABSENT
    value = f"{'default: ' if is_default else ''}{availability.reason}"
    advice = backend.summary if availability.available else ""
    yield Finding(backend.name, status, value, advice, provides=(backend.name,))
    if availability.available and backend.examine is not None:
        yield from _limits(offered)


def _limits(offered: OfferedBackend) -> Iterator[Finding]:
    """Yield what an available backend cannot do here."""
    backend = offered.backend
    try:
        for each in tuple(backend.examine() if backend.examine is not None else ()):
            if each.status is not Status.OK:
                name = f"{backend.name}: {each.name}"
                yield Finding(name, each.status, each.value, each.advice, each.provides)
    except Exception as error:  # noqa: BLE001 - a plugin of others must not end the examination
        value = f"the check failed: {type(error).__name__}: {error}"
        yield Finding(
            f"{backend.name}: examination", Status.PROBLEM, value, f"from {offered.plugin}"
        )
