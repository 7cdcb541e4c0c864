"""``proton plugins``: list backends, whether they can run here, and why not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proton_bench.support.text import json_text, visible

if TYPE_CHECKING:
    from proton_bench.plugin.manager import OfferedBackend, PluginManager

__all__ = ["command", "describe"]

_SCHEMA = "proton_bench.plugins"
_VERSION = [1, 0]


def command(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """List backends, whether they are available and why, and broken plugins."""
    from proton_bench.plugin.manager import get_plugin_manager

    described = describe(get_plugin_manager())
    typer.echo(json_text(json.dumps(described, indent=2)) if as_json else _render(described))


def describe(manager: PluginManager) -> dict[str, Any]:
    """Return facts about the plugins of a manager as JSON values."""
    backends = [_describe_backend(offered) for offered in manager.backends().values()]
    broken = {plugin.name: plugin.reason for plugin in manager.broken}
    plugins = [
        {"name": name, "origin": origin, "problem": broken.get(name)}
        for name, origin in manager.origins.items()
    ]
    return {
        "schema": _SCHEMA,
        "version": _VERSION,
        "default_backend": manager.default_backend(),
        "backends": sorted(backends, key=lambda backend: str(backend["name"])),
        "plugins": plugins,
    }


def _describe_backend(offered: OfferedBackend) -> dict[str, Any]:
    from proton_bench.plugin.manager import backend_availability

    backend = offered.backend
    availability = backend_availability(backend)
    return {
        "name": backend.name,
        "summary": backend.summary,
        "plugin": offered.plugin,
        "available": availability.available,
        "reason": availability.reason,
        "data": list(backend.data),
        "device_kinds": list(backend.device_kinds),
        "modes": [
            {"name": mode.name, "summary": mode.summary, "options": dict(mode.options)}
            for mode in backend.modes
        ],
    }


def _render(described: dict[str, Any]) -> str:
    lines = ["Backends (-b NAME, several joined by +):"]
    width = max((len(backend["name"]) for backend in described["backends"]), default=0)
    for backend in described["backends"]:
        lines += _render_backend(backend, width, described["default_backend"])
    if not described["backends"]:
        lines.append("  none")
    lines += ["", "Plugins:"]
    width = max((len(plugin["name"]) for plugin in described["plugins"]), default=0)
    for plugin in described["plugins"]:
        problem = f"  BROKEN: {visible(plugin['problem'])}" if plugin["problem"] else ""
        lines.append(f"  {plugin['name']:<{width}}  {plugin['origin']}{problem}")
    return "\n".join(lines)


def _render_backend(backend: dict[str, Any], width: int, default: str) -> list[str]:
    state = "available" if backend["available"] else "unavailable"
    mark = " (default)" if backend["name"] == default else ""
    indent = " " * (width + 4)
    lines = [
        f"  {backend['name']:<{width}}  {state}{mark}: {visible(backend['reason'])}",
        f"{indent}{visible(backend['summary'])}",
    ]
    for mode in backend["modes"]:
        options = "".join(f"[:{key}=...]" for key in mode["options"])
        text = mode["name"] + options if mode["name"] else options[2:-1].replace("][:", ":")
        lines.append(f"{indent}mode {text}  {mode['summary']}".rstrip())
    return lines
