"""Stored runs to compare with, and the words of a command line that name runs.

::

    .proton/baselines/<name>/<id>/000.proton, ...   runs that were saved together
    .proton/baselines/<name>/promoted               the id of those that the name means

One rename puts saved runs in place, and one replaces what a name means. Saving adds a candidate
and promotes nothing, so a slow run does not become the next base by itself.
"""

from __future__ import annotations

import calendar
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proton_bench.analysis.run import Run, files_of, read_runs
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.gate.machine import facts_of
from proton_bench.model.profile import Profile
from proton_bench.store.selection import Selection
from proton_bench.support.files import refused, write_file
from proton_bench.support.inputs import read_file
from proton_bench.support.text import visible

_PROMOTED = "promoted"
_ID_TIME = "%Y%m%dT%H%M%S"
_MARK = "baseline:"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Entry:
    """Runs that were saved together.

    Attributes:
        name: Their baseline.
        id: Their id, from the time they were saved.
        folder: Their folder.
    """

    name: str
    id: str
    folder: Path

    @property
    def reference(self) -> str:
        """Its name on a command line."""
        return f"{self.name}@{self.id}"

    @property
    def created_ns(self) -> int:
        """When it was saved, in ns since 1970; of a folder that a user made, its last change."""
        try:
            seconds = calendar.timegm(time.strptime(self.id[:15], _ID_TIME))
            return seconds * 1_000_000_000 + int(self.id[16:]) * 10
        except ValueError:
            return self.folder.stat().st_mtime_ns

    def files(self) -> list[Path]:
        """Return the files of the runs.

        Raises:
            ProfileFormatError: There are none, or the folder cannot be read.
        """
        try:
            found = files_of(self.folder)
        except OSError as error:
            raise self._damaged(error.strerror or str(error)) from None
        if not found:
            raise self._damaged("it has no run")
        return found

    def first_profile(self) -> Profile:
        """Return the profile of the first run, which says what all of them were recorded on.

        Raises:
            ProfileFormatError: It is damaged.
        """
        file = self.files()[0]
        try:
            return read_profile(file)
        except UsageError as error:
            raise self._damaged(str(error)) from None

    def load(self) -> list[Run]:
        """Return the runs.

        Raises:
            ProfileFormatError: A file is damaged.
        """
        try:
            runs = read_runs(self.files())
        except UsageError as error:
            raise self._damaged(str(error)) from None
        return [Run(run.profile, f"{self.reference}/{Path(run.source).name}") for run in runs]

    def _damaged(self, why: str) -> ProfileFormatError:
        return ProfileFormatError(
            f"{visible(self.folder)}: the saved runs are damaged ({why}); remove "
            f"{self.reference} and save them again"
        )


