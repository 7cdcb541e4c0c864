"""Small JSON files that are complete or missing, whatever ends the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from proton_bench.errors import OutputError, ProfileFormatError
from proton_bench.support.files import write_file
from proton_bench.support.inputs import read_file, unreadable

__all__ = ["make_folder", "read_json", "write_json"]


def write_json(path: Path, document: Any) -> None:
    """Replace a file.

    Raises:
        OutputError: It cannot be written; the old content remains.
    """
    write_file(path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")


def read_json(path: Path) -> Any:
    """Return the content of a file.

    Raises:
        UsageError: It is missing, or it cannot be read.
        ProfileFormatError: It is not JSON.
    """
    try:
        content = read_file(path)
    except OSError as error:
        raise unreadable(path, error) from None
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
