"""Texts for Python frames: a short path, the line and the function.

Files of libraries are named from their package on, own files from the folder of the run on, and
others by as much of the end of their path as tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from proton_bench.analysis.naming.apart import told_apart
from proton_bench.model.provenance import Provenance

__all__ = ["FRAME", "OLD_FRAME", "Places", "PythonFrame", "frame_texts", "parse_frame"]

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