class BaselineStore:
    """The baselines in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """Return the names of all baselines, promoted or not."""
        folder = self.folder / "baselines"
        check_plain(self.folder, folder)
        return [name for name in _listed(folder) if self.entries(name)]

    def entries(self, name: str) -> list[Entry]:
        """Return what was saved for a name, oldest first."""
        folder = self._folder(name)
        return [Entry(name, id, folder / id) for id in _listed(folder) if (folder / id).is_dir()]

    def entry(self, name: str, id: str | None = None) -> Entry:
        """Return an entry of a name; without an id the newest one.

        Raises:
            UsageError: There is none.
        """
        entries = self.entries(name)
        chosen = [entry for entry in entries if id is None or entry.id == id]
        if chosen:
            return chosen[-1]
        if not entries:
            raise UsageError(self.unknown(name))
        raise UsageError(
            f"baseline {name} has no entry {id!a}; `proton baseline show {name}` lists its entries"
        )

    def unknown(self, name: str) -> str:
        """Return a sentence about a name without entries."""
        known = ", ".join(self.names()) or "none"
        return (
            f"{visible(self.folder)} has no baseline {name!a}; there are: {known}. "
            f"`proton baseline save {name} RUN...` adds one"
        )

    def promoted(self, name: str) -> Entry | None:
        """Return what a name means, None if nothing was promoted.

        Raises:
            ProfileFormatError: The entry is missing, or its id cannot be read.
        """
        file = self._folder(name) / _PROMOTED
        try:
            id = read_file(file).decode("ascii", "replace").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ProfileFormatError(
                f"{visible(file)} cannot be read: {error.strerror}; remove it and promote again"
            ) from None
        for entry in self.entries(name):
            if entry.id == id:
                return entry
        raise ProfileFormatError(
            f"{visible(file)}: entry {id[:100]!a} of baseline {name} is missing; promote another"
        )

    def save(self, name: str, runs: Sequence[Run]) -> Entry:
        """Save runs as a candidate of a baseline; the name means what it meant before.

        Raises:
            UsageError: The name is invalid, there are no runs, or runs are unfinished or of
                several machines.
            OutputError: The store cannot be written.
        """
        check_name(name)
        _check_runs(name, runs)
        now_ns = time.time_ns()
        seconds, rest = divmod(now_ns, 1_000_000_000)
        id = f"{time.strftime(_ID_TIME, time.gmtime(seconds))}-{rest // 10:08d}"
        entry = Entry(name, id, self._folder(name) / id)
        with refused(f"save {entry.reference}"):
            unfinished = _beside(entry.folder)
            unfinished.mkdir(parents=True)
            try:
                for number, run in enumerate(runs):
                    write_profile(run.profile, unfinished / f"{number:03d}.proton")
                unfinished.rename(entry.folder)
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
        return entry

    def promote(self, name: str, id: str | None = None) -> tuple[Entry, Entry | None]:
        """Make a name mean an entry, by default its newest.

        Returns:
            The entry, and what the name meant before.

        Raises:
            UsageError: The entry does not exist.
            OutputError: The store cannot be written.
        """
        entry, before = self.entry(name, id), self._promoted_or_none(name)
        write_file(self._folder(name) / _PROMOTED, f"{entry.id}\n")
        return entry, before

    def remove(self, name: str, id: str | None = None) -> list[Entry]:
        """Remove one entry, or a baseline with everything that was saved for it.

        Raises:
            UsageError: The entry does not exist, or the name means it.
            OutputError: The store cannot be written.
        """
        if id is None:
            gone = self.entries(name) or [self.entry(name)]
            with refused(f"remove {name}"):
                shutil.rmtree(self._folder(name))
            return gone
        entry = self.entry(name, id)
        if entry == self._promoted_or_none(name):
            raise UsageError(
                f"{entry.reference} is what {name} means; promote another entry first, or "
                f"remove {name} as a whole"
            )
        return self._discard([entry])

    def remove_candidates(self, name: str) -> list[Entry]:
        """Remove every entry of a name except what it means.

        Raises:
            UsageError: The baseline does not exist.
            ProfileFormatError: What it means is unknown.
            OutputError: The store cannot be written.
        """
        self.entry(name)
        kept = self.promoted(name)
        return self._discard([entry for entry in self.entries(name) if entry != kept])

    def _promoted_or_none(self, name: str) -> Entry | None:
        try:
            return self.promoted(name)
        except ProfileFormatError:
            return None

    def _discard(self, entries: Sequence[Entry]) -> list[Entry]:
        for entry in entries:
            with refused(f"remove {entry.reference}"):
                # No reader meets a half of it.
                shutil.rmtree(entry.folder.rename(_beside(entry.folder)))
        return list(entries)

    def _folder(self, name: str) -> Path:
        """Return the folder of a baseline.

        Raises:
            UsageError: See `check_plain`.
        """
        folder = self.folder / "baselines" / name
        check_plain(self.folder, folder.parent, folder, folder / _PROMOTED)
        return folder


def check_name(text: str) -> None:
    """Check that a text can be the name of a baseline.

    Raises:
        UsageError: It cannot.
    """
    if not _NAME.fullmatch(text):
        raise UsageError(
            f"{text!a} cannot be the name of a baseline: use letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )


def check_plain(*parts: Path) -> None:
    """Check that no part of a store is a link, which a repository may have put there, or a pipe.

    Raises:
        UsageError: One is.
    """
    for part in parts:
        if part.is_symlink() or part.is_fifo():
            raise UsageError(f"{visible(part)} is a symbolic link or a pipe; remove it")


def revision_of(profile: Profile) -> str:
    """Return the git revision that was checked out while a profile was recorded, "" if unknown."""
    git = profile.provenance.get("git")
    return str(git.get("revision", "")) if isinstance(git, Mapping) else ""


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
    except OSError:
        return []


def _beside(folder: Path) -> Path:
    """Return where an entry is put together or taken apart, under a name that no entry has."""
    return folder.with_name(f".{folder.name}-{os.getpid()}")


def _check_runs(name: str, runs: Sequence[Run]) -> None:
    if not runs:
        raise UsageError(f"there is no run to save as {name}: name profiles or a folder of them")
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for run in runs:
        if run.profile.partial:
            raise UsageError(
                f"{run.source!a} was written before its run ended, so it cannot be a baseline; "
                "record it again"
            )
        for fact, value in facts_of(run.profile).items():
            first, source = known.setdefault(fact, (value, run.source))
            if first != value:
                raise UsageError(
                    f"runs of different kinds cannot be one baseline: {fact[1]} is {first!a} in "
                    f"{source!a} and {value!a} in {run.source!a}; save them under two names"
                )


# -- words of a command line ---------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RecordedRuns:
    """One side of a gate that was recorded before.

    Attributes:
        runs: Its runs.
        missing: What is missing, "" for nothing.
    """

    runs: tuple[Run, ...]
    missing: str = ""


def read_sides(
    base: Sequence[str], new: Sequence[str], store: BaselineStore
) -> tuple[RecordedRuns, RecordedRuns]:
    """Return the runs of both sides; only a base may be missing.

    Raises:
        UsageError: A new run is missing, a run is empty, or a word is ambiguous.
        ProfileFormatError: A file is corrupt.
    """
    after = read_side(new, store)
    if not after.runs:
        raise UsageError(
            after.missing or "name a new run: a profile, a folder of them or a baseline"
        )
    return read_side(base, store), after


def read_side(words: Sequence[str], store: BaselineStore) -> RecordedRuns:
    """Return the runs of files, folders, stores and baselines, which may be missing.

    Raises:
        UsageError: A run is empty, or a word is ambiguous.
        ProfileFormatError: A file is corrupt.
    """
    runs: list[Run] = []
    recorded: list[str] = []
    missing: list[str] = []
    for word in words:
        if not is_path(word, store):
            stored, reason = _stored(word, store)
            runs += stored
            missing += [reason] if reason else []
        elif Selection.of(word) is not None or Path(word).exists():
            recorded.append(word)
        else:
            missing.append(f"there is no file, folder or baseline {word!a}")
    runs += read_recorded(recorded)
    if not runs and not missing and words:
        missing.append(f"there is no run in {', '.join(map(ascii, words))}")
    return RecordedRuns(() if missing else tuple(runs), "; ".join(missing))


def read_recorded(words: Sequence[str]) -> list[Run]:
    """Return the runs of files, folders and selections of stores, those of stores last.

    Raises:
        UsageError: A file or store is missing, empty, or named twice.
        ProfileFormatError: A file or store is corrupt.
    """
    named = [Selection.of(word) for word in words]
    files = [Path(word) for word, store in zip(words, named, strict=True) if store is None]
    stores = [store for store in named if store is not None]
    return [*read_runs(files), *(run for store in stores for run in store.runs())]


def split_reference(text: str) -> tuple[str, str | None]:
    """Return the name and the id in ``NAME`` or ``NAME@ID``.

    Raises:
        UsageError: It is neither.
    """
    name, mark, id = text.removeprefix(_MARK).partition("@")
    if not _NAME.fullmatch(name) or (mark and not _NAME.fullmatch(id)):
        raise UsageError(
            f"{text!a} is not a baseline: write NAME or NAME@ID, as `proton baseline list` does"
        )
    return name, id or None


def is_path(word: str, store: BaselineStore) -> bool:
    """Return whether a word is a file, folder or store of runs rather than a baseline.

    Raises:
        UsageError: It could be both, or is empty.
    """
    if not word:
        raise UsageError("a side is named by an empty text; is a variable unset?")
    if word.startswith(_MARK):
        return False
    is_stored = word.partition("@")[0] in store.names()
    if os.path.exists(word):
        if is_stored and os.sep not in word:
            raise UsageError(
                f"{word!a} is both a file and a baseline: write ./{word} or {_MARK}{word}"
            )
        return True
    return not is_stored


def _stored(word: str, store: BaselineStore) -> tuple[list[Run], str]:
    """Return the runs of a baseline, or why there are none."""
    name, id = split_reference(word)
    if name not in store.names():
        return [], store.unknown(name)
    if id is not None:
        if id not in {entry.id for entry in store.entries(name)}:
            return [], f"baseline {name} has no entry {id!a}"
        return store.entry(name, id).load(), ""
    entry = store.promoted(name)
    if entry is None:
        newest = store.entry(name).reference
        return [], (
            f"nothing was promoted to be baseline {name}; list its candidates with `proton "
            f"baseline show {name}` and choose one with `proton baseline promote {newest}`"
        )
    return entry.load(), ""
