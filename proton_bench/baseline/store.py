"""The file store of baselines: runs that never change, and pointers to those that count.

::

    .proton/entries/<id>/entry.json, 0.proton, ...   saved runs; one rename puts them here
    .proton/names/<name>/<key>.json                  which entry a name means for a key
    .proton/staging/                                 what is being written, or was
    .proton/lock                                     held while names change

Saving adds a candidate and moves no pointer, so that a slow run never becomes what the next one is
held against by itself. Whatever is killed at whatever moment leaves entries whole and pointers old
or new; what it was writing is swept away by the next who writes.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.baseline.catalogue import Catalogue
from proton_bench.baseline.durable import is_in_use, kept, locked, move, refused, replace, write_new
from proton_bench.baseline.entry import Entry, Pointer, StoredRun, is_name
from proton_bench.baseline.key import Key, key_of
from proton_bench.errors import UsageError
from proton_bench.formats.native_file import NativeFile
from proton_bench.profile.frame import escape_surrogates

__all__ = ["BaselineStore", "check_name"]


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


class BaselineStore:
    """Baselines in one folder, for any number of processes at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalogue = Catalogue(folder)
        self._staging = folder / "staging"
        self._lock = folder / "lock"

    def save(self, name: str, runs: Sequence[Run]) -> Entry:
        """Save runs as a candidate of a baseline; what the name means stays what it was.

        Raises:
            UsageError: The name cannot be one, or the runs are none, unfinished or of several keys.
            OutputError: The store cannot be written; nothing of the entry is left.
        """
        _check(name, runs)
        contents = [NativeFile().encode(run.profile) for run in runs]
        entry = _entry_of(name, runs, contents)
        with refused(f"save {entry.reference}"), ExitStack() as held:
            self._create_folders()
            staging = self._staging / entry.id
            with locked(self._lock):
                self._sweep()
                staging.mkdir()
                held.enter_context(locked(staging, create=False))
            try:
                for run, content in zip(entry.runs, contents, strict=True):
                    write_new(staging / run.file, content)
                write_new(staging / "entry.json", entry.encoded())
                with locked(self._lock):
                    move(staging, self.catalogue.folder_of(entry.id))
            except BaseException:
                shutil.rmtree(staging, ignore_errors=True)
                raise
        return entry

    def load(self, name: str, key: Key) -> list[Run] | None:
        """Return the runs that a name means for a key or the one closest to it, None for nothing.

        Raises:
            ProfileFormatError: What the name means is corrupt or gone.
        """
        with kept(self._lock):
            entry = self.catalogue.baseline(name, key)
            return None if entry is None else self.catalogue.load(entry)

    def load_entry(self, name: str, id: str) -> list[Run]:
        """Return the runs of one entry.

        Raises:
            UsageError: There is no such entry.
            ProfileFormatError: It is corrupt.
        """
        with kept(self._lock):
            return self.catalogue.load(self.catalogue.entry(name, id))

    def promote(self, name: str, id: str | None = None) -> tuple[Entry, Entry | None]:
        """Make an entry what the name means for the entry's key.

        Args:
            name: The baseline.
            id: The entry; None for the newest one of the name.

        Returns:
            The entry, and the one before it, None for none.

        Raises:
            UsageError: There is no such entry.
            ProfileFormatError: The entry or what the name meant is corrupt.
            OutputError: The store cannot be written.
        """
        entry = self.catalogue.entry(name, id)
        with refused(f"promote {entry.reference}"):
            self._create_folders()
            with locked(self._lock):
                self._sweep()
                entry = self.catalogue.entry(name, entry.id)  # it may have been removed meanwhile
                before = self.catalogue.pointer(name, entry.key)
                place = self.catalogue.pointer_file(name, entry.key)
                place.parent.mkdir(parents=True, exist_ok=True)
                pointer = Pointer(entry.id, time.time_ns())
                replace(place, pointer.encoded(), self._staging / f"pointer-{os.getpid()}")
        former = None if before is None else self.catalogue.find(before.entry)
        return entry, former

    def remove(self, name: str, id: str | None = None) -> list[str]:
        """Remove one entry, or a baseline with everything that was saved for it.

        Returns:
            The ids of the entries that are gone.

        Raises:
            UsageError: There is no such entry, or it is what the name means.
            OutputError: The store cannot be written.
        """
        if not self.folder.is_dir():  # looking must not create one
            raise UsageError(self.catalogue.unknown(name))
        with refused(f"remove {name}"):
            self._create_folders()
            with locked(self._lock):
                self._sweep()
                ids = self._forgotten(name) if id is None else [self._unused(name, id)]
                self._discard(ids)
        return ids

    def remove_candidates(self, name: str) -> list[str]:
        """Remove every entry of a name but what it means, and return the ids that are gone.

        Raises:
            UsageError: There is no such baseline.
            ProfileFormatError: What the name means is corrupt.
            OutputError: The store cannot be written.
        """
        self.catalogue.entry(name)
        with refused(f"remove candidates of {name}"):
            self._create_folders()
            with locked(self._lock):
                self._sweep()
                meant = {entry.id for _, entry in self.catalogue.promoted(name)}
                ids = [each.id for each in self.catalogue.entries(name) if each.id not in meant]
                self._discard(ids)
        return ids

    def _discard(self, ids: Sequence[str]) -> None:
        for id in ids:
            os.rename(self.catalogue.folder_of(id), self._staging / id)
        self._sweep()

    def _forgotten(self, name: str) -> list[str]:
        """Let a name mean nothing, and return its entries."""
        ids = [entry.id for entry in self.catalogue.entries(name)]
        pointers = self.catalogue.pointer_files(name)
        if not ids and not pointers:
            raise UsageError(self.catalogue.unknown(name))
        # Before the entries go: a pointer without its entry would be corrupt.
        for file in pointers:
            file.unlink()
        return ids

    def _unused(self, name: str, id: str) -> str:
        """Return the id of an entry that can go; one that cannot be read is of any name."""
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

    def _create_folders(self) -> None:
        for folder in (self.catalogue.folder_of(""), self._staging):
            folder.mkdir(parents=True, exist_ok=True)

    def _sweep(self) -> None:
        """Remove what killed writers left; the lock is held, so nobody is about to begin."""
        for left in self._staging.iterdir():
            if not left.is_dir():
                left.unlink()
            elif not is_in_use(left):
                shutil.rmtree(left, ignore_errors=True)


def _check(name: str, runs: Sequence[Run]) -> None:
    check_name(name)
    if not runs:
        raise UsageError(f"there is no run to save as {name}: name profiles or a folder of them")
    for run in runs:
        if run.profile.partial:
            raise UsageError(
                f"{run.source!a} was written before its run had ended, which is no baseline; "
                "record it again"
            )


def _entry_of(name: str, runs: Sequence[Run], contents: Sequence[bytes]) -> Entry:
    now_ns = time.time_ns()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_ns // 1_000_000_000))
    git = runs[0].profile.provenance.get("git")
    return Entry(
        id=f"{stamp}-{secrets.token_hex(4)}",
        name=name,
        created_ns=now_ns,
        key=key_of(runs),
        runs=tuple(
            StoredRun(
                f"{place}.proton", escape_surrogates(run.source), len(content), _sha256(content)
            )
            for place, (run, content) in enumerate(zip(runs, contents, strict=True))
        ),
        revision=str(git.get("revision", "")) if git else "",
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
