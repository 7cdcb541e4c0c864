"""Text that stays text in GitHub's Markdown."""

from __future__ import annotations

import re

from proton_bench.support.text import visible

__all__ = ["escaped"]

# What could become markup, a cell's end, a link or a mention.
_MARKUP = re.compile(r"([\\`*_{}\[\]#|~$]|:(?=//))")
# What GitHub links by itself: mentions, though not behind a letter, where @ would be part of a word
# such as file:line@function, and addresses without a scheme. &NoBreak; is a word joiner, which no
# door for text takes for one that hides something.
_LINKED = re.compile(r"(?<!\w)@|\bwww(?=\.)", re.IGNORECASE)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escaped(text: str) -> str:
    """Return text of one line that is shown as it is: no markup, link or mention in it."""
    text = visible(text, len(text)).translate(_ENTITIES)
    text = _LINKED.sub("\\g<0>&NoBreak;", text)
    return _MARKUP.sub(r"\\\1", text)
