"""Every hook that a plugin may implement, with an example each.

A plugin is a module or object with functions marked ``@hookimpl``, named by an entry point::

    [project.entry-points."proton_bench"]
    acme = "acme_proton"

An implementation may leave out arguments that it does not need. If it raises, returns a value of
another type or misspells a hook, ``proton doctor`` reports it, and the others still run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

from proton_bench.plugin.backend import Backend, SessionFacts
from proton_bench.plugin.installed import ENTRY_POINT_GROUP
from proton_bench.plugin.kernel_mode import KernelMode

if TYPE_CHECKING:
    import typer

    from proton_bench.formats.base import Format
    from proton_bench.model.profile import Profile

__all__ = ["ENTRY_POINT_GROUP", "PROJECT_NAME", "hookimpl", "hookspec"]

PROJECT_NAME = "proton_bench"

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)


# -- capture -------------------------------------------------------------------------------------
@hookspec
def proton_backends() -> Sequence[Backend]:  # type: ignore[empty-body]
    """Offer backends for ``-b`` and ``start(backend=...)``.

    Example::

        @hookimpl
        def proton_backends():
            return [Backend(name="acme", summary="ACME accelerators", availability=find_acme,
                            open=lambda mode: AcmeCollector())]
    """


@hookspec(firstresult=True)
def proton_default_backend() -> str | None:
    """Name the backend to use when the user names none, or None to leave it to the next plugin.

    Example::

        @hookimpl
        def proton_default_backend():
            return "acme" if find_acme().available else None
    """


@hookspec
def proton_launch_hooks() -> Mapping[str, Callable[[], object]]:  # type: ignore[empty-body]
    """Offer launch hooks for ``-k`` and ``start(hook=...)``: factories of a ``Hook`` by name.

    Example::

        @hookimpl
        def proton_launch_hooks():
            return {"acme": AcmeLaunchHook}
    """


@hookspec
def proton_session_started(session: SessionFacts) -> None:
    """Called after a session and its collectors started.

    Example::

        @hookimpl
        def proton_session_started(session):
            open_sessions[session.id] = session.name
    """


@hookspec
def proton_session_finished(session: SessionFacts, paths: Sequence[Path]) -> None:
    """Called after a session was finalized, with the files it wrote.

    Example::

        @hookimpl
        def proton_session_finished(session, paths):
            for path in paths:
                upload(path)
    """


@hookspec
def proton_instrumentation_modes() -> Sequence[KernelMode]:  # type: ignore[empty-body]
    """Offer modes of the backend ``instrumentation``: compiler passes, a reader and its metrics.

    Example::

        @hookimpl
        def proton_instrumentation_modes():
            return [KernelMode(name="acme", summary="largest value of each store", version="1",
                               passes=AcmePasses, reader=read_largest,
                               metrics=(KernelMetric("largest", "pty"),))]
    """


# -- analysis ------------------------------------------------------------------------------------
@hookspec
def proton_formats() -> Sequence[Format]:  # type: ignore[empty-body]
    """Offer file formats for all reading and exporting commands.

    Example::

        @hookimpl
        def proton_formats():
            return [AcmeFormat()]
    """


@hookspec
def proton_metrics() -> Mapping[str, Callable[[Profile], Any]]:  # type: ignore[empty-body]
    """Offer derived metrics by name: functions from a profile to one float64 per row (NaN: none).

    Example::

        @hookimpl
        def proton_metrics():
            return {"time_per_flop/ns": lambda p: p.inclusive("time (ns)") / p.inclusive("flops")}
    """


@hookspec
def proton_device_peaks() -> Mapping[tuple[str, str], Mapping[str, float]]:  # type: ignore[empty-body]
    """Offer peak rates by (device kind, arch): ``flops8|16|32|64`` in 1/s, ``bytes`` in B/s.

    Example::

        @hookimpl
        def proton_device_peaks():
            return {("ACME", "x1"): {"flops16": 4.0e14, "bytes": 2.0e12}}
    """


# -- command line --------------------------------------------------------------------------------
@hookspec
def proton_commands(app: typer.Typer) -> None:
    """Add subcommands to ``proton``; existing names are rejected.

    Example::

        @hookimpl
        def proton_commands(app):
            app.command("acme")(show_acme)
    """
