"""Decides, before Typer sees the arguments, which command they are for.

Upstream's ``proton script.py`` and our ``proton view x.proton`` share one name. The rule: if the
first word is not a command or a root option, all words belong to ``run``. A script with the name of
a command is ``./view``, ``-- view`` or ``run view``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

__all__ = [
    "DEFAULT_COMMAND",
    "ROOT_OPTIONS",
    "VERSION_OPTIONS",
    "needs_plugin_commands",
    "route",
]

DEFAULT_COMMAND = "run"
VERSION_OPTIONS = ("-V", "--version")
ROOT_OPTIONS = ("-h", "--help", *VERSION_OPTIONS, "--install-completion", "--show-completion")
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
