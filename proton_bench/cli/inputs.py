"""Checks of files on the command line, made before the modules that read them are loaded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from proton_bench.errors import UsageError
from proton_bench.plugin.others import may_have_others
from proton_bench.store.selection import Selection
from proton_bench.support.inputs import unreadable

__all__ = ["check_profiles", "first_file", "read_metric_names", "register_plugin_formats"]


def check_profiles(files: Iterable[str | Path]) -> None:
    """Check that each path exists; the reader checks whether it is a profile or a store.

    Raises:
        UsageError: A path does not exist.
    """
    for file in files:
        if Selection.of(file) is not None:
            continue
        try:
            os.stat(file)
        except (OSError, ValueError) as error:
            raise unreadable(Path(file), error, "profile") from None


def first_file(files: Sequence[str]) -> Path:
    """Return the one file that was named.

    Raises:
        UsageError: None or several were named.
    """
    if len(files) != 1:
        named = ", ".join(map(repr, files)) or "none"
        raise UsageError(f"Must specify a file to read, one and only one: got {named}")
    return Path(files[0])


def read_metric_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list; None gives none.

    Raises:
        UsageError: A name is empty.
    """
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"-m {text!r} has an empty name: write names with a comma between them")
    return names


def register_plugin_formats() -> None:
    """Make the file formats of plugins known."""
    if may_have_others():
        from proton_bench.plugin.manager import get_plugin_manager

        get_plugin_manager().register_formats()
