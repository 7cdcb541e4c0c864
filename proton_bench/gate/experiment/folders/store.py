"""Folders of experiments below ``.proton`` of a project."""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
import shutil
import stat
from pathlib import Path

from proton_bench.errors import UsageError
from proton_bench.support.files import Folder, refused
from proton_bench.support.text import visible

__all__ = ["drop_unused", "kept_folder", "new_folder", "shown"]

_IGNORE = ".gitignore"


def new_folder(kind: str, store: Path) -> Path:
    """Create a folder for one experiment; names sort by time, and git ignores them.

    Args:
        kind: Name of the folder above it, such as ``ab``.
        store: The project's ``.proton``.

    Raises:
        UsageError: A folder above it is a link.
        OutputError: It cannot be made.
    """
    now = datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    name = f"{now}-{secrets.token_hex(3)}"
    place = store / kind
    with (
        refused(f"make a folder in {str(place)!a}"),
        Folder.open(store, create=True) as project,
        project.folder(kind, create=True) as above,
    ):
        if above.mode(_IGNORE) is None:
            above.write(_IGNORE, b"*\n")
        above.make(name)
    return (place / name).resolve()


def drop_unused(folder: Path) -> None:
    """Remove a folder of an experiment that ended before a run, and what was made for it above."""
    if any(folder.rglob("*.proton")):
        return
    with contextlib.suppress(OSError):  # it says no more than the error that ended it
        shutil.rmtree(folder)
        if os.listdir(folder.parent) == [_IGNORE]:
            shutil.rmtree(folder.parent)
            folder.parent.parent.rmdir()


def kept_folder(kind: str, store: Path) -> Path:
    """Return the folder of the latest experiment of a kind.

    Raises:
        UsageError: There is none, or a folder above it is a link.
    """
    try:
        with Folder.open(store) as project, project.folder(kind) as above:
            names = [name for name in above.names() if not name.startswith(".")]
            found = [name for name in names if stat.S_ISDIR(above.mode(name) or 0)]
    except OSError:
        found = []
    if not found:
        raise UsageError(f"there is no experiment in {shown(store / kind)}")
    return (store / kind / found[-1]).resolve()


def shown(path: Path) -> str:
    """Return a path relative to the current folder, if that is shorter."""
    return visible(min(os.path.relpath(path), str(path), key=len))
