"""Timelines of profilers that do not escape quotes in names, or leave a comma at the end.

What comes behind a quote says if a text ends there; other quotes in it are escaped.
"""

from __future__ import annotations

import re

from proton_bench.formats.chrome.split import MAX_PIECE, Readable

__all__ = ["Repaired"]

_AHEAD = 1 << 16  # so much of a text and of what comes behind it is looked at, if there is more
# What lies between texts, without a comma before a closing bracket.
_BETWEEN = rb'[^",]*+(?:,(?!\s*[}\]])[^",]*+)*+'
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_VALUE = rb"(?:(?<=:)|(?<=: ))" + _TEXT + rb'(?=\s*(?:}\s*(?:[,}\]{[]|\Z)|,\s*(?:"[^"\\]*"\s*:|})))'
_OTHER = rb"(?<!:)(?<!: )" + _TEXT + rb'(?=\s*(?:[:}\]]|,\s*["{\[\d\-tfn}\]]))'
_SOUND = re.compile(rb"(?:" + _BETWEEN + rb"(?:" + _VALUE + rb"|" + _OTHER + rb"))*+", re.DOTALL)
_GAP = re.compile(_BETWEEN)
# A name ends before the next key of an event, another value of a map before any key, and both
# before closing brackets. All else ends before any mark.
_CLOSED = rb'(?<!\\)"(?=\s*,?\s*}\s*(?:[,}\]]|\Z))'
_ENDS_NAME = re.compile(rb'"(?=\s*,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|bp|s)"\s*:)|' + _CLOSED)
_ENDS_VALUE = re.compile(rb'"(?=\s*,\s*"[^"\\]*"\s*:)|' + _CLOSED)
_ENDS_OTHER = re.compile(rb'(?<!\\)"(?=\s*[:,\]}])')
_OF_NAME = re.compile(rb'"name"\s*:\s*\Z')
_OF_VALUE = re.compile(rb":\s*\Z")
_KEY_BYTES = 64
# All but a quote and a backslash at the end are left to `event.read_trace`.
_UNESCAPED = re.compile(rb'(\\.)|"|\\\Z', re.DOTALL)


class Repaired:
    """A stream whose texts are escaped, without commas before closing brackets.

    Attributes:
        repairs: How many texts and commas were changed so far.
    """

    def __init__(self, stream: Readable) -> None:
        self.repairs = 0
        self._stream = stream
        self._rest = b""
        self._before = b""  # what comes before the rest, as far as that matters
        self._has_ended = False

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, about as many as asked for, none at the end."""
        while not self._has_ended:
            block = self._stream.read(max(size, len(self._rest)))
            self._has_ended = not block
            self._rest += block
            found = self._repaired()
            if found:
                return found
        return b""

    def _repaired(self) -> bytes:
        """Return what of the rest is complete, and keep the remainder."""
        content, place = self._rest, 0
        pieces: list[bytes] = []

        def give(stop: int, piece: bytes) -> None:
            nonlocal place
            pieces.append(piece)
            place = stop
            self._before = (self._before + piece[-_KEY_BYTES:])[-_KEY_BYTES:]

        while True:
            stop = _end(_SOUND, content, place)
            give(stop, content[place:stop])
            stop = _end(_GAP, content, place)
            if not self._has_ended and len(content) - place < _AHEAD:
                break
            give(stop, content[place:stop])
            if stop == len(content):
                break
            if content[stop : stop + 1] == b",":
                self.repairs += 1
                place += 1
                continue
            end = self._end_of_text(content, stop)
            if end < 0:
                if not self._has_ended and len(content) - stop < MAX_PIECE:
                    break
                give(len(content), content[stop:])
                break
            give(end, self._escaped(content[stop + 1 : end - 1]))
        self._rest = content[place:]
        return b"".join(pieces)

    def _end_of_text(self, content: bytes, start: int) -> int:
        """Return where the text that begins at a quote ends, -1 if it is not there."""
        ends = _ENDS_VALUE if _OF_VALUE.search(self._before) else _ENDS_OTHER
        if _OF_NAME.search(self._before):
            ends = _ENDS_NAME
        found = ends.search(content, start + 1)
        return found.end() if found else -1

    def _escaped(self, text: bytes) -> bytes:
        escaped = _UNESCAPED.sub(lambda match: match[1] or b"\\" + match[0], text)
        self.repairs += escaped != text
        return b'"' + escaped + b'"'


def _end(pattern: re.Pattern[bytes], content: bytes, place: int) -> int:
    found = pattern.match(content, place)
    return found.end() if found else place
