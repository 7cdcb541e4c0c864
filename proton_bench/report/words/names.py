"""Forms of the names of Python frames, and of runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import StrEnum

from proton_bench.analysis.naming.frame_names import FRAME, OLD_FRAME
from proton_bench.support.text import visible

__all__ = ["UPSTREAM_FORMS", "FrameFormat", "format_name", "sources_text"]

_MAX_SOURCES = 3
_MAX_SOURCE = 200


class FrameFormat(StrEnum):
    """How much of a Python frame's name is shown; other names are shown in full.

    Which path is short depends on the run, so a tree with short names already has them.
    """

    SHORT = "short"
    FULL = "full"
    FILE_FUNCTION_LINE = "file_function_line"
    FUNCTION_LINE = "function_line"
    FILE_FUNCTION = "file_function"


UPSTREAM_FORMS = tuple(form for form in FrameFormat if form is not FrameFormat.SHORT)


def format_name(name: str, style: FrameFormat) -> str:
    """Return a frame's name in the wanted form; only ``file:line@function`` has other forms."""
    if style in (FrameFormat.SHORT, FrameFormat.FULL) or "@" not in name:
        return name
    for pattern, forms in ((FRAME, _FORMS), (OLD_FRAME, _OLD_FORMS)):
        match = pattern.fullmatch(name)
        if match is not None:
            file = match["file"].rpartition("/")[2]
            return forms[style](file, match["line"], match["function"])
    return name


def sources_text(sources: Sequence[str]) -> str:
    """Return the names of the runs of a side, of many the first; a common folder comes once.

    For instance ``pair-001-base.proton, pair-002-base.proton in .proton/ab/20261127-101500``.
    """
    folders = {os.path.dirname(each) for each in sources}
    folder = folders.pop() if len(sources) > 1 and len(folders) == 1 else ""
    names = [os.path.basename(each) if folder else each for each in sources]
    parts = [visible(each, _MAX_SOURCE) for each in names[:_MAX_SOURCES]]
    text = ", ".join(parts)
    text += f" and {len(names) - len(parts)} more" if len(names) > len(parts) else ""
    return f"{text} in {visible(folder, _MAX_SOURCE)}" if folder else text


_Form = Callable[[str, str, str], str]
_FORMS: dict[FrameFormat, _Form] = {
    FrameFormat.FILE_FUNCTION_LINE: lambda file, line, function: f"{file}:{line}@{function}",
    FrameFormat.FUNCTION_LINE: lambda _, line, function: f"{line}@{function}",
    FrameFormat.FILE_FUNCTION: lambda file, _, function: f"{file}@{function}",
}
_OLD_FORMS: dict[FrameFormat, _Form] = {
    FrameFormat.FILE_FUNCTION_LINE: lambda file, line, function: f"{file}:{function}@{line}",
    FrameFormat.FUNCTION_LINE: lambda _, line, function: f"{function}@{line}",
    FrameFormat.FILE_FUNCTION: lambda file, _, function: f"{file}:{function}",
}
