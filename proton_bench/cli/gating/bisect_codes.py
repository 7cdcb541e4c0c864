"""Exit codes of the gate as `git bisect run` understands them.

git takes 1 to 127 as bad, except 125, which skips the revision, and from 128 on it stops. So an
error must not end with its usual code.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["SKIP", "asks_for_bisect", "bisect_code"]

SKIP = 125
_STOP = 128
_OPTION = "--bisect"
_COMMANDS = ("gate", "ab")
_CODES = {0: 0, 1: 1, 3: SKIP, 4: SKIP, 5: SKIP, SKIP: SKIP}


def asks_for_bisect(arguments: Sequence[str]) -> bool:
    """Return whether a command line has the option, also where it cannot be read otherwise."""
    words = list(arguments)
    own = words[: words.index("--")] if "--" in words else words
    return bool(own) and own[0] in _COMMANDS and _OPTION in own


def bisect_code(code: int) -> int:
    """Return the code for git: 0 good, 1 bad, 125 undecided, from 128 on an error."""
    return _CODES.get(code, max(code, _STOP))
