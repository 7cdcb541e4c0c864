"""Tells names apart whose short forms are equal: adds words that differ, and at last a number.

It knows nothing of kernels or frames, so that different names differ whatever made them short.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from proton_bench.support.text import visible

__all__ = ["told_apart"]

# Of longer names only the beginning is compared.
_MAX_CHARACTERS = 4096
_WORD = re.compile(r"[\w.~]+:*")
_SCOPE = ":"
_PART = re.compile(r"[A-Za-z0-9.]+")
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
            is_bare = name == form or not words
            texts[name] = form if is_bare else f"{form} {{{', '.join(words)}}}"
    return _numbered(texts)


def _differences(names: Sequence[str]) -> list[list[str]]:
    """Return for each name words that not all have, as few as tell the names apart."""
    most = min(_MAX_WORDS, max(8, _MAX_WORDS_OF_ALL // len(names)))
    length = min(_MAX_CHARACTERS, most * 16)
    # Parameters repeat the template arguments.
    cut = [name[:length].partition(">(")[0] for name in names]
    if len(set(cut)) < len(names):
        cut = [name[:length] for name in names]
    words = [_words(text, most) for text in cut]
    if len(set(map(tuple, words))) < len(names):
        words = [_words(text, most, with_scopes=True) for text in cut]
    has_one_length = len(set(map(len, words))) == 1
    return _differing_places(words) if has_one_length else _differing_words(words)


def _differing_places(words: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the words at places that tell lists of one length apart."""
    found: list[list[str]] = [[] for _ in words]
    groups, count = [0] * len(words), 1
    for column in zip(*words, strict=True):
        if len(found[0]) == _MAX_ADDED or count == len(words):
            break
        if len(set(column)) == 1:
            continue
        numbers: dict[tuple[int, str], int] = {}
        pairs = zip(groups, column, strict=True)
        finer = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
        if len(numbers) > count:
            groups, count = finer, len(numbers)
            short = _without_common_parts(set(column))
            for own, word in zip(found, column, strict=True):
                own.append(short[word])
    return found


def _without_common_parts(words: Iterable[str]) -> dict[str, str]:
    """Return words, long ones without the parts at both ends that all have."""
    parts = {word: word.split("_") for word in words}
    if max(map(len, parts)) <= _LONG_WORD:
        return {word: word for word in parts}
    start = _equal(parts.values())
    end = _equal([each[start:][::-1] for each in parts.values()])
    return {
        word: ("_".join(each[start : len(each) - end]) or word)[:_MAX_WORD]
        for word, each in parts.items()
    }


def _equal(lists: Iterable[Sequence[str]]) -> int:
    """Return how many items at the beginning of all lists are equal."""
    columns = zip(*lists, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))


def _differing_words(words: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the words that a list has more often than all lists have them, rare ones first."""
    counts = [Counter(_parts(each)) for each in words]
    common = dict(counts[0])
    for each in counts[1:]:
        common = {word: min(n, each[word]) for word, n in common.items() if word in each}
    own = [[word for word, n in each.items() if n > common.get(word, 0)] for each in counts]
    lists = Counter(itertools.chain.from_iterable(own))
    for mine in own:
        mine.sort(key=lists.__getitem__)
    return [[word[:_MAX_WORD] for word in mine[:_MAX_ADDED]] for mine in own]


def _words(text: str, most: int, *, with_scopes: bool = False) -> list[str]:
    if "<" not in text and "(" not in text:
        return _PART.findall(text)[:most]
    words = _WORD.findall(text)[:most]
    if with_scopes:
        return [word.rstrip(_SCOPE) for word in words]
    return [word for word in words if word[-1] != _SCOPE]


def _parts(words: Sequence[str]) -> list[str]:
    found: list[str] = []
    for word in words:
        if len(word) > _LONG_WORD:
            found += _PART.findall(word)
        else:
            found.append(word)
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
