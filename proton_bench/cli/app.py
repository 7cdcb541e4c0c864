"""Builds the Typer application; a command's module is imported when that command is used."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, ParameterInfo

from proton_bench.plugin.others import ask_others, register_plugin_formats
from proton_bench.support.text import visible

DEFAULT_COMMAND = "run"
VERSION_OPTIONS = ("-V", "--version")
ROOT_OPTIONS = ("-h", "--help", *VERSION_OPTIONS)
# Commands that distinguish words before ``--`` from a command after it; Typer would drop the mark.
_TAKING_A_COMMAND = ("gate",)
_KNOWN_TARGETS = ("pytest", "python")
_COMMAND_NAME = re.compile(r"[a-z][a-z0-9-]*")


def route(arguments: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return the arguments with an explicit command; without any arguments that is help.

    A ``--`` between a command and its target command is doubled, because Typer removes one.

    Args:
        arguments: What the user wrote, without the program name.
        commands: Names of the commands that exist.
    """
    if not arguments:
        return ["--help"]
    first = arguments[0].partition("=")[0]
    if first in _TAKING_A_COMMAND and first in commands and "--" in arguments:
        place = arguments.index("--")
        return [*arguments[:place], "--", *arguments[place:]]
    if first in commands or first in ROOT_OPTIONS:
        return list(arguments)
    return [DEFAULT_COMMAND, *arguments]


def needs_plugin_commands(arguments: Sequence[str], commands: Collection[str]) -> bool:
    """Return whether these arguments may name commands of plugins; most runs skip loading them.

    They matter for root options (help lists them) and for an unknown first word.
    """
    if not arguments:
        return True
    first = arguments[0]
    if first in ROOT_OPTIONS:
        return first not in VERSION_OPTIONS
    return (
        _COMMAND_NAME.fullmatch(first) is not None
        and first not in commands
        and first not in _KNOWN_TARGETS
        and not os.path.exists(first)
    )


_CONVERT = object()
_USUAL = ParameterInfo()
# Typer's checks and conversions of paths.
_PATH_SETTINGS = (
    "allow_dash",
    "dir_okay",
    "exists",
    "file_okay",
    "path_type",
    "readable",
    "resolve_path",
    "writable",
)


# Typer converts every value with pydantic, even missing ones, and importing pydantic takes longer
# than most commands. Typer still converts or checks the values that need it.
class PlainValuesCommand(TyperCommand):
    """A command whose plain values are not converted."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments and options, the one for help among them."""
        return _taking_plain_values(super().get_params(ctx))


class PlainValuesGroup(TyperGroup):
    """A group of commands whose own plain values are not converted."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments and options, the one for help among them."""
        return _taking_plain_values(super().get_params(ctx))


