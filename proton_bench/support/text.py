r"""Escapes untrusted text: names, paths, variables, errors of other libraries.

It must not move the cursor, start a colour, break a line, reorder other text, or be a command of a
CI runner. GitHub's runner obeys ``::name::`` at the start of a line and ``##[name]`` anywhere in
one. `visible` makes one text safe, `visible_lines` a text of several lines, and `json_text` and
`SafeStream` what goes out as JSON or through a stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import IO, Any

MAX_NAME = 4096

# Control characters, line and paragraph separators, marks that reorder or hide text, surrogates.
_HOSTILE = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
_UNSAFE = re.compile(f"[\x00-\x1f{_HOSTILE}]")
_UNSAFE_IN_LINES = re.compile(f"[\x00-\x09\x0b-\x1f{_HOSTILE}]")
_UNSAFE_IN_JSON = re.compile(f"[{_HOSTILE}]")
_UNSAFE_BESIDE_STYLES = re.compile(f"[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f{_HOSTILE}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MARK = re.compile(r"##(?=\[)")
# Colours are not part of a line's text.
_BLANK = r"(?:\s|\x1b\[[0-9;]*m)*"
_FIRST_WORD = re.compile(rf"^({_BLANK}:)(?=:)", re.MULTILINE)
_UNDECIDED = re.compile(rf"{_BLANK}:?")


def visible(text: str | PurePath, limit: int = MAX_NAME) -> str:
    r"""Return text that is safe to print within a line: ``\n`` and ``\x1b`` instead of the bytes.

    Args:
        text: Any name.
        limit: Most characters to keep; the number of others is appended.
    """
    whole = str(text)
    shown = whole[:limit]
    if not (shown.isascii() and shown.isprintable()):
        shown = _UNSAFE.sub(_escaped, shown)
    if "##[" in shown:
        shown = _MARK.sub(r"##\\", shown)
    return shown if len(whole) <= limit else f"{shown}... ({len(whole) - limit} more characters)"


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ``; did you mean 'counters'?`` for the choice that is most like a word, "" for none.

    Args:
        word: As it was written.
        choices: What would be understood.
    """
    import difflib

    near = difflib.get_close_matches(word[:MAX_NAME], [*choices], n=1, cutoff=0.7)
    return f"; did you mean {visible(near[0])!r}?" if near else ""


def visible_lines(text: str) -> str:
    r"""Return lines that are safe to print: line breaks stay, ``::`` at a start becomes ``:\:``."""
    if _UNSAFE_IN_LINES.search(text):
        text = _UNSAFE_IN_LINES.sub(_escaped, text)
    return _without_commands(text)


def json_text(text: str) -> str:
    """Return equivalent JSON that is safe to print; harmful characters occur only in strings."""
    if _UNSAFE_IN_JSON.search(text):
        text = _UNSAFE_IN_JSON.sub(_json_escaped, text)
    return text.replace("##[", "\\u0023#[")


def encode_document(document: Mapping[str, Any]) -> bytes:
    """Return a document as UTF-8 JSON of one line, safe to print; lone surrogates are escaped."""
    import msgspec  # slow to load

    try:
        content = msgspec.json.encode(document)
    except UnicodeEncodeError:  # names of files that are not UTF-8
        content = msgspec.json.encode(_encodable(document))
    return json_bytes(content) + b"\n"


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(inner) for inner in value]
    return value


def json_bytes(content: bytes) -> bytes:
    """Return the same of encoded JSON, which is mostly safe already."""
    if content.isascii() and b"\x7f" not in content and b"##[" not in content:
        return content
    return json_text(content.decode()).encode()


def bytes_for(stream: IO[str], content: bytes) -> bytes:
    """Return what to write: every byte for a file or pipe, escaped text for a terminal."""
    if not (hasattr(stream, "isatty") and stream.isatty()):
        return content
    return visible_lines(content.decode("utf-8", "backslashreplace")).encode()


class SafeStream:
    """A text stream whose lines cannot control a terminal or a CI runner.

    Only ``write`` differs from the stream; bytes written to its buffer are not checked.

    Args:
        stream: Where the text goes.
        styled: Whether escape sequences pass, for a console that makes them and escapes the text
            itself.
    """

    def __init__(self, stream: IO[str], *, styled: bool = False) -> None:
        self.inner: IO[str] = raw(stream)
        self._styled = styled
        self._line = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, text: str) -> int:
        """Write text; a command in several pieces is escaped too."""
        unsafe = _UNSAFE_BESIDE_STYLES if self._styled else _UNSAFE_IN_LINES
        if unsafe.search(text):
            text = unsafe.sub(_escaped, text)
        before = self._line
        safe = _without_commands(before + text)[len(before) :]
        self.inner.write(safe)
        last = (before + safe).rpartition("\n")[2]
        if _UNDECIDED.fullmatch(last):
            self._line = ":" if last.endswith(":") else ""
        else:
            self._line = "." + last[-2:]
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)


def raw(stream: IO[str]) -> IO[str]:
    """Return the unescaped stream, for intended commands."""
    return stream.inner if isinstance(stream, SafeStream) else stream


def _without_commands(text: str) -> str:
    if "::" in text:
        text = _FIRST_WORD.sub(r"\1\\", text)
    return _MARK.sub(r"##\\", text) if "##[" in text else text


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def _json_escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
