"""``proton view --watch``: the tree of a program that is still recorded, again and again."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

from proton_bench.cli.show import ViewRequest, show
from proton_bench.errors import UsageError
from proton_bench.recording.stderr import say
from proton_bench.support.console import open_console

__all__ = ["followed_files", "show_while_recorded"]

_LOOK_S = 0.5
_PARTIAL = ".partial"
_SUFFIX = ".proton"


def followed_files(file: Path) -> tuple[Path, Path]:
    """Return where a recording is written meanwhile, and its file at the end.

    Args:
        file: Either of them, also without ``.proton``.
    """
    stem = file.name.removesuffix(_SUFFIX).removesuffix(_PARTIAL)
    return file.with_name(f"{stem}{_PARTIAL}{_SUFFIX}"), file.with_name(f"{stem}{_SUFFIX}")


def show_while_recorded(request: ViewRequest) -> None:
    """Show a recording whenever its file was replaced, until the program has ended.

    A recording that has not begun yet is waited for.

    Raises:
        UsageError: The output is not a terminal.
    """
    console = open_console()
    if not console.file.isatty():
        raise UsageError("--watch needs a terminal: leave it out to show the file once")
    partial, final = followed_files(request.file)
    shown: object = None
    is_waiting = False
    pause = threading.Event()
    while True:
        meanwhile, ended = _version(partial), _version(final)
        # A file of an earlier run is older than what this one wrote meanwhile.
        is_over = ended is not None and meanwhile is None
        version = ended if is_over else meanwhile
        if version not in (None, shown):
            console.clear()
            shown = version if _is_shown(request, final if is_over else partial) else shown
        if is_over and shown == version:
            return
        if version is None and not is_waiting:
            is_waiting = True
            say(f"waiting for {partial.name}: it is first written some seconds after the start")
        pause.wait(_LOOK_S)


def _is_shown(request: ViewRequest, file: Path) -> bool:
    """Show a file; false if the last write took its place in between."""
    try:
        show(replace(request, file=file))
    except UsageError:
        if file.exists():
            raise
        return False
    return True


def _version(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is replaced, None if there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
