"""What there is in a store, read without a lock: everything in it appears and goes at once."""

from __future__ import annotations

import hashlib
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.baseline.entry import Entry, Pointer, StoredRun, decode_entry, decode_pointer
from proton_bench.baseline.key import Key
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats.base import display_name
from proton_bench.formats.registry import decode_profile

__all__ = ["Catalogue"]


class Catalogue:
    """The entries of a store and what its names mean."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries = folder / "entries"
        self._names = folder / "names"

    # -- places --------------------------------------------------------------------------------
    def folder_of(self, id: str) -> Path:
        """Return where an entry stands, whether or not there is one."""
        return self._entries / id

    def pointer_file(self, name: str, key: Key) -> Path:
        """Return where it is written what a name means for a key."""
        return self._names / name / f"{key.digest}.json"

    def pointer_files(self, name: str) -> list[Path]:
        """Return everything that says what a name means."""
        return sorted((self._names / name).glob("*.json"))

    # -- entries -------------------------------------------------------------------------------
    def names(self) -> list[str]:
        """Return the names of all baselines, promoted or not."""
        promoted = {file.parent.name for file in self._names.glob("*/*.json")}
        return sorted(promoted | {entry.name for entry in self.entries()})

    def entries(self, name: str | None = None) -> list[Entry]:
        """Return the entries that can be read, oldest first; `unreadable` names the others."""
        found = [entry for entry in map(self.find, self._ids()) if entry is not None]
        chosen = [entry for entry in found if name is None or entry.name == name]
        return sorted(chosen, key=lambda entry: (entry.created_ns, entry.id))

    def unreadable(self) -> dict[str, str]:
        """Return for the id of each entry that cannot be read why that is so."""
        found = {}
        for id in self._ids():
            try:
                self._read_entry(id)
            except FileNotFoundError:
                # One that is being removed is gone as a whole.
                if self.folder_of(id).is_dir():
                    found[id] = "entry.json is missing"
            except OSError as error:
                found[id] = error.strerror or str(error)
            except ProfileFormatError as error:
                found[id] = str(error)
        return found

    def find(self, id: str) -> Entry | None:
        """Return an entry by its id, None where there is none that can be read."""
        try:
            return self._read_entry(id)
        except (OSError, ProfileFormatError):
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
            f"{display_name(self._folder)} has no baseline {name!a}; there are: {known}. "
            f"`proton baseline save {name} RUN...` adds one"
        )

    # -- what names mean -----------------------------------------------------------------------
    def pointer(self, name: str, key: Key) -> Pointer | None:
        """Return what a name means for exactly this key, None for nothing.

        Raises:
            ProfileFormatError: The pointer is corrupt.
        """
        return _read_pointer(self.pointer_file(name, key))

    def promoted(self, name: str) -> list[tuple[Pointer, Entry]]:
        """Return what a name means, for each key, the last promoted one first.

        Raises:
            ProfileFormatError: A pointer is corrupt, or its entry is gone.
        """
        found = []
        for file in self.pointer_files(name):
            pointer, entry = self._meant(file)
            if pointer is None:
                continue
            if entry is None:
                raise ProfileFormatError(
                    f"{display_name(file)}: entry {pointer.entry!a} of baseline {name} is gone or "
                    f"corrupt; promote another one, or `proton baseline rm {name}`"
                )
            found.append((pointer, entry))
        return sorted(found, key=lambda each: -each[0].promoted_ns)

    def _meant(self, file: Path) -> tuple[Pointer | None, Entry | None]:
        """Return a pointer and its entry, looking again if it was moved while we looked."""
        while True:
            pointer = _read_pointer(file)
            entry = None if pointer is None else self.find(pointer.entry)
            if pointer is None or entry is not None or _read_pointer(file) == pointer:
                return pointer, entry

    def baseline(self, name: str, key: Key) -> Entry | None:
        """Return what a name means for a key or the one closest to it, None for nothing.

        Raises:
            ProfileFormatError: A pointer is corrupt, or its entry is gone.
        """
        promoted = [entry for _, entry in self.promoted(name)]
        return min(promoted, key=lambda entry: key.distance(entry.key), default=None)

    # -- runs ----------------------------------------------------------------------------------
    def load(self, entry: Entry) -> list[Run]:
        """Return the runs of an entry.

        Raises:
            ProfileFormatError: A file is gone or is not what was saved.
        """
        return [
            Run(decode_profile(content, run.file), f"{entry.reference}/{run.file}")
            for run, content in self.contents(entry)
        ]

    def contents(self, entry: Entry) -> list[tuple[StoredRun, bytes]]:
        """Return the files of an entry, each checked to be what was saved.

        Raises:
            ProfileFormatError: A file is gone or is not what was saved.
        """
        found = []
        for run in entry.runs:
            file = self.folder_of(entry.id) / run.file
            try:
                content = file.read_bytes()
            except OSError as error:
                raise _damaged(file, error.strerror or str(error)) from None
            if len(content) != run.size:
                raise _damaged(file, f"{len(content)} bytes instead of {run.size}")
            if hashlib.sha256(content).hexdigest() != run.sha256:
                raise _damaged(file, "its content is not what was saved")
            found.append((run, content))
        return found

    def _ids(self) -> list[str]:
        if not self._entries.is_dir():
            return []
        return sorted(folder.name for folder in self._entries.iterdir())

    def _read_entry(self, id: str) -> Entry:
        file = self.folder_of(Path(id).name) / "entry.json"
        entry = decode_entry(file.read_bytes(), display_name(file))
        if entry.id != id:
            raise ProfileFormatError(f"{display_name(file)}: it is the entry {entry.id!a}")
        return entry


def _read_pointer(file: Path) -> Pointer | None:
    try:
        return decode_pointer(file.read_bytes(), display_name(file))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ProfileFormatError(
            f"{display_name(file)} cannot be read: {error.strerror}; promote the baseline anew"
        ) from None


def _damaged(file: Path, why: str) -> ProfileFormatError:
    return ProfileFormatError(
        f"{display_name(file)}: the saved run is damaged ({why}); remove the entry and save it anew"
    )
