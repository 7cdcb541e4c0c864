"""Escapes text for GitHub's Markdown."""

from __future__ import annotations

import re

from proton_bench.support.text import visible

__all__ = ["escaped"]

# Characters that could become markup, a cell's end, a link or a mention.
_MARKUP = re.compile(r"([\\`*_{}\[\]#|~$]|:(?=//))")
# GitHub links these by itself: mentions, except after a letter, where @ is part of a word such as
# file:line@function, and addresses without a scheme. &NoBreak; is a word joiner that our escaping
# does not treat as a hiding character.
_LINKED = re.compile(r"(?<!\w)@|\bwww(?=\.)", re.IGNORECASE)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escaped(text: str) -> str:
    """Return one line of text without markup, links or mentions."""
    text = visible(text, len(text)).translate(_ENTITIES)
    text = _LINKED.sub("\\g<0>&NoBreak;", text)
    return _MARKUP.sub(r"\\\1", text)
