"""The file store of baselines: runs that never change, and pointers to the promoted ones.

::

    .proton/entries/<id>/entry.json, 0.proton, ...   saved runs; one rename puts them here
    .proton/names/<name>/<key>.json                  which entry a name means for a key
    .proton/staging/                                 what is being written, or was
    .proton/acknowledged.json                        steps of histories that are known
    .proton/lock                                     held while names change

Saving adds a candidate and moves no pointer, so a slow run does not become the next base by itself.
A process that is killed at any moment leaves entries complete and pointers old or new; the next
writer removes its unfinished files.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats.native.file import NativeFile
from proton_bench.gate.baseline.catalogue import ACKNOWLEDGED_FILE, ENTRY_FILE, Catalogue
from proton_bench.gate.baseline.entry import (
    MOST_NUMBER,
    Acknowledgement,
    Acknowledgements,
    Entry,
    Pointer,
    StoredRun,
    is_id,
    is_name,
    is_old_scratch,
)
from proton_bench.gate.baseline.key import Key, key_of
from proton_bench.gate.baseline.lock import held, is_in_use, shared
from proton_bench.model.frame import escape_surrogates
from proton_bench.support.files import Folder, is_scratch, refused

__all__ = ["BaselineStore", "check_name"]

_FOLDERS = ("entries", "names", "staging")
_RUN_FILE = re.compile(r"\d+\.proton")


def check_name(text: str) -> None:
    """Check that a text can be the name of a baseline.

    Raises:
        UsageError: It cannot.
    """
    if not is_name(text):
        raise UsageError(
            f"{text!a} cannot be the name of a baseline: use letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )


@dataclass(frozen=True, slots=True)
class _Opened:
    """The open folders of a store while it is changed."""

    store: Folder
    entries: Folder
    names: Folder
    staging: Folder


class BaselineStore:
    """Baselines in one folder, for any number of processes at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalogue = Catalogue(folder)

    def save(self, name: str, runs: Sequence[Run]) -> Entry:
        """Save runs as a candidate of a baseline; the name still points to the same entry.

        Raises:
            UsageError: The name is invalid, there are no runs, runs are unfinished or have several
                keys, or a folder of the store is a link.
            OutputError: The store cannot be written; nothing of the entry remains, unless the error
                says so.
        """
        _check(name, runs)
        contents = [NativeFile().encode(run.profile) for run in runs]
        entry = _entry_of(name, runs, contents)
        with (
            refused(f"save {entry.reference}"),
            self._opened() as opened,
            opened.staging.undone(entry.id),
            self._begun(opened, entry.id) as staging,
        ):
            for run, content in zip(entry.runs, contents, strict=True):
                staging.write(run.file, content)
            with held(opened.store):
                entry = changed(entry, number=self._next_number())
                staging.write(ENTRY_FILE, entry.encoded())
                opened.staging.move(entry.id, opened.entries, entry.id)
        return entry

    def load(self, name: str, key: Key) -> list[Run] | None:
        """Return the promoted runs of a name for a key or the closest one, or None.

        Raises:
            ProfileFormatError: The promoted entry is corrupt or missing.
        """
        with shared(self.folder):
            entry = self.catalogue.baseline(name, key)
            contents = [] if entry is None else self.catalogue.contents(entry)
        # Writers of the store do not wait for this.
        return None if entry is None else self.catalogue.decoded(entry, contents)

    def load_entry(self, name: str, id: str) -> list[Run]:
        """Return the runs of one entry.

        Raises:
            UsageError: There is no such entry.
            ProfileFormatError: It is corrupt.
        """
        with shared(self.folder):
            entry = self.catalogue.entry(name, id)
            contents = self.catalogue.contents(entry)
        return self.catalogue.decoded(entry, contents)

    def promote(self, name: str, id: str | None = None) -> tuple[Entry, Entry | None]:
        """Make the name point to an entry, for the entry's key.

        Args:
            name: The baseline.
            id: The entry; None for the newest one of the name.

        Returns:
            The entry, and the previous one or None.

        Raises:
            UsageError: There is no such entry, or a folder is in the place of its file.
            OutputError: The store cannot be written.
        """
        entry = self.catalogue.entry(name, id)
        with refused(f"promote {entry.reference}"), self._opened() as opened, held(opened.store):
            _sweep(opened.staging)
            entry = self.catalogue.entry(name, entry.id)  # it may have been removed meanwhile
            try:
                before = self.catalogue.pointer(name, entry.key)
            except ProfileFormatError:
                before = None  # the new one repairs it
            pointer = Pointer(entry.id, time.time_ns(), self._next_promotion(name))
            with opened.names.folder(name, create=True) as pointers:
                file = self.catalogue.pointer_file(name, entry.key).name
                if stat.S_ISDIR(pointers.mode(file) or 0):
                    raise UsageError(
                        f"{str(pointers.path / file)!a} is a folder where the store needs its own "
                        "file; remove it and promote the baseline again"
                    )
                pointers.write(file, pointer.encoded(), scratch=opened.staging)
        former = None if before is None else self.catalogue.find(before.entry)
        return entry, former

    def acknowledge(self, steps: Sequence[Acknowledgement]) -> None:
        """Add acknowledged steps; of each series the acknowledgement of the latest step stays.

        Raises:
            UsageError: A folder of the store is a link.
            ProfileFormatError: The file with the earlier ones is corrupt.
            OutputError: The store cannot be written; it is unchanged then.
        """
        with refused("acknowledge steps"), self._opened() as opened, held(opened.store):
            _sweep(opened.staging)
            known = self.catalogue.acknowledged().by_series()
            for step in steps:
                before = known.get(step.series, step)
                if before.until_ns <= step.until_ns:
                    known[step.series] = step
            content = Acknowledgements(tuple(known.values())).encoded()
            opened.store.write(ACKNOWLEDGED_FILE, content, scratch=opened.staging)

    def remove(self, name: str, id: str | None = None) -> list[str]:
        """Remove one entry, or a baseline with everything saved for it.

        Returns:
            The ids of the removed entries.

        Raises:
            UsageError: There is no such entry, or the name points to it.
            OutputError: The store cannot be written.
        """
        if not self.folder.is_dir():  # reading must not create one
            raise UsageError(self.catalogue.unknown(name))
        with refused(f"remove {name}"), self._opened() as opened, held(opened.store):
            _sweep(opened.staging)
            if id is None:
                ids = self._forgotten(name, opened.names)
            else:
                ids = [self._unused(name, id)]
            _discard(opened, ids)
        return ids

    def remove_candidates(self, name: str) -> list[str]:
        """Remove every entry of a name except the promoted ones, and return their ids.

        Raises:
            UsageError: There is no such baseline.
            ProfileFormatError: A promoted entry is corrupt.
            OutputError: The store cannot be written.
        """
        self.catalogue.entry(name)
        with (
            refused(f"remove candidates of {name}"),
            self._opened() as opened,
            held(opened.store),
        ):
            _sweep(opened.staging)
            meant = {entry.id for _, entry in self.catalogue.promoted(name)}
            ids = [each.id for each in self.catalogue.entries(name) if each.id not in meant]
            _discard(opened, ids)
        return ids

    def _forgotten(self, name: str, names: Folder) -> list[str]:
        """Unset a name, and return its entries."""
        ids = [entry.id for entry in self.catalogue.entries(name)]
        pointers = self.catalogue.pointer_files(name)
        if not ids and not pointers:
            raise UsageError(self.catalogue.unknown(name))
        # Before the entries: a pointer without its entry would be corrupt.
        if pointers:
            with names.folder(name) as folder:
                for file in pointers:
                    folder.remove(file.name)
        return ids

    def _unused(self, name: str, id: str) -> str:
        """Return the id of an entry that can be removed; an unreadable one belongs to any name."""
        if id in self.catalogue.unreadable():
            return id
        entry = self.catalogue.entry(name, id)
        pointer = self.catalogue.pointer(name, entry.key)
        if pointer is not None and pointer.entry == id:
            raise UsageError(
                f"{entry.reference} is what {name} means; promote another entry first, or "
                f"remove {name} as a whole"
            )
        return id

    @contextmanager
    def _opened(self) -> Iterator[_Opened]:
        """Open the folders of the store; missing ones are created.

        Raises:
            UsageError: One is a link, or not a folder.
            OSError: One cannot be opened or made.
        """
        with ExitStack() as opened:
            store = opened.enter_context(Folder.open(self.folder, create=True))
            parts = [opened.enter_context(store.folder(name, create=True)) for name in _FOLDERS]
            yield _Opened(store, *parts)

    def _begun(self, opened: _Opened, id: str) -> Folder:
        """Return a new folder for an entry; while it is open, no sweep removes it."""
        with held(opened.store):
            _sweep(opened.staging)
            opened.staging.make(id)
            staging = opened.staging.folder(id)
            is_in_use(staging)  # from here on it is
            return staging

    def _next_number(self) -> int:
        """Return the number that makes an entry the newest one, independent of clocks."""
        numbers = (entry.number for entry in self.catalogue.entries())
        return min(max(numbers, default=0) + 1, MOST_NUMBER)

    def _next_promotion(self, name: str) -> int:
        numbers = (pointer.number for pointer in self.catalogue.pointers(name))
        return min(max(numbers, default=0) + 1, MOST_NUMBER)


