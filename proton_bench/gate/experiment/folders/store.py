"""Folders of experiments below ``.proton`` of a project."""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
import shutil
from pathlib import Path

from proton_bench.errors import UsageError
from proton_bench.gate.baselines import check_plain
from proton_bench.support.files import refused, write_file
from proton_bench.support.text import visible

__all__ = ["drop_unused", "kept_folder", "new_folder", "shown"]

_IGNORE = ".gitignore"


def new_folder(kind: str, store: Path) -> Path:
    """Create a folder for one experiment; names sort by time, and git ignores them.

    Args:
        kind: Name of the folder above it, such as ``ab``.
        store: The project's ``.proton``.

    Raises:
        UsageError: A part of the store is a link.
        OutputError: It cannot be made.
    """
    now = datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    name = f"{now}-{secrets.token_hex(3)}"
    place = store / kind
    ignored = place / _IGNORE
    check_plain(store, place, ignored)
    with refused(f"make a folder in {str(place)!a}"):
        place.mkdir(parents=True, exist_ok=True)
        if not ignored.exists():
            write_file(ignored, "*\n")
        (place / name).mkdir()
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
        UsageError: There is none.
    """
    try:
        names = sorted(each.name for each in (store / kind).iterdir() if each.is_dir())
    except OSError:
        names = []
    if not names:
        raise UsageError(f"there is no experiment in {shown(store / kind)}")
    return (store / kind / names[-1]).resolve()


def shown(path: Path) -> str:
    """Return a path relative to the current folder, if that is shorter."""
    return visible(min(os.path.relpath(path), str(path), key=len))
