from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.stored import check_whole, stored_run

from proton_bench.errors import UsageError
from proton_bench.gate.baseline.check import check_store, repair_store
from proton_bench.gate.baseline.store import BaselineStore


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    store = BaselineStore(tmp_path / ".proton")
    store.promote("main", store.save("main", [stored_run()]).id)
    return store


def rewritten(old: bytes, new: bytes) -> Callable[[Path], object]:
    def rewrite(file: Path) -> object:
        content = file.read_bytes()
        assert old in content
        return file.write_bytes(content.replace(old, new))

    return rewrite


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


POISONS: dict[str, Callable[[Path], object]] = {
    "nested lists": lambda file: file.write_bytes(b"[" * 2000 + b"]" * 2000),
    "nested in a field": rewritten(
        b'"revision": ""', b'"revision": "", "more": ' + b"[" * 100_000 + b"]" * 100_000
    ),
    "half": lambda file: file.write_bytes(file.read_bytes()[:40]),
    "empty": lambda file: file.write_bytes(b""),
    "no text": lambda file: file.write_bytes(bytes(range(256))),
    "another type": lambda file: file.write_bytes(b'{"schema": [], "version": {}}'),
    "name of another type": rewritten(b'"main"', b'{"a": 1}'),
    "name outside": rewritten(b'"main"', b'"../main"'),
    "file outside": rewritten(b'"0.proton"', b'"../../lock"'),
    "large number": rewritten(b'"number": 2', b'"number": 9' + b"9" * 400),
    "large time": rewritten(b'"created_ns": 1', b'"created_ns": 1' + b"9" * 30),
    "negative size": rewritten(b'"size": ', b'"size": -'),
    "huge": lambda file: os.truncate(file, 1 << 40),
    "fifo": fifo,
    "folder": folder,
    "gone": lambda file: file.unlink(),
}


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS.keys())
def test_one_poisoned_entry_costs_no_other_and_is_moved_aside(
    store: BaselineStore, poison: Callable[[Path], object]
) -> None:
    kept = store.catalogue.entries()
    bad = store.save("main", [stored_run()]).id
    poison(store.folder / "entries" / bad / "entry.json")

    assert store.catalogue.entries() == kept
    assert store.catalogue.names() == ["main"]
    assert store.load("main", kept[0].key) is not None
    assert list(check_store(store)) == [f"entries/{bad}"]
    assert store.promote("main")[0] == kept[0]
    assert list(repair_store(store)) == [f"entries/{bad}"]
    assert check_store(store) == {}
    check_whole(store)
    assert len(list((store.folder / "damaged").iterdir())) == 1


def test_a_whole_store_has_nothing_to_repair(store: BaselineStore) -> None:
    assert check_store(store) == repair_store(store) == {}
    assert not (store.folder / "damaged").exists()


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path / ".proton")

    assert check_store(store) == repair_store(store) == {}
    assert not store.folder.exists()


def test_a_name_that_means_a_damaged_entry_means_nothing_afterwards(store: BaselineStore) -> None:
    (entry,) = store.catalogue.entries()
    (pointer,) = store.catalogue.pointer_files("main")
    (store.folder / "entries" / entry.id / "0.proton").write_bytes(b"x")

    found = repair_store(store)

    assert sorted(found) == [f"entries/{entry.id}", f"names/main/{pointer.name}"]
    assert store.catalogue.names() == []
    assert check_store(store) == {}


@pytest.mark.parametrize("content", [b"{", b"[" * 3000, b"null", b'{"schema": 1}'])
def test_a_poisoned_pointer_is_moved_aside(store: BaselineStore, content: bytes) -> None:
    (pointer,) = store.catalogue.pointer_files("main")
    pointer.write_bytes(content)

    assert list(repair_store(store)) == [f"names/main/{pointer.name}"]
    assert len(store.catalogue.entries("main")) == 1
    store.promote("main")
    check_whole(store)


@pytest.mark.parametrize("place", ["entries", "names", "staging", "lock", "names/main"])
@pytest.mark.parametrize("kind", ["link", "dangling", "fifo"])
def test_what_stands_in_the_way_is_moved_and_not_followed(
    store: BaselineStore, tmp_path: Path, place: str, kind: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_bytes(b"x")
    part = store.folder / place
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    if kind == "fifo":
        os.mkfifo(part)
    else:
        part.symlink_to(outside if kind == "link" else tmp_path / "nothing")

    assert place in check_store(store)
    assert place in repair_store(store)
    assert check_store(store) == {}
    store.save("main", [stored_run()])
    store.promote("main")
    check_whole(store)
    assert [each.name for each in outside.iterdir()] == ["mine"]
    assert not (tmp_path / "nothing").exists()


def test_damaged_places_do_not_go_through_a_link(store: BaselineStore, tmp_path: Path) -> None:
    (store.folder / "damaged").symlink_to(tmp_path)
    (store.folder / "entries" / "x").write_bytes(b"x")

    with pytest.raises(UsageError):
        repair_store(store)
    assert [each.name for each in tmp_path.iterdir()] == [".proton"]
