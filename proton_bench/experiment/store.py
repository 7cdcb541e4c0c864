"""Folders of experiments below ``.proton`` of a project."""

from __future__ import annotations

import datetime
import os
import secrets
from pathlib import Path

from proton_bench.errors import OutputError, UsageError
from proton_bench.experiment.json_files import make_folder

__all__ = ["kept_folder", "new_folder", "shown"]


def new_folder(kind: str, store: Path) -> Path:
    """Make a folder for one experiment; names sort by time, and git leaves them alone.

    Args:
        kind: Word for the folder above it, such as ``ab``.
        store: The project's ``.proton``.

    Raises:
        OutputError: It cannot be made.
    """
    above = make_folder(store / kind)
    ignore = above / ".gitignore"
    try:
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
    except OSError as error:
        raise OutputError(f"cannot write {str(ignore)!a}: {error.strerror}") from error
    now = datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    return make_folder(above / f"{now}-{secrets.token_hex(3)}").resolve()


def kept_folder(kind: str, store: Path) -> Path:
    """Return the folder of the latest experiment of a kind.

    Raises:
        UsageError: There is none.
    """
    found = sorted(each for each in (store / kind).glob("*/") if not each.name.startswith("."))
    if not found:
        raise UsageError(f"there is no experiment in {shown(store / kind)}")
    return found[-1].resolve()


def shown(path: Path) -> str:
    """Return a path as somebody in the current folder would write it."""
    return min(os.path.relpath(path), str(path), key=len)
