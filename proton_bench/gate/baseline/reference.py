"""Resolves words of a command line: files, folders of runs, stores, names of baselines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.analysis.run_files import read_runs
from proton_bench.errors import UsageError
from proton_bench.gate.baseline.entry import is_name
from proton_bench.gate.baseline.key import Key, key_of
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.store.selection import Selection

__all__ = ["Side", "is_path", "read_base", "read_recorded", "read_sides", "split_reference"]

_MARK = "baseline:"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a gate.

    Attributes:
        runs: Its runs.
        missing: What is missing, "" for nothing.
    """

    runs: tuple[Run, ...]
    missing: str = ""


def read_sides(base: Sequence[str], new: Sequence[str], store: BaselineStore) -> tuple[Side, Side]:
    """Return the runs of both sides; only a base may be missing.

    The new side is read first: if a baseline was promoted for several devices, drivers or versions,
    the entry closest to the new runs is used.

    Raises:
        UsageError: A new run is missing, a run is empty, or a word is ambiguous.
        ProfileFormatError: A file is corrupt.
    """
    after = _side(new, store, None)
    if not after.runs:
        raise UsageError(
            after.missing or "name a new run: a profile, a folder of them or a baseline"
        )
    return read_base(base, after.runs, store), after


def read_base(base: Sequence[str], new_runs: Sequence[Run], store: BaselineStore) -> Side:
    """Return the base for new runs, which may be missing.

    Raises:
        UsageError: A run is empty, or a word is ambiguous.
        ProfileFormatError: A file is corrupt.
    """
    return _side(base, store, _key_or_first(new_runs))


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
    if not is_name(name) or (mark and not is_name(id)):
        raise UsageError(
            f"{text!a} is not a baseline: write NAME or NAME@ID, as `proton baseline list` does"
        )
    return name, id or None


def _side(words: Sequence[str], store: BaselineStore, key: Key | None) -> Side:
    runs: list[Run] = []
    recorded = []
    missing = []
    for word in words:
        if is_path(word, store):
            is_there = Selection.of(word) is not None or Path(word).exists()
            recorded += [word] if is_there else []
            missing += [] if is_there else [f"there is no file, folder or baseline {word!a}"]
        else:
            found, reason = _stored(word, store, key)
            runs += found
            missing += [reason] if reason else []
    runs += read_recorded(recorded)
    if not runs and not missing and words:
        missing.append(f"there is no run in {', '.join(map(ascii, words))}")
    return Side(() if missing else tuple(runs), "; ".join(missing))


def is_path(word: str, store: BaselineStore) -> bool:
    """Return whether a word is a file, folder or store of runs rather than a baseline.

    Raises:
        UsageError: It could be both, or is empty.
    """
    if not word:
        raise UsageError("a side is named by an empty text; is a variable unset?")
    if word.startswith(_MARK):
        return False
    name, _, _ = word.partition("@")
    is_stored = is_name(name) and name in store.catalogue.names()
    if os.path.exists(word):
        if is_stored and os.sep not in word:
            raise UsageError(
                f"{word!a} is both a file and a baseline: write ./{word} or {_MARK}{word}"
            )
        return True
    return not is_stored


def _stored(word: str, store: BaselineStore, key: Key | None) -> tuple[list[Run], str]:
    name, id = split_reference(word)
    if name not in store.catalogue.names():
        return [], store.catalogue.unknown(name)
    if id is not None:
        if id not in {entry.id for entry in store.catalogue.entries(name)}:
            return [], f"baseline {name} has no entry {id!a} that can be read"
        return store.load_entry(name, id), ""
    runs = store.load(name, key or Key(()))
    if runs is None:
        newest = store.catalogue.entry(name).reference
        return [], (
            f"nothing was promoted to be baseline {name}; list its candidates with `proton "
            f"baseline show {name}` and choose one with `proton baseline promote {newest}`"
        )
    return runs, ""


def _key_or_first(runs: Sequence[Run]) -> Key:
    """Return the key of the runs; if they differ, which the gate reports, that of the first."""
    try:
        return key_of(runs)
    except UsageError:
        return key_of(runs[:1])
