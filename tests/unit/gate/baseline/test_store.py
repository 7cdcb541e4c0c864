from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.stored import check_whole, other_gpu, stored_profile, stored_run

from proton_bench.analysis.run import Run
from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.gate.baseline.entry import Entry
from proton_bench.gate.baseline.lock import held, is_in_use, shared
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.model.builder import ProfileBuilder
from proton_bench.support.files import Folder


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / ".proton")


def key_of_store(store: BaselineStore) -> Any:
    return store.catalogue.entries()[0].key


def test_a_saved_run_is_a_candidate_and_moves_nothing(store: BaselineStore) -> None:
    first = store.save("main", [stored_run()])
    store.promote("main")

    second = store.save("main", [stored_run(200.0)])

    assert store.catalogue.baseline("main", first.key) == first
    assert store.catalogue.entries("main") == [first, second]


def test_runs_come_back_as_they_were(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run(100.0), stored_run(300.0)])

    runs = store.catalogue.load(entry)

    assert [run.profile.columns["time (ns)"].values.sum() for run in runs] == [303.0, 903.0]
    assert runs[0].source == f"{entry.reference}/0.proton"


def test_promote_takes_the_newest_or_the_named_one(store: BaselineStore) -> None:
    first, second = (store.save("main", [stored_run(time)]) for time in (1.0, 2.0))

    assert store.promote("main") == (second, None)
    assert store.promote("main", first.id) == (first, second)
    assert store.catalogue.baseline("main", first.key) == first


def test_a_folder_in_the_place_of_a_name_is_refused(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run()])
    store.promote("main")
    pointer = store.catalogue.pointer_file("main", entry.key)
    pointer.unlink()
    pointer.mkdir()

    with pytest.raises(UsageError):
        store.promote("main")

    assert [each.name for each in pointer.parent.iterdir()] == [pointer.name]


def test_each_device_driver_and_version_has_its_own(store: BaselineStore) -> None:
    old = store.save("main", [stored_run()])
    store.promote("main")
    new = store.save("main", [stored_run(**other_gpu(driver="580"))])
    store.promote("main")

    assert store.catalogue.baseline("main", old.key) == old
    assert store.catalogue.baseline("main", new.key) == new


def test_the_closest_key_serves_if_the_machine_has_none(
    store: BaselineStore,
) -> None:
    for facts in (other_gpu(name="B200"), other_gpu(uuid="GPU-9"), other_gpu(driver="580")):
        store.promote("main", store.save("main", [stored_run(**facts)]).id)

    probe = BaselineStore(store.folder.with_name("other")).save("x", [stored_run()])
    found = store.catalogue.baseline("main", probe.key)

    assert found is not None
    assert found.key.distance(probe.key) == (0, 0, 1)


def test_without_a_promoted_entry_there_is_no_baseline(store: BaselineStore) -> None:
    store.save("main", [stored_run()])

    assert store.catalogue.baseline("main", key_of_store(store)) is None


def test_rm_of_a_name_removes_everything_of_it(store: BaselineStore) -> None:
    gone = [store.save("main", [stored_run()]).id for _ in range(2)]
    kept = store.save("other", [stored_run()])
    store.promote("main")

    assert sorted(store.remove("main")) == sorted(gone)
    assert store.catalogue.entries() == [kept]
    assert list((store.folder / "staging").iterdir()) == []


def test_rm_keeps_what_a_name_means(store: BaselineStore) -> None:
    first = store.save("main", [stored_run()])
    store.promote("main")
    second = store.save("main", [stored_run()])

    with pytest.raises(UsageError, match="main"):
        store.remove("main", first.id)
    assert store.remove("main", second.id) == [second.id]


def test_rm_of_candidates_keeps_what_the_name_means_on_every_machine(
    store: BaselineStore,
) -> None:
    kept = [
        store.promote("main", store.save("main", [stored_run(**facts)]).id)[0]
        for facts in ({}, other_gpu(driver="580"))
    ]
    gone = store.save("main", [stored_run()])
    other = store.save("other", [stored_run()])

    assert store.remove_candidates("main") == [gone.id]
    assert store.catalogue.entries() == [*kept, other]


def test_a_reader_makes_a_removal_wait(store: BaselineStore) -> None:
    store.promote("main", store.save("main", [stored_run()]).id)

    with shared(store.folder), (store.folder / "lock").open() as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert store.load("main", key_of_store(store)) is not None


def test_a_store_without_a_lock_can_be_read(store: BaselineStore) -> None:
    store.promote("main", store.save("main", [stored_run()]).id)
    (store.folder / "lock").unlink()

    assert store.load("main", key_of_store(store)) is not None


