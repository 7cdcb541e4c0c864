"""How the command line and the pytest plugin read an output name: a path and the formats."""

from __future__ import annotations

import os
from dataclasses import dataclass

from proton_bench.capture.template import expand_name
from proton_bench.errors import UsageError

__all__ = ["OUTPUT_SUFFIXES", "OutputName", "read_name", "split_suffix"]

OUTPUT_SUFFIXES = (".proton", ".hatchet", ".hatchet_msgpack", ".chrome_trace")
_OF_DATA = {"tree": "hatchet", "trace": "chrome_trace"}  # what upstream writes


@dataclass(frozen=True, slots=True)
class OutputName:
    """Where a profile goes.

    Attributes:
        name: Path without a suffix, absolute; "" and "-" mean stdout.
        formats: Suffixes to write, without the dot.
        template: The name as it was written, without a suffix.
    """

    name: str
    formats: tuple[str, ...]
    template: str = ""


def read_name(
    text: str, *, tag: str = "", folder: str | None = None, data: str = "tree"
) -> OutputName:
    """Turn an output name into a path and formats; a known suffix asks for just that format.

    Args:
        text: Name as the user wrote it, with ``{rank}``-like fields; "" and "-" mean stdout.
        tag: Added to the end of the name, e.g. ``.gw0`` of a test worker.
        folder: Where relative names start; the current folder by default.
        data: Kind of data that is recorded.

    Raises:
        UsageError: The name is a folder or has an unknown field.
    """
    default = _OF_DATA.get(data, "hatchet")
    if text in ("", "-"):
        return OutputName(text, (default,))
    stem, suffix = split_suffix(text)
    if os.path.basename(stem) in ("", ".", ".."):
        raise UsageError(f"output {text!r} is a folder: add a file name")
    # Made absolute now, because the target may change the current folder.
    name = os.path.abspath(os.path.join(folder or os.curdir, expand_name(stem) + tag))
    return OutputName(name, (suffix[1:],) if suffix else ("proton", default), stem)


def split_suffix(text: str) -> tuple[str, str]:
    """Split a name into its stem and its known suffix, "" where it has none."""
    for suffix in OUTPUT_SUFFIXES:
        if text.endswith(suffix) and os.path.basename(text) != suffix:
            return text.removesuffix(suffix), suffix
    return text, ""
