"""Records from which files a process loaded its modules, for comparisons of versions."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from proton_bench.support.files import write_file

# Below these a path is enough, because they are not edited during a comparison.
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def write_loaded_modules(path: str) -> None:
    """Write name, file and SHA-256 of every module outside the standard library as JSON.

    Modules of installed packages and unreadable ones have no hash.

    Args:
        path: File to write; it is complete or missing.

    Raises:
        OutputError: It cannot be written.
    """
    standard = tuple(
        os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")
    )
    found: list[dict[str, Any]] = []
    for name, module in sorted(sys.modules.items()):
        file = _file_of(module)
        installed = any(part in file for part in _INSTALLED)
        if file and (installed or not file.startswith(standard)):
            sha256 = "" if installed else _hash(file)
            found.append({"name": _text(name), "file": _text(file), "sha256": sha256})
    write_file(Path(path), json.dumps(found))


def _file_of(module: ModuleType | None) -> str:
    """Return the source file of a module, "" if there is none on disk."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file:
        return ""
    real = os.path.realpath(file)
    return real if os.path.isfile(real) else ""


def _text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _hash(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""