def test_an_entry_that_stands_for_another_one_is_refused(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run()])
    (store.folder / "entries" / entry.id).rename(store.folder / "entries" / "copied")

    assert list(store.catalogue.unreadable()) == ["copied"]
    assert store.catalogue.entries() == []


def test_a_name_that_is_moved_while_it_is_read_is_read_again(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.promote("main", store.save("main", [stored_run()]).id)
    second = store.save("main", [stored_run()])

    def gone_meanwhile(_: object, id: str) -> Entry | None:
        monkeypatch.undo()
        store.promote("main", second.id)
        store.remove("main", id)
        return None

    monkeypatch.setattr(type(store.catalogue), "find", gone_meanwhile)
    found = store.catalogue.promoted("main")

    assert [entry for _, entry in found] == [second]


def test_rm_takes_an_entry_that_cannot_be_read(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run()])
    (store.catalogue.folder_of(entry.id) / "entry.json").write_bytes(b"{")

    assert store.remove("main", entry.id) == [entry.id]
    assert store.catalogue.unreadable() == {}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "-x", "a b", "a\n", "a@b", "x" * 101]
)
def test_names_cannot_leave_the_store(store: BaselineStore, name: str) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(name))):
        store.save(name, [stored_run()])
    assert not store.folder.exists()


def test_an_unfinished_run_is_not_a_baseline(store: BaselineStore) -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"time (ns)": 1})

    with pytest.raises(UsageError, match=r"x\.partial\.proton"):
        store.save("main", [Run(builder.build(partial=True), "x.partial.proton")])


def test_facts_of_git_that_are_no_map_say_no_revision(store: BaselineStore) -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"time (ns)": 8})

    entry = store.save("main", [Run(builder.build(provenance={"git": ["a", 7]}), "a.proton")])

    assert entry.revision == ""


def test_a_baseline_needs_runs(store: BaselineStore) -> None:
    with pytest.raises(UsageError, match="main"):
        store.save("main", [])


@pytest.mark.parametrize("id", [None, "nothing"])
def test_what_is_not_there_is_named_with_what_is(store: BaselineStore, id: str | None) -> None:
    store.save("main", [stored_run()])

    with pytest.raises(UsageError, match=r"'other'.* main"):
        store.promote("other", id)
    with pytest.raises(UsageError, match=r"'other'.* main"):
        store.remove("other")
    with pytest.raises(UsageError, match="'nothing'"):
        store.promote("main", "nothing")


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "mkdir"])
def test_a_full_disk_leaves_the_store_as_it_was(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    kept = store.save("main", [stored_run()])
    store.promote("main")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x")

    with monkeypatch.context() as patch:
        if call == "write":
            patch.setattr("proton_bench.support.files.Folder.write", full)
        else:
            patch.setattr(os, call, full)
        with pytest.raises(OutputError, match=os.strerror(errno.ENOSPC)) as caught:
            store.save("main", [stored_run()])

    assert caught.value.exit_code == 74
    assert store.catalogue.entries() == [kept]
    assert list((store.folder / "staging").iterdir()) == []
    check_whole(store)


def test_a_full_disk_leaves_the_pointer_as_it_was(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store.save("main", [stored_run()])
    store.promote("main")
    store.save("main", [stored_run()])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="main@"):
        store.promote("main")

    assert store.catalogue.baseline("main", first.key) == first


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(OutputError, match=re.escape(str(tmp_path / "file"))):
        BaselineStore(tmp_path / "file" / "store").save("main", [stored_run()])


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-5],
        lambda content: bytes([*content[:-1], content[-1] ^ 1]),
    ],
    ids=["shorter", "changed"],
)
def test_half_written_runs_are_noticed(store: BaselineStore, damage: Any) -> None:
    entry = store.save("main", [stored_run()])
    file = store.catalogue.folder_of(entry.id) / "0.proton"
    file.write_bytes(damage(file.read_bytes()))

    with pytest.raises(ProfileFormatError, match=r"0\.proton"):
        store.catalogue.load(entry)


def test_a_run_that_is_gone_is_noticed(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run()])
    (store.catalogue.folder_of(entry.id) / "0.proton").unlink()

    with pytest.raises(ProfileFormatError, match=os.strerror(errno.ENOENT)):
        store.catalogue.load(entry)


