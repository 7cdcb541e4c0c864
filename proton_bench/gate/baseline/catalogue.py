"""The content of a store, read without a lock, because entries appear and disappear atomically."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats.registry import decode_profile
from proton_bench.gate.baseline.entry import (
    Acknowledgements,
    Entry,
    Pointer,
    StoredRun,
    decode_acknowledgements,
    decode_entry,
    decode_pointer,
)
from proton_bench.gate.baseline.key import Key
from proton_bench.support.files import Folder
from proton_bench.support.text import visible

__all__ = ["ACKNOWLEDGED_FILE", "ENTRY_FILE", "Catalogue"]

ACKNOWLEDGED_FILE = "acknowledged.json"
ENTRY_FILE = "entry.json"
_POINTER_SUFFIX = ".json"
_MOST_ENTRY_BYTES = 16 << 20
_MOST_POINTER_BYTES = 1 << 16
_MOST_ACKNOWLEDGED_BYTES = 64 << 20
# Errors of reading the store.
_DAMAGED = (OSError, ProfileFormatError, UsageError)


class Catalogue:
    """The entries of a store and its names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries = folder / "entries"
        self._names = folder / "names"

    # -- places --------------------------------------------------------------------------------
    def folder_of(self, id: str) -> Path:
        """Return the folder of an entry, which may not exist."""
        return self._entries / id

    def pointer_file(self, name: str, key: Key) -> Path:
        """Return the file of a name's pointer for a key."""
        return self._names / name / f"{key.digest}.json"

    def pointer_files(self, name: str) -> list[Path]:
        """Return all pointer files of a name.

        Raises:
            UsageError: It is a link, or not a folder.
        """
        try:
            with (
                Folder.open(self._folder) as store,
                store.folder("names") as names,
                names.folder(name) as folder,
            ):
                found = [each for each in folder.names() if each.endswith(_POINTER_SUFFIX)]
        except OSError:
            return []
        return [self._names / name / each for each in found]

    # -- entries -------------------------------------------------------------------------------
    def names(self) -> list[str]:
        """Return the names of all baselines, promoted or not."""
        promoted = {name for name in self.folders_of_names() if self._has_pointers(name)}
        return sorted(promoted | {entry.name for entry in self.entries()})

    def folders_of_names(self) -> list[str]:
        """Return the entries of the folder with the pointers of all names.

        Raises:
            UsageError: The store or its `names` is a link, or not a folder.
        """
        return self._listed("names")

    def entries(self, name: str | None = None) -> list[Entry]:
        """Return the readable entries, oldest first; `unreadable` names the others."""
        found = [entry for entry in map(self.find, self._ids()) if entry is not None]
        chosen = [entry for entry in found if name is None or entry.name == name]
        return sorted(chosen, key=lambda entry: (entry.number, entry.created_ns, entry.id))

    def unreadable(self) -> dict[str, str]:
        """Return why entries are unreadable, by id."""
        found = {}
        for id in self._ids():
            try:
                self._read_entry(id)
            except FileNotFoundError:
                # An entry that is being removed disappears as a whole.
                if self.folder_of(id).is_dir():
                    found[id] = "entry.json is missing"
            except OSError as error:
                found[id] = error.strerror or str(error)
            except (ProfileFormatError, UsageError) as error:
                found[id] = str(error)
        return found

    def find(self, id: str) -> Entry | None:
        """Return a readable entry by its id, or None."""
        try:
            return self._read_entry(id)
        except _DAMAGED:
            return None

    def entry(self, name: str, id: str | None = None) -> Entry:
        """Return an entry of a name; without an id the newest one.

        Raises:
            UsageError: There is none.
        """
        chosen = [each for each in self.entries(name) if id is None or each.id == id]
        if chosen:
            return chosen[-1]
        if id is None or not self.entries(name):
            raise UsageError(self.unknown(name))
        raise UsageError(
            f"baseline {name} has no entry {id!a}; `proton baseline show {name}` lists its entries"
        )

    def unknown(self, name: str) -> str:
        """Return a sentence about a name without entries."""
        known = ", ".join(self.names()) or "none"
        return (
            f"{visible(self._folder)} has no baseline {name!a}; there are: {known}. "
            f"`proton baseline save {name} RUN...` adds one"
        )

    # -- what names mean -----------------------------------------------------------------------
    def pointer(self, name: str, key: Key) -> Pointer | None:
        """Return the pointer of a name for exactly this key, or None.

        Raises:
            ProfileFormatError: The pointer is corrupt.
        """
        return self.read_pointer(self.pointer_file(name, key))

    def pointers(self, name: str) -> list[Pointer]:
        """Return all readable pointers of a name."""
        found = []
        for file in self.pointer_files(name):
            with suppress(ProfileFormatError):
                found.append(self.read_pointer(file))
        return [each for each in found if each is not None]

    def read_pointer(self, file: Path) -> Pointer | None:
        """Return the pointer in one of `pointer_files`, None if it was removed.

        Raises:
            ProfileFormatError: It is corrupt, or not a plain file.
        """
        source = visible(file)
        try:
            with (
                Folder.open(self._folder) as store,
                store.folder("names") as names,
                names.folder(file.parent.name) as folder,
            ):
                content = folder.read(file.name, _MOST_POINTER_BYTES)
        except FileNotFoundError:
            return None
        except (OSError, ProfileFormatError, UsageError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ProfileFormatError(
                f"{source} cannot be read: {reason}; promote the baseline again"
            ) from None
        return decode_pointer(content, source)

    def promoted(self, name: str) -> list[tuple[Pointer, Entry]]:
        """Return the promoted entries of a name for all keys, the last promoted first.

        Raises:
            ProfileFormatError: A pointer is corrupt, or its entry is missing.
        """
        found = []
        for file in self.pointer_files(name):
            pointer, entry = self._meant(file)
            if pointer is None:
                continue
            if entry is None:
                raise ProfileFormatError(
                    f"{visible(file)}: entry {pointer.entry!a} of baseline {name} is missing or "
                    "corrupt; promote another one"
                )
            found.append((pointer, entry))
        return sorted(found, key=lambda each: (-each[0].number, -each[0].promoted_ns))

    def _meant(self, file: Path) -> tuple[Pointer | None, Entry | None]:
        """Return a pointer and its entry, reading again if it was moved meanwhile."""
        while True:
            pointer = self.read_pointer(file)
            entry = None if pointer is None else self.find(pointer.entry)
            if pointer is None or entry is not None or self.read_pointer(file) == pointer:
                return pointer, entry

    def baseline(self, name: str, key: Key) -> Entry | None:
        """Return the promoted entry of a name for a key or the closest one, or None.

        Raises:
            ProfileFormatError: A pointer is corrupt, or its entry is missing.
        """
        promoted = [entry for _, entry in self.promoted(name)]
        return min(promoted, key=lambda entry: key.distance(entry.key), default=None)

    # -- acknowledged steps --------------------------------------------------------------------
    def acknowledged(self) -> Acknowledgements:
        """Return the acknowledged steps.

        Raises:
            ProfileFormatError: Their file is corrupt, or not a plain file.
            UsageError: The store is a link, or not a folder.
        """
        source = visible(self._folder / ACKNOWLEDGED_FILE)
        try:
            with Folder.open(self._folder) as store:
                content = store.read(ACKNOWLEDGED_FILE, _MOST_ACKNOWLEDGED_BYTES)
        except FileNotFoundError:
            return Acknowledgements()
        except (OSError, ProfileFormatError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ProfileFormatError(
                f"{source} cannot be read: {reason}; remove it and acknowledge the steps again"
            ) from None
        return decode_acknowledgements(content, source)

    # -- runs ----------------------------------------------------------------------------------
    def load(self, entry: Entry) -> list[Run]:
        """Return the runs of an entry.

        Raises:
            ProfileFormatError: A file is missing or differs from what was saved.
        """
        return self.decoded(entry, self.contents(entry))

    def decoded(self, entry: Entry, contents: Sequence[tuple[StoredRun, bytes]]) -> list[Run]:
        """Return the runs of an entry from the result of `contents`.

        Raises:
            ProfileFormatError: A saved file is not a profile.
        """
        return [
            Run(decode_profile(content, run.file), f"{entry.reference}/{run.file}")
            for run, content in contents
        ]

    def contents(self, entry: Entry) -> list[tuple[StoredRun, bytes]]:
        """Return the files of an entry, each verified by its hash.

        Raises:
            ProfileFormatError: A file is missing or differs from what was saved.
        """
        found = []
        for run in entry.runs:
            file = self.folder_of(entry.id) / run.file
            try:
                content = self._read(entry.id, run.file, run.size)
            except OSError as error:
                raise _damaged(file, error.strerror or str(error)) from None
            except MemoryError:
                raise _damaged(file, "it is larger than the free memory") from None
            except ProfileFormatError as error:
                raise _damaged(file, str(error)) from None
            if len(content) != run.size:
                raise _damaged(file, f"{len(content)} bytes instead of {run.size}")
            if hashlib.sha256(content).hexdigest() != run.sha256:
                raise _damaged(file, "its content differs from what was saved")
            found.append((run, content))
        return found

    def _ids(self) -> list[str]:
        return self._listed("entries")

    def _listed(self, place: str) -> list[str]:
        try:
            with Folder.open(self._folder) as store, store.folder(place) as folder:
                return folder.names()
        except OSError:
            return []

    def _has_pointers(self, name: str) -> bool:
        try:
            return bool(self.pointer_files(name))
        except UsageError:
            return False  # not a folder of the store

    def _read(self, id: str, name: str, most: int) -> bytes:
        with (
            Folder.open(self._folder) as store,
            store.folder("entries") as entries,
            entries.folder(Path(id).name) as folder,
        ):
            return folder.read(name, most)

    def _read_entry(self, id: str) -> Entry:
        file = self.folder_of(Path(id).name) / ENTRY_FILE
        source = visible(file)
        try:
            content = self._read(id, ENTRY_FILE, _MOST_ENTRY_BYTES)
        except ProfileFormatError as error:
            raise ProfileFormatError(f"{source}: {error}") from None
        entry = decode_entry(content, source)
        if entry.id != id:
            raise ProfileFormatError(f"{source}: it is the entry {entry.id!a}")
        return entry


def _damaged(file: Path, why: str) -> ProfileFormatError:
    return ProfileFormatError(
        f"{visible(file)}: the saved run is damaged ({why}); remove the entry and save it again"
    )