def _taking_plain_values(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        # Older versions of Typer lack this description and do not use pydantic.
        kind: Any = getattr(parameter, "type_descriptor", None)
        is_done = kind is None or "process_value" in vars(parameter)
        if not is_done and kind.parameter_info.parser is None:
            parameter.process_value = _processing(parameter, kind)
    return parameters


def _processing(parameter: Any, kind: Any) -> Callable[[typer.Context, Any], Any]:
    convert = parameter.process_value
    paths_are_usual = all(
        getattr(kind.parameter_info, name) == getattr(_USUAL, name) for name in _PATH_SETTINGS
    )

    def process_value(context: typer.Context, value: Any) -> Any:
        plain = _plain(value, kind.annotation, paths_are_usual=paths_are_usual)
        if plain is _CONVERT or (parameter.required and plain in (None, [])):
            return convert(context, value)
        callback = parameter.callback
        return plain if callback is None else callback(context, parameter, plain)

    return process_value


def _plain(value: Any, wanted: Any, *, paths_are_usual: bool) -> Any:
    """Return a value as the command gets it, or `_CONVERT`."""
    if value is None or type(value) is wanted:
        return value
    if get_origin(wanted) is list and isinstance(value, list | tuple):
        (each_wanted,) = get_args(wanted)
        found = [_plain(each, each_wanted, paths_are_usual=paths_are_usual) for each in value]
        return _CONVERT if _CONVERT in found else found
    if wanted is Path and isinstance(value, str) and paths_are_usual and _is_no_problem(value):
        return Path(value)
    return _CONVERT


def _is_no_problem(path: str) -> bool:
    """Whether Typer accepts a path: it is readable, or missing, which we report ourselves."""
    try:
        return os.access(path, os.R_OK) or not os.path.exists(path)
    except ValueError:
        return False


# Name -> first sentence of its help. The module in `cli.commands` has
# the same name, and in it a function `command` and, where needed, CONTEXT_SETTINGS; or `group`,
# an application of several commands. A new command is one line here.
COMMANDS = {
    "run": "Run a program and record where the time of its Python processes goes.",
    "bench": "Measure how long a function takes on the GPU, by its kernels.",
    "view": "Show where the time went, as a tree.",
    "why": "Say why a run is slow, with evidence and the most that can be saved.",
    "diff": "Show what changed from one profile to another, and why.",
    "merge": "Merge the files of the processes, ranks or phases of a run.",
    "gate": (
        "Compare new runs with base runs; exits with 0 if nothing got slower and 1 if something "
        "did."
    ),
    "ab": "Run two versions of a program in turn and show which call paths got slower.",
    "bisect": "Find the first revision that is slower than GOOD.",
    "history": "Show how long each call path took over time, and the runs where that changed.",
    "baseline": "Keep runs to compare with: save, promote, list, show and remove them.",
    "query": "Query profiles in SQL.",
    "store": "Keep the profiles of many runs, ranks and revisions in one store, and query them.",
    "report": "Write an HTML page with flame graph, callers and callees, table and roofline.",
    "export": "Write a profile in another format.",
    "doctor": ("Check this installation (versions, scripts, calibration, backends) or profiles."),
}
# Commands that read profiles, so that formats of plugins matter to them.
_READERS = (
    "view",
    "why",
    "diff",
    "merge",
    "gate",
    "history",
    "baseline",
    "query",
    "store",
    "report",
    "export",
)
_HELP = {"help_option_names": ["-h", "--help"]}
_WIDTH = 100  # of help, where the terminal has as many columns
_LONGEST = 1000  # characters of a sentence in a list
# A profiler must not repaint the target's traceback, nor a bug of ours; and rich takes longer to
# lay out a help text than most commands take.
_PLAIN: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": None}


class _WholeSentences(PlainValuesGroup):
    """A command list that shows the whole first sentence of each help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._sentence(name)) for name in self.list_commands(ctx)])

    def _sentence(self, name: str) -> str:
        return self.commands[name].get_short_help_str(_LONGEST)


class _CommandsOnDemand(_WholeSentences):
    """The commands of `proton`, built on demand: help does not build all of them."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; a built-in one is built now."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            alone = typer.Typer(add_completion=False, **_PLAIN)
            _add(alone, cmd_name)
            self.add_command(typer.main.get_group(alone).commands[cmd_name])
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names, those of plugins last."""
        del ctx
        return list(dict.fromkeys([*COMMANDS, *self.commands]))

    def _sentence(self, name: str) -> str:
        return COMMANDS.get(name) or super()._sentence(name)


def build_app(names: Iterable[str] = ()) -> typer.Typer:
    """Return the application.

    Args:
        names: Built-in commands to build at once; others are built on demand.
    """
    app = typer.Typer(
        name="proton",
        cls=_CommandsOnDemand,
        help="Record where a GPU program spends its time, and look at it.\n\n`proton -n NAME "
        "script.py` is short for `proton run -n NAME script.py`, and so for pytest and "
        "python.",
        context_settings={**_HELP, "max_content_width": _WIDTH},
        add_completion=False,
        **_PLAIN,
    )
    app.callback()(_root)
    for name in names:
        _add(app, name)
    return app


def _add(app: typer.Typer, name: str) -> None:
    module: Any = importlib.import_module(f"proton_bench.cli.commands.{name}")
    settings = dict(getattr(module, "CONTEXT_SETTINGS", _HELP))
    if hasattr(module, "group"):
        for each in module.group.registered_commands:
            each.cls = PlainValuesCommand
        app.add_typer(module.group, name=name, cls=_WholeSentences, context_settings=settings)
    else:
        app.command(name, cls=PlainValuesCommand, context_settings=settings)(module.command)


def add_plugin_commands(app: typer.Typer) -> Collection[str]:
    """Add the commands of plugins to an application; they cannot replace built-in ones.

    Returns:
        The names that were added.
    """
    offered = typer.Typer()
    ask_others("proton_commands", app=offered)
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
    """Try to build a command alone, so that a broken one does not affect the others."""
    probe = typer.Typer()
    probe.registered_commands.append(command)
    try:
        typer.main.get_command(probe)
    except Exception as error:  # noqa: BLE001 - Typer raises many kinds for wrong annotations
        return f"cannot be built: {error}"
    return ""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"proton-bench {version('proton-bench')}")
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
        register_plugin_formats()