def _discard(opened: _Opened, ids: Sequence[str]) -> None:
    """Remove entries, each atomically for readers; what is not of an entry stays in staging."""
    for id in ids:
        # An unreadable entry may have any name.
        name = _new_id(time.time_ns())
        opened.entries.move(id, opened.staging, name)
        with suppress(OSError, UsageError):
            opened.staging.remove_folder(name, _is_file_of_entry)


def _sweep(staging: Folder) -> None:
    """Remove files of killed writers; the lock is held, so no writer begins now.

    Files with names that the store does not use stay.
    """
    for name in staging.names():
        with suppress(OSError, UsageError):
            if is_scratch(name) or is_old_scratch(name):
                staging.remove(name)
            elif is_id(name) and not _is_written(staging, name):
                staging.remove_folder(name, _is_file_of_entry)


def _is_written(staging: Folder, id: str) -> bool:
    with staging.folder(id) as entry:
        return is_in_use(entry)


def _is_file_of_entry(name: str) -> bool:
    return name == ENTRY_FILE or is_scratch(name) or _RUN_FILE.fullmatch(name) is not None


def _check(name: str, runs: Sequence[Run]) -> None:
    check_name(name)
    if not runs:
        raise UsageError(f"there is no run to save as {name}: name profiles or a folder of them")
    for run in runs:
        if run.profile.partial:
            raise UsageError(
                f"{run.source!a} was written before its run ended, so it cannot be a baseline; "
                "record it again"
            )


def _entry_of(name: str, runs: Sequence[Run], contents: Sequence[bytes]) -> Entry:
    now_ns = time.time_ns()
    git = runs[0].profile.provenance.get("git")
    return Entry(
        id=_new_id(now_ns),
        name=name,
        created_ns=now_ns,
        key=key_of(runs),
        runs=tuple(
            StoredRun(
                f"{place}.proton", escape_surrogates(run.source), len(content), _sha256(content)
            )
            for place, (run, content) in enumerate(zip(runs, contents, strict=True))
        ),
        revision=str(git.get("revision", "")) if isinstance(git, Mapping) else "",
    )


def _new_id(now_ns: int) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_ns // 1_000_000_000))
    return f"{stamp}-{secrets.token_hex(4)}"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
