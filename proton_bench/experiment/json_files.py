"""Small JSON files that are there whole or not at all, whatever ends the process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from proton_bench.baseline.durable import replace
from proton_bench.errors import OutputError, ProfileFormatError, UsageError

__all__ = ["make_folder", "read_json", "write_json"]


def write_json(path: Path, document: Any) -> None:
    """Replace a file.

    Raises:
        OutputError: It cannot be written; the old content is still there.
    """
    content = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
    try:
        replace(path, content, path.with_name(f".{path.name}.{os.getpid()}"))
    except OSError as error:
        raise OutputError(f"cannot write {str(path)!a}: {error.strerror}") from error


def read_json(path: Path) -> Any:
    """Return the content of a file.

    Raises:
        UsageError: There is none, or it cannot be read.
        ProfileFormatError: It is no JSON.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!a}: {error.strerror}") from error
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise ProfileFormatError(f"{str(path)!a} is no JSON: {error}") from error


def make_folder(path: Path) -> Path:
    """Make a folder and those above it.

    Raises:
        OutputError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {str(path)!a}: {error.strerror}") from error
    return path
