"""The command line: a router before Typer, and the one place that handles errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from proton_bench.cli.boundary import collect_rarely, end_interrupted, exit_code
from proton_bench.support.text import visible

if TYPE_CHECKING:
    import typer


_EXIT_USAGE = 2
_EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        argv: Arguments without the program name; those of the process by default.

    Returns:
        The exit code; ``run`` does not return, it replaces the process.
    """
    if argv is None:
        collect_rarely()
    arguments = list(sys.argv[1:] if argv is None else argv)
    code = exit_code(lambda: _dispatch(arguments))
    if code == _EXIT_INTERRUPTED and argv is None:
        end_interrupted()
    return code


def _dispatch(arguments: list[str]) -> int:
    from proton_bench.cli.app import (
        COMMANDS,
        add_plugin_commands,
        build_app,
        needs_plugin_commands,
        route,
    )

    commands = set(COMMANDS)
    app = build_app()
    if needs_plugin_commands(arguments, commands):
        commands |= set(add_plugin_commands(app))
    return _call(app, route(arguments, commands), commands)


def _call(app: typer.Typer, arguments: list[str], commands: set[str]) -> int:
    import typer

    name = os.path.basename(sys.argv[0])
    prog_name = name if name in ("proton", "proton-bench") else "proton"
    try:
        result = app(arguments, prog_name=prog_name, standalone_mode=False, obj=commands)
    except typer.Abort:
        return _EXIT_INTERRUPTED
    except Exception as error:
        # Typer's usage errors are not public classes, so they are recognized by their interface.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        sys.stderr.write(f"proton: error: {visible(_usage_message(error, message()))}\n")
        return int(getattr(error, "exit_code", _EXIT_USAGE))
    return result if isinstance(result, int) else 0


def _usage_message(error: Exception, message: str) -> str:
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "proton")
    return f"{message.rstrip('.')}; see `{path} --help`"
