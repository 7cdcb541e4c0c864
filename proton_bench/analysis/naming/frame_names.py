"""Texts for Python frames: a short path, the line and the function.

Files of libraries are named from their package on, own files from the folder of the run on, and
others by as much of the end of their path as tells them apart.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from proton_bench.model.provenance import Provenance
from proton_bench.support.text import visible

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


FRAME = re.compile(r"(?P<file>.*):(?P<line>\d+)@(?P<function>.*)", re.DOTALL)
# What releases of 2024 wrote.
OLD_FRAME = re.compile(r"(?P<file>.*):(?P<function>[^:@]*)@(?P<line>\d+)", re.DOTALL)
_PACKAGES = ("/site-packages/", "/dist-packages/")
_STANDARD = re.compile(r"/lib(?:32|64)?/(?:python|pypy)3\.\d{1,3}t?/")
_FROZEN = "<frozen "
_PYTHON = "python"
_SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class PythonFrame:
    """The parts of a frame's name."""

    file: str
    line: str
    function: str

    @property
    def text(self) -> str:
        """``file:line function``."""
        return f"{self.file}:{self.line} {self.function}"


def parse_frame(name: str) -> PythonFrame | None:
    """Return the parts of ``file:line@function``, None for other names."""
    if "@" not in name:
        return None
    match = FRAME.fullmatch(name) or OLD_FRAME.fullmatch(name)
    return None if match is None else PythonFrame(match["file"], match["line"], match["function"])


@dataclass(frozen=True, slots=True)
class Places:
    """Where the files of a run are.

    Attributes:
        folders: The folders of the run's own files, absolute, the first one preferred.
    """

    folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, provenance: Provenance) -> Places:
        """Return the working directory of a run and the folder of its script."""
        directory = provenance.get("directory")
        found = [directory] if isinstance(directory, str) and directory.startswith("/") else []
        command = provenance.get("command")
        for word in command if isinstance(command, tuple) else ():
            if isinstance(word, str) and word.endswith(".py"):
                script = PurePosixPath(*found, word)
                if script.is_absolute() and ".." not in script.parts:
                    found.append(str(script.parent))
                break
        return cls(tuple(f"{folder.rstrip(_SEPARATOR)}/" for folder in found))

    def library(self, file: str) -> str:
        """Return the library that a file belongs to, such as ``torch``; "" for own files.

        Own are all files outside of ``site-packages`` and the standard library: scripts anywhere,
        and packages installed editable.
        """
        if file.startswith(_FROZEN):
            return _PYTHON
        inside = _inside_packages(file)
        if inside:
            # A run whose folder is inside an installed package owns that package.
            is_own = any(
                file.startswith(folder) and _inside_packages(folder) for folder in self.folders
            )
            return "" if is_own else inside.partition(_SEPARATOR)[0].removesuffix(".py")
        return _PYTHON if _STANDARD.search(file) else ""

    def library_of(self, name: str) -> str:
        """Return the library of a frame by its recorded name; "" for own frames and other names."""
        frame = parse_frame(name)
        return "" if frame is None else self.library(frame.file)

    def short(self, file: str) -> str:
        """Return a path that begins at a package or a folder of the run; "" if none does."""
        if self.library(file):
            return _inside_packages(file) or _after_standard(file) or file
        for folder in self.folders:
            if file.startswith(folder) and len(file) > len(folder):
                return file[len(folder) :]
        return ""


def frame_texts(names: Iterable[str], places: Places) -> dict[str, str]:
    """Return a text for each name of a frame; different names get different texts.

    Other names than those of frames are left out.
    """
    frames = {name: frame for name in set(names) if (frame := parse_frame(name)) is not None}
    files = _short_files({frame.file for frame in frames.values()}, places)
    forms = {
        name: PythonFrame(files[frame.file], frame.line, frame.function).text
        for name, frame in frames.items()
    }
    return told_apart(forms, {})


def _short_files(files: Iterable[str], places: Places) -> dict[str, str]:
    """Return a path for each file, all different: from its package or folder on, else its end."""
    found: dict[str, str] = {}
    lost: list[str] = []
    taken: dict[str, str] = {}
    for file in sorted(files):
        short = places.short(file)
        if short and short not in taken:
            found[file] = taken[short] = short
        else:
            lost.append(file)
    found.update(_tails(lost, found))
    return found


def _tails(files: list[str], others: Mapping[str, str]) -> dict[str, str]:
    """Return the shortest end of each path that no other file has."""
    taken = set(others.values())
    found: dict[str, str] = {}
    waiting, parts = files, 1
    while waiting:
        tails: dict[str, list[str]] = {}
        for file in waiting:
            tails.setdefault(_tail(file, parts), []).append(file)
        waiting = []
        for tail, members in tails.items():
            if len(members) == 1 and (tail not in taken or tail == members[0]):
                found[members[0]] = tail
            else:
                waiting += members
        taken.update(found.values())
        parts += max(1, parts // 2)
    return found


def _tail(file: str, parts: int) -> str:
    place = len(file)
    for _ in range(parts):
        place = file.rfind(_SEPARATOR, 0, place)
        if place < 0:
            return file
    return file[place + 1 :]


def _inside_packages(file: str) -> str:
    for mark in _PACKAGES:
        place = file.rfind(mark)
        if place >= 0:
            return file[place + len(mark) :]
    return ""


def _after_standard(file: str) -> str:
    last = None
    for match in _STANDARD.finditer(file):
        last = match
    return "" if last is None else file[last.end() :]
