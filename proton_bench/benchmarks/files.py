"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from proton_bench.errors import OutputError

__all__ = ["write_file"]


def write_file(path: Path, text: str) -> None:
    """Replace a file; what UTF-8 cannot hold is escaped.

    Raises:
        OutputError: It cannot be written; the old content is still there.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            partial.write_text(text, encoding="utf-8", errors="backslashreplace")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot write {str(path)!a}: {error.strerror}; choose another place"
        ) from error
