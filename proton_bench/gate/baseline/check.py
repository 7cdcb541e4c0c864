"""Finds damaged entries of a store, and moves them aside so that the rest works."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import PurePosixPath

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.baseline.catalogue import ACKNOWLEDGED_FILE, Catalogue
from proton_bench.gate.baseline.entry import is_name
from proton_bench.gate.baseline.lock import LOCK, held, shared
from proton_bench.gate.baseline.store import FOLDERS, BaselineStore
from proton_bench.support.files import Folder, refused

__all__ = ["DAMAGED", "check_store", "repair_store"]

DAMAGED = "damaged"
_SHOWN_NAME = 50


def check_store(store: BaselineStore) -> dict[str, str]:
    """Return the damaged places below a store and their problems.

    Every file of every entry is read.

    Raises:
        UsageError: The store is a link, or not a folder.
        OutputError: It cannot be opened.
    """
    with refused("check the store"):
        try:
            opened = Folder.open(store.folder)
        except FileNotFoundError:
            return {}
        with opened:
            wrong = _wrong_parts(opened)
        if wrong:
            return wrong  # it cannot be locked, and misplaced files are not read
        with shared(store.folder):
            return _wrong_files(store.catalogue)


def repair_store(store: BaselineStore) -> dict[str, str]:
    """Move damaged entries to the folder `damaged` of a store; nothing is deleted.

    A name that pointed to a damaged entry is then unset, until another one is promoted.

    Returns:
        The moved places and their problems.

    Raises:
        UsageError: The store, or its folder `damaged`, is a link or not a folder.
        OutputError: Something cannot be moved.
    """
    if not check_store(store):
        return {}
    with refused("repair the store"), Folder.open(store.folder) as opened:
        # Without the lock, because the lock itself may be the problem.
        found = _wrong_parts(opened)
        _put_aside(opened, found)
        with held(opened):
            more = _wrong_files(store.catalogue)
            _put_aside(opened, more)
    return {**found, **more}


def _wrong_parts(store: Folder) -> dict[str, str]:
    found = {}
    for name in FOLDERS:
        mode = store.mode(name)
        if mode is not None and not stat.S_ISDIR(mode):
            found[name] = "it is not a folder, or is a link to one"
    try:
        if store.mode(LOCK) is not None:
            os.close(store.open_lock(LOCK, create=False))
    except UsageError as error:
        found[LOCK] = str(error)
    return found


def _wrong_files(catalogue: Catalogue) -> dict[str, str]:
    found = dict(_wrong_entries(catalogue))
    return {**found, **dict(_wrong_names(catalogue, found)), **_wrong_acknowledged(catalogue)}


def _wrong_acknowledged(catalogue: Catalogue) -> dict[str, str]:
    try:
        catalogue.acknowledged()
    except ProfileFormatError as error:
        return {ACKNOWLEDGED_FILE: str(error)}
    return {}


def _wrong_entries(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    for id, why in catalogue.unreadable().items():
        yield f"entries/{id}", why
    for entry in catalogue.entries():
        try:
            catalogue.contents(entry)
        except ProfileFormatError as error:
            yield f"entries/{entry.id}", str(error)


def _wrong_names(catalogue: Catalogue, entries: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in catalogue.folders_of_names():
        try:
            files = catalogue.pointer_files(name)
        except UsageError as error:
            yield f"names/{name}", str(error)
            continue
        if not is_name(name):
            yield f"names/{name}", "no baseline can have this name"
            continue
        for file in files:
            try:
                pointer = catalogue.read_pointer(file)
            except ProfileFormatError as error:
                yield f"names/{name}/{file.name}", str(error)
                continue
            if pointer is None:
                continue
            if f"entries/{pointer.entry}" in entries or catalogue.find(pointer.entry) is None:
                yield f"names/{name}/{file.name}", f"entry {pointer.entry!a} is missing or damaged"


def _put_aside(store: Folder, places: Mapping[str, str]) -> None:
    if not places:
        return
    with store.folder(DAMAGED, create=True) as aside:
        for place in places:
            _move(store, place, aside)


def _move(store: Folder, place: str, aside: Folder) -> None:
    *above, name = PurePosixPath(place).parts
    with ExitStack() as opened:
        folder = store
        for each in above:
            folder = opened.enter_context(folder.folder(each))
        folder.move(name, aside, f"{secrets.token_hex(4)}-{name[:_SHOWN_NAME]}")
