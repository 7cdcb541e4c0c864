"""Builds the Typer application from the commands that a command line needs."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Collection, Iterable
from typing import Annotated, Any

import typer
from typer.models import CommandInfo

from proton_bench.plugin.manager import get_plugin_manager
from proton_bench.support.text import visible

__all__ = ["COMMANDS", "add_plugin_commands", "build_app"]

# Name -> module with a function `command` and, where needed, CONTEXT_SETTINGS, or with `group`, an
# application of several commands. A new command is one line here; only the modules that a command
# line needs are imported.
COMMANDS = {
    "run": "proton_bench.cli.commands.run",
    "view": "proton_bench.cli.commands.view",
    "diff": "proton_bench.cli.commands.diff",
    "merge": "proton_bench.cli.commands.merge",
    "gate": "proton_bench.cli.commands.gate",
    "ab": "proton_bench.cli.commands.ab",
    "noise": "proton_bench.cli.commands.noise",
    "baseline": "proton_bench.cli.commands.baseline",
    "query": "proton_bench.cli.commands.query",
    "report": "proton_bench.cli.commands.report",
    "export": "proton_bench.cli.commands.export",
    "dump-ir": "proton_bench.cli.commands.dump_ir",
    "plugins": "proton_bench.cli.commands.plugins",
    "doctor": "proton_bench.cli.commands.doctor",
}
# Commands that read profiles, so that formats of plugins matter to them.
_READERS = ("view", "diff", "merge", "gate", "baseline", "query", "report", "export")
_HELP = {"help_option_names": ["-h", "--help"]}


def build_app(names: Iterable[str]) -> typer.Typer:
    """Return an application with the given built-in commands."""
    app = typer.Typer(
        name="proton",
        help="Record where a GPU program spends its time, and look at it.\n\n"
        "`proton -n NAME script.py` is short for `proton run -n NAME script.py`, and so for pytest "
        "and python.",
        context_settings=dict(_HELP),
        # A profiler must not repaint the target's traceback, nor a bug of ours.
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    for name in names:
        module: Any = importlib.import_module(COMMANDS[name])
        settings = dict(getattr(module, "CONTEXT_SETTINGS", _HELP))
        if hasattr(module, "group"):
            app.add_typer(module.group, name=name, context_settings=settings)
        else:
            app.command(name, context_settings=settings)(module.command)
    return app


def add_plugin_commands(app: typer.Typer) -> Collection[str]:
    """Add the commands of plugins to an application; built-in names are not given away.

    Returns:
        The names that were added.
    """
    offered = typer.Typer()
    get_plugin_manager().call("proton_commands", app=offered)
    added: list[str] = []
    for command in offered.registered_commands:
        name = command.name or str(getattr(command.callback, "__name__", "")).replace("_", "-")
        problem = "exists already" if name in (*COMMANDS, *added) else _problem(command)
        if problem:
            sys.stderr.write(f"proton: warning: a plugin's command {name!r} {visible(problem)}\n")
            continue
        app.registered_commands.append(command)
        added.append(name)
    return added


def _problem(command: CommandInfo) -> str:
    """Try to build a command alone, so that a wrong one does not take the others with it."""
    probe = typer.Typer()
    probe.registered_commands.append(command)
    try:
        typer.main.get_command(probe)
    except Exception as error:  # noqa: BLE001 - Typer raises many kinds for wrong annotations
        return f"cannot be built: {error}"
    return ""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"proton-bench {importlib.metadata.version('proton-bench')}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "-V", "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand in _READERS:
        get_plugin_manager().register_formats()