def test_a_name_whose_entry_is_gone_is_corrupt_and_no_pass(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run()])
    store.promote("main")
    (store.catalogue.folder_of(entry.id) / "entry.json").unlink()

    with pytest.raises(ProfileFormatError, match=entry.id):
        store.catalogue.baseline("main", entry.key)
    assert store.catalogue.unreadable() == {entry.id: "entry.json is missing"}


def test_a_pointer_that_is_half_there_is_corrupt(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run()])
    store.promote("main")
    (pointer,) = store.catalogue.pointer_files("main")
    pointer.write_bytes(pointer.read_bytes()[:10])

    with pytest.raises(ProfileFormatError, match="corrupt"):
        store.catalogue.baseline("main", entry.key)


def test_what_a_killed_writer_left_is_swept_and_what_a_living_one_writes_is_not(
    store: BaselineStore,
) -> None:
    store.save("main", [stored_run()])
    staging = store.folder / "staging"
    dead, alive = "20260101T000000-00000000", "20260101T000000-00000001"
    for name in (dead, alive, "not of ours"):
        (staging / name).mkdir()
        (staging / name / "0.proton").write_bytes(b"half")
    for name in ("pointer-1", ".proton-tmp-0123456789abcdef"):
        (staging / name).write_bytes(b"{")

    with Folder.open(staging / alive) as folder:
        assert not is_in_use(folder)
        store.save("main", [stored_run()])

    assert sorted(left.name for left in staging.iterdir()) == [alive, "not of ours"]


def test_a_source_that_is_not_utf8_is_escaped(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run(source="a\udcff.proton")])

    assert store.catalogue.entry("main") == entry
    assert entry.runs[0].source == "a\\udcff.proton"


def test_a_store_that_lost_its_empty_folders_works(store: BaselineStore) -> None:
    store.promote("main", store.save("main", [stored_run()]).id)
    (store.folder / "staging").rmdir()

    assert store.remove_candidates("main") == []
    (store.folder / "staging").rmdir()
    assert len(store.remove("main")) == 1


def test_profile_of_a_git_checkout_keeps_its_revision(store: BaselineStore) -> None:
    profile = stored_profile(git={"revision": "abc123", "dirty": False})

    assert store.save("main", [Run(profile, "a")]).revision == "abc123"


def test_the_newest_entry_is_the_one_saved_last_whatever_clocks_say(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour_ns = 3600 * 10**9
    now_ns = time.time_ns()
    ids = []
    for ahead in (2, 1, 0):
        monkeypatch.setattr(time, "time_ns", lambda at=now_ns + ahead * hour_ns: at)
        ids.append(store.save("main", [stored_run()]).id)
        store.promote("main", ids[-1])

    assert [entry.id for entry in store.catalogue.entries("main")] == ids
    assert store.promote("main")[0].id == ids[-1]
    store.remove("main", ids[1])
    assert store.save("main", [stored_run()]).number == 4


def test_entries_of_earlier_versions_are_older_than_new_ones(store: BaselineStore) -> None:
    old = [store.save("main", [stored_run()]) for _ in range(2)]
    store.promote("main")
    for file in store.folder.rglob("*.json"):
        lines = file.read_text().splitlines()
        kept = [line for line in lines if '"number"' not in line]
        kept[-2] = kept[-2].rstrip(",")
        file.write_text("\n".join(kept))

    assert [entry.id for entry in store.catalogue.entries()] == [entry.id for entry in old]
    assert len(store.catalogue.promoted("main")) == 1
    new = store.save("main", [stored_run()])
    assert store.promote("main")[0] == new
    check_whole(store)


def test_a_wait_that_takes_too_long_names_the_holder(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.promote("main", store.save("main", [stored_run()]).id)
    key = key_of_store(store)
    monkeypatch.setattr("proton_bench.gate.baseline.lock.TIMEOUT_S", 0.0)

    with Folder.open(store.folder) as folder, held(folder):
        for act in (lambda: store.save("main", [stored_run()]), lambda: store.load("main", key)):
            with pytest.raises(OutputError, match=f"process {os.getpid()},"):
                act()
    with shared(store.folder), pytest.raises(OutputError, match=f"process {os.getpid()},"):
        store.promote("main")
    check_whole(store)


def test_a_holder_that_the_kernel_does_not_know_is_named_by_the_lock(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save("main", [stored_run()])
    monkeypatch.setattr("proton_bench.gate.baseline.lock.TIMEOUT_S", 0.0)
    monkeypatch.setattr("proton_bench.gate.baseline.lock._holders_of", lambda _: [])

    with (
        Folder.open(store.folder) as folder,
        held(folder),
        pytest.raises(OutputError, match=f"process {os.getpid()} of machine"),
    ):
        store.promote("main")
