"""Command-line values that need no conversion, read without pydantic.

Typer converts every value with pydantic, even missing ones, and importing pydantic takes longer
than most commands. Typer still converts or checks the values that need it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ParameterInfo

from proton_bench.errors import UsageError

__all__ = ["PlainValuesCommand", "PlainValuesGroup"]

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


class PlainValuesCommand(TyperCommand):
    """A command whose plain values are not converted.

    Attributes:
        removed: Options of earlier versions, and what to do instead.
    """

    removed: ClassVar[Mapping[str, str]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command.

        Raises:
            UsageError: One is an option of an earlier version.
        """
        for word in itertools.takewhile(lambda word: word != "--", args):
            name = word.partition("=")[0]
            if name in self.removed:
                raise UsageError(f"{name} is not an option any more: {self.removed[name]}")
        return super().parse_args(ctx, args)

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
