"""Nothing outside of a store changes, whatever links it holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.stored import stored_run

from proton_bench.errors import ProtonError, UsageError
from proton_bench.gate.baseline.entry import Entry
from proton_bench.gate.baseline.export import export_entry
from proton_bench.gate.baseline.store import BaselineStore

PLACES = ("", "entries", "names", "names/main", "staging", "lock")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that looks like anything that the store could take for its own."""
    folder = tmp_path / "outside"
    (folder / "20260101T000000-00000000").mkdir(parents=True)
    (folder / "20260101T000000-00000000" / "mine").write_bytes(b"x")
    for name in ("mine", "pointer-1", ".proton-tmp-0123456789abcdef", "0123456789abcdef.json"):
        (folder / name).write_bytes(b"x")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    store = BaselineStore(tmp_path / ".proton")
    store.promote("main", store.save("main", [stored_run()]).id)
    return store


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(each.relative_to(folder)): (
            each.lstat().st_mtime_ns,
            each.read_bytes() if each.is_file() else b"",
        )
        for each in [folder, *folder.rglob("*")]
    }


def everything(store: BaselineStore, entry: Entry) -> list[Callable[[], object]]:
    """Return all that can be done to a store."""
    return [
        lambda: store.save("main", [stored_run()]),
        lambda: store.save("other", [stored_run()]),
        lambda: store.promote("main"),
        lambda: store.promote("main", entry.id),
        lambda: store.load("main", entry.key),
        lambda: export_entry(store.catalogue, entry, store.folder.with_name("copy")),
        lambda: store.remove_candidates("main"),
        lambda: store.remove("main", entry.id),
        lambda: store.remove("main"),
    ]


def exit_code(act: Callable[[], object]) -> int:
    try:
        act()
    except ProtonError as error:
        return error.exit_code
    return 0


def replace(place: Path, target: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.symlink_to(target)


@pytest.mark.parametrize("place", PLACES)
def test_a_link_is_refused_and_nothing_behind_it_changes(
    store: BaselineStore, outside: Path, place: str
) -> None:
    entry = store.catalogue.entries()[0]
    replace(store.folder / place, outside / "mine" if place == "lock" else outside)
    before = snapshot(outside)

    for act in everything(store, entry):
        assert exit_code(act) in (0, 2)  # what does not come near the link is done

    assert snapshot(outside) == before
    assert (store.folder / place).is_symlink()


@pytest.mark.parametrize("place", [each for each in PLACES if each != "names/main"])
def test_a_save_past_a_link_says_where_it_is(
    store: BaselineStore, outside: Path, place: str
) -> None:
    replace(store.folder / place, outside)

    with pytest.raises(UsageError, match="symbolic link") as caught:
        store.save("main", [stored_run()])
    assert repr(str(store.folder / place)) in str(caught.value)


@pytest.mark.parametrize("place", PLACES)
def test_a_dangling_link_makes_nothing(store: BaselineStore, tmp_path: Path, place: str) -> None:
    entry = store.catalogue.entries()[0]
    replace(store.folder / place, tmp_path / "nothing")

    for act in everything(store, entry):
        assert exit_code(act) in (0, 2)
    assert not (tmp_path / "nothing").exists()


def test_links_of_entries_and_files_are_named_and_lead_nowhere(
    store: BaselineStore, outside: Path
) -> None:
    kept = store.catalogue.entries()[0]
    one, two = (store.save("main", [stored_run()]).id for _ in range(2))
    replace(store.folder / "entries" / one, outside)
    replace(store.folder / "entries" / two / "entry.json", outside / "mine")
    (store.folder / "staging" / "20260101T000000-00000001").symlink_to(outside)
    (store.folder / "staging" / ".proton-tmp-0123456789abcdef").symlink_to(outside / "mine")
    before = snapshot(outside)

    assert sorted(store.catalogue.unreadable()) == sorted([one, two])
    assert store.catalogue.entries() == [kept]
    for id in (one, two):
        assert store.remove("main", id) == [id]
    assert store.catalogue.unreadable() == {}
    assert snapshot(outside) == before


def test_a_run_that_is_a_link_is_damaged(store: BaselineStore, tmp_path: Path) -> None:
    entry = store.catalogue.entries()[0]
    file = store.catalogue.folder_of(entry.id) / "0.proton"
    os.rename(file, tmp_path / "same content")
    file.symlink_to(tmp_path / "same content")

    with pytest.raises(ProtonError, match="symbolic link"):
        store.catalogue.load(entry)


def test_a_pointer_that_is_a_link_is_replaced_itself(store: BaselineStore, outside: Path) -> None:
    (pointer,) = store.catalogue.pointer_files("main")
    before = snapshot(outside)
    replace(pointer, outside / "mine")

    with pytest.raises(ProtonError):
        store.catalogue.promoted("main")
    store.promote("main")
    assert not pointer.is_symlink()
    assert len(store.catalogue.promoted("main")) == 1
    assert snapshot(outside) == before
