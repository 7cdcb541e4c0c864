"""Writes what ``--json FILE`` asks for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proton_bench.baseline.durable import replace
from proton_bench.errors import OutputError
from proton_bench.formats.base import display_name
from proton_bench.report.document import encode_document

__all__ = ["STDOUT", "write_document"]

STDOUT = Path("-")


def write_document(document: Mapping[str, Any], file: Path) -> None:
    """Write one JSON document to a file, whole or not at all; `STDOUT` prints it.

    Raises:
        OutputError: It cannot be written.
    """
    content = encode_document(document)
    if file == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(content)  # a device or pipe
        else:
            replace(file, content, file.with_name(f".{file.name}.{os.getpid()}"))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(f"cannot write {display_name(file)}: {reason}") from None
