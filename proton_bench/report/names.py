"""Names as they are shown: none can move the cursor, start a colour or break a line."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

__all__ = ["MAX_NAME", "FrameFormat", "format_name", "visible"]

MAX_NAME = 4096

# Control characters, line and paragraph separators, marks that reorder text, surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PYTHON_FRAME = re.compile(r"(?P<file>.*):(?P<line>\d+)@(?P<function>.*)", re.DOTALL)
# What releases of 2024 wrote.
_OLD_PYTHON_FRAME = re.compile(r"(?P<file>.*):(?P<function>[^:@]*)@(?P<line>\d+)", re.DOTALL)


class FrameFormat(StrEnum):
    """How much of a Python frame's name is shown; other names are shown whole."""

    FULL = "full"
    FILE_FUNCTION_LINE = "file_function_line"
    FUNCTION_LINE = "function_line"
    FILE_FUNCTION = "file_function"


def visible(text: str, limit: int = MAX_NAME) -> str:
    r"""Return text that is safe to print on one line: ``\n`` and ``\x1b`` instead of the bytes.

    Args:
        text: Any name.
        limit: Characters to keep; what is left out is counted behind them.
    """
    shown = text[:limit]
    if not shown.isprintable():
        shown = _UNSAFE.sub(_escaped, shown)
    return shown if len(text) <= limit else f"{shown}... ({len(text) - limit} more characters)"


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


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
