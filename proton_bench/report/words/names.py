"""Forms of the names of Python frames."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

__all__ = ["FrameFormat", "format_name"]

_PYTHON_FRAME = re.compile(r"(?P<file>.*):(?P<line>\d+)@(?P<function>.*)", re.DOTALL)
# What releases of 2024 wrote.
_OLD_PYTHON_FRAME = re.compile(r"(?P<file>.*):(?P<function>[^:@]*)@(?P<line>\d+)", re.DOTALL)


class FrameFormat(StrEnum):
    """How much of a Python frame's name is shown; other names are shown in full."""

    FULL = "full"
    FILE_FUNCTION_LINE = "file_function_line"
    FUNCTION_LINE = "function_line"
    FILE_FUNCTION = "file_function"


def format_name(name: str, style: FrameFormat) -> str:
    """Return a frame's name in the wanted form; only ``file:line@function`` has other forms."""
    if style is FrameFormat.FULL or "@" not in name:
        return name
    for pattern, forms in ((_PYTHON_FRAME, _FORMS), (_OLD_PYTHON_FRAME, _OLD_FORMS)):
        match = pattern.fullmatch(name)
        if match is not None:
            file = match["file"].rpartition("/")[2]
            return forms[style](file, match["line"], match["function"])
    return name


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
