"""Tells names apart whose short forms are equal: adds words that differ, and at last a number.

It knows nothing of kernels or frames, so that different names differ whatever made them short.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from proton_bench.support.text import visible

__all__ = ["told_apart"]

# Of longer names only the beginning is compared.
_MAX_CHARACTERS = 4096
_PART = re.compile(r"[A-Za-z0-9.]+")
_WORD = re.compile(r"(?:unsigned |signed )?(?:char|short|int|long)\b|[A-Za-z_~]\w*|\d\w*")
_SCOPE = re.compile(r"(?:[A-Za-z_]\w{0,200}::)+")
# Longer ones are several words.
_LONG_WORD, _MAX_WORD = 24, 40
# Words of one name to compare; of very many equal forms fewer each.
_MAX_WORDS, _MAX_WORDS_OF_ALL = 400, 200_000
# Words that are added to a form at most.
_MAX_ADDED = 4


def told_apart(forms: Mapping[str, str], full: Mapping[str, str]) -> dict[str, str]:
    """Return the forms, each with what differs from names of the same form.

    Args:
        forms: Form of each name.
        full: Longer names where there are some.
    """
    groups: dict[str, list[str]] = {}
    for name, form in forms.items():
        groups.setdefault(form, []).append(name)
    texts: dict[str, str] = {}
    for form, members in groups.items():
        if len(members) == 1:
            texts[members[0]] = form
            continue
        members.sort()
        added = _differences([full.get(name, name) for name in members])
        for name, words in zip(members, added, strict=True):
            texts[name] = f"{form} {{{', '.join(words)}}}" if words else form
    return _numbered(texts)


def _differences(names: Sequence[str]) -> list[list[str]]:
    """Return for each name words that not all have, as few as tell the names apart."""
    most = min(_MAX_WORDS, max(8, _MAX_WORDS_OF_ALL // len(names)))
    found: list[list[str]] = []
    for with_scopes in (False, True):
        found = _telling([_words(name, most, with_scopes=with_scopes) for name in names])
        if len(set(map(tuple, found))) == len(names):
            break
    return found


def _telling(words: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the words of each list at the places, or those not in all lists, that matter."""
    if len({len(each) for each in words}) > 1:
        keys = [_occurrences(each) for each in words]
        common = set(keys[0]).intersection(*keys[1:])
        return [
            list(dict.fromkeys(word for word, n in each if (word, n) not in common))[:_MAX_ADDED]
            for each in keys
        ]
    found: list[list[str]] = [[] for _ in words]
    groups = [0] * len(words)
    count = 1
    for column in zip(*words, strict=True):
        if len(found[0]) == _MAX_ADDED or count == len(words):
            break
        numbers: dict[tuple[int, str], int] = {}
        finer = [
            numbers.setdefault(pair, len(numbers)) for pair in zip(groups, column, strict=True)
        ]
        if len(numbers) > count:
            groups, count = finer, len(numbers)
            for own, word in zip(found, column, strict=True):
                own.append(word)
    return found


def _words(name: str, most: int, *, with_scopes: bool) -> list[str]:
    text = name[: min(_MAX_CHARACTERS, most * 16)]
    if "<" not in text and "(" not in text:
        return [part[:_MAX_WORD] for part in _PART.findall(text)][:most]
    if not with_scopes:
        text = _SCOPE.sub("", text)
    words: list[str] = []
    for word in _WORD.findall(text)[:most]:
        parts = _PART.findall(word) if len(word) > _LONG_WORD else (word,)
        words += (part[:_MAX_WORD] for part in parts)
    return words


def _occurrences(words: Sequence[str]) -> list[tuple[str, int]]:
    seen: Counter[str] = Counter()
    found = []
    for word in words:
        seen[word] += 1
        found.append((word, seen[word]))
    return found


def _numbered(texts: Mapping[str, str]) -> dict[str, str]:
    """Number texts that are still equal as a terminal shows them, in the order of their names."""
    # A name that is shown unchanged is not numbered because of others.
    order = sorted(texts, key=lambda name: (texts[name] != name, name))
    taken: set[str] = set()
    last: dict[str, int] = {}
    found = {}
    for name in order:
        text = texts[name]
        shown = visible(text)
        while shown in taken:
            last[text] = last.get(text, 1) + 1
            shown = visible(f"{text} #{last[text]}")
        taken.add(shown)
        found[name] = f"{text} #{last[text]}" if text in last and shown != visible(text) else text
    return found
