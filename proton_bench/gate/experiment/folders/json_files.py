"""Small JSON files that are complete or missing, whatever ends the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.support.files import Folder, unwritable

__all__ = ["make_folder", "read_json", "write_json"]

_MOST_BYTES = 256 << 20


def write_json(path: Path, document: Any) -> None:
    """Replace a file; a link itself is replaced.

    Raises:
        OutputError: It cannot be written; the old content remains, unless the error says so.
    """
    content = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
    try:
        with Folder.of_user(path.parent) as folder:
            folder.write(path.name, content)
    except OutputError:
        raise
    except OSError as error:
        raise unwritable(path, error) from error


def read_json(path: Path) -> Any:
    """Return the content of a file.

    Raises:
        UsageError: It is missing, a link or a pipe, or it cannot be read.
        ProfileFormatError: It is not JSON.
    """
    try:
        with Folder.of_user(path.parent) as folder:
            content = folder.read(path.name, _MOST_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!a}: {error.strerror}") from error
    except ProfileFormatError as error:
        raise UsageError(f"cannot read {str(path)!a}: {error}") from error
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProfileFormatError(f"{str(path)!a} is not JSON: {error}") from error


def make_folder(path: Path) -> Path:
    """Create a folder and its parents.

    Raises:
        OutputError: It cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {str(path)!a}: {error.strerror}") from error
    return path
