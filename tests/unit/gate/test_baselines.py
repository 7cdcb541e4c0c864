from __future__ import annotations

import errno
import os
import re
import time
from pathlib import Path

import pytest
from fakes.stored import check_whole, other_gpu, put, stored_profile, stored_run

from proton_bench.analysis.run import Run
from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.gate.baselines import BaselineStore, read_sides, revision_of, split_reference
from proton_bench.gate.runs import read_json
from proton_bench.model.builder import ProfileBuilder


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BaselineStore:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "new", stored_run())
    return BaselineStore(tmp_path / ".proton")


def test_a_saved_run_is_a_candidate_and_promotes_nothing(store: BaselineStore) -> None:
    first = store.save("main", [stored_run()])
    assert store.promote("main") == (first, None)

    second = store.save("main", [stored_run(200.0)])

    assert store.entries("main") == [first, second]
    assert store.promoted("main") == first
    assert store.promote("main") == (second, first)
    assert store.promote("main", first.id) == (first, second)


def test_runs_come_back_as_they_were(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run(100.0), stored_run(300.0)])

    runs = entry.load()

    assert [run.profile.columns["time (ns)"].values.sum() for run in runs] == [303.0, 903.0]
    assert [run.source for run in runs] == [f"{entry.reference}/00{n}.proton" for n in (0, 1)]


def test_a_folder_of_profiles_that_a_user_put_there_is_an_entry(store: BaselineStore) -> None:
    put(store.folder / "baselines" / "main" / "mine", stored_run(), stored_run())

    assert store.promote("main", "mine")[0].reference == "main@mine"
    assert len(read_sides(["main"], ["new"], store)[0].runs) == 2


def test_a_baseline_is_removed_with_all_that_was_saved_for_it(store: BaselineStore) -> None:
    gone = [store.save("main", [stored_run()]) for _ in range(2)]
    kept = store.save("other", [stored_run()])
    store.promote("main")

    assert store.remove("main") == gone
    assert store.names() == ["other"]
    assert store.entries("other") == [kept]


def test_what_a_name_means_is_only_removed_with_the_name(store: BaselineStore) -> None:
    first, second, third = (store.save("main", [stored_run()]) for _ in range(3))
    store.promote("main", first.id)

    with pytest.raises(UsageError, match=first.id):
        store.remove("main", first.id)
    assert store.remove("main", second.id) == [second]
    assert store.remove_candidates("main") == [third]
    assert [file.name for file in (store.folder / "baselines/main").iterdir() if file.is_dir()] == [
        first.id
    ]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "-x", "a b", "a\n", "a@b", "x" * 101]
)
def test_names_cannot_leave_the_store(store: BaselineStore, name: str) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(name))):
        store.save(name, [stored_run()])
    assert not store.folder.exists()


@pytest.mark.parametrize("part", ["", "baselines", "baselines/main", "baselines/main/promoted"])
def test_links_in_the_place_of_parts_are_not_followed(
    store: BaselineStore, tmp_path: Path, part: str
) -> None:
    elsewhere = put(tmp_path / "elsewhere", stored_run())
    place = store.folder / part
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(elsewhere)

    for change in (
        lambda: store.save("main", [stored_run()]),
        lambda: store.promote("main"),
        lambda: store.remove("main"),
    ):
        with pytest.raises(UsageError, match="symbolic link"):
            change()
    assert [file.name for file in elsewhere.iterdir()] == ["0.proton"]


def test_runs_that_cannot_be_a_base_are_refused(store: BaselineStore) -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"time (ns)": 1})
    partial = Run(builder.build(partial=True), "x.partial.proton")

    for runs, message in (
        ([], "main"),
        ([partial], r"x\.partial\.proton"),
        ([stored_run(), stored_run(**other_gpu(driver="1"))], "driver"),
    ):
        with pytest.raises(UsageError, match=message):
            store.save("main", runs)


@pytest.mark.parametrize("id", [None, "nothing"])
def test_what_is_not_there_is_named_with_what_is(store: BaselineStore, id: str | None) -> None:
    store.save("main", [stored_run()])

    for act in (store.promote, store.remove, store.entry):
        with pytest.raises(UsageError, match=r"'other'.* main"):
            act("other", id)
        with pytest.raises(UsageError, match="'nothing'"):
            act("main", "nothing")


@pytest.mark.parametrize("call", ["fsync", "rename", "mkdir"])
def test_a_full_disk_leaves_the_store_as_it_was(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    kept = store.save("main", [stored_run()])

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OutputError, match=os.strerror(errno.ENOSPC)) as caught:
            store.save("main", [stored_run()])

    assert caught.value.exit_code == 74
    assert [file.name for file in (store.folder / "baselines/main").iterdir()] == [kept.id]
    check_whole(store)


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(OutputError, match=re.escape(str(tmp_path / "file"))):
        BaselineStore(tmp_path / "file" / "store").save("main", [stored_run()])


@pytest.mark.parametrize("content", [b"", b"\x88", None], ids=["empty", "damaged", "missing"])
def test_damaged_runs_are_no_pass(store: BaselineStore, content: bytes | None) -> None:
    entry = store.save("main", [stored_run()])
    (file,) = entry.files()
    file.unlink() if content is None else file.write_bytes(content)

    for read in (entry.load, entry.first_profile):
        with pytest.raises(ProfileFormatError, match=entry.id):
            read()


@pytest.mark.parametrize("content", [b"", b"\xff", b"20260101T000000-00000000"])
def test_a_name_whose_entry_is_gone_is_no_pass(store: BaselineStore, content: bytes) -> None:
    store.save("main", [stored_run()])
    store.promote("main")
    (store.folder / "baselines/main/promoted").write_bytes(content)

    with pytest.raises(ProfileFormatError, match="promote another"):
        store.promoted("main")
    assert store.promote("main")[1] is None


@pytest.mark.parametrize(
    ("git", "revision"), [({"revision": "abc123", "dirty": False}, "abc123"), (["a", 7], "")]
)
def test_the_revision_is_what_was_checked_out(git: object, revision: str) -> None:
    assert revision_of(stored_profile(git=git)) == revision


def test_an_entry_can_be_named_whether_or_not_it_was_promoted(store: BaselineStore) -> None:
    entry = store.save("main", [stored_run(), stored_run()])

    base, new = read_sides([entry.reference], [f"baseline:{entry.reference}"], store)

    assert [len(base.runs), len(new.runs)] == [2, 2]


def test_files_folders_and_names_can_stand_side_by_side(store: BaselineStore) -> None:
    store.save("main", [stored_run()])
    store.promote("main")

    base, _ = read_sides(["main", "new/0.proton"], ["new"], store)

    assert len(base.runs) == 2


def test_an_empty_word_is_not_the_current_folder(store: BaselineStore) -> None:
    for base, new in ((["", "new"], ["new"]), (["new"], [""])):
        with pytest.raises(UsageError, match="is a variable unset"):
            read_sides(base, new, store)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("gone", "there is no file, folder or baseline 'gone'"),
        ("gone/x.proton", "there is no file, folder or baseline 'gone/x.proton'"),
        ("baseline:gone", "has no baseline 'gone'; there are: saved"),
        ("saved", "nothing was promoted to be baseline saved"),
        ("saved@gone", "baseline saved has no entry 'gone'"),
        ("empty", "there is no run in 'empty'"),
    ],
)
def test_a_missing_base_is_reported_and_not_raised(
    store: BaselineStore, tmp_path: Path, word: str, reason: str
) -> None:
    (tmp_path / "empty").mkdir()
    store.save("saved", [stored_run()])

    base, _ = read_sides([word], ["new"], store)

    assert base.runs == ()
    assert reason in base.missing


def test_a_base_that_is_missing_in_part_is_missing(store: BaselineStore) -> None:
    base, _ = read_sides(["new", "gone"], ["new"], store)

    assert (base.runs, "gone" in base.missing) == ((), True)


@pytest.mark.parametrize("word", ["gone", "baseline:gone", "empty"])
def test_a_missing_new_run_is_wrong_usage(store: BaselineStore, tmp_path: Path, word: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(UsageError, match=r"gone|empty"):
        read_sides(["new"], [word], store)


def test_a_word_that_means_two_things_is_refused(store: BaselineStore) -> None:
    store.save("new", [stored_run()])

    with pytest.raises(UsageError, match=r"\./new .*baseline:new"):
        read_sides(["new"], ["./new"], store)


@pytest.mark.parametrize("text", ["", "@x", "a@", "a/b", "a@b/c", "-a", "a@../x"])
def test_other_words_are_not_references(text: str) -> None:
    with pytest.raises(UsageError, match="NAME@ID"):
        split_reference(text)


def test_a_reference_splits_at_its_mark() -> None:
    assert split_reference("main") == ("main", None)
    assert split_reference("baseline:main@20260101-x") == ("main", "20260101-x")


def test_an_entry_was_saved_when_its_name_says(store: BaselineStore) -> None:
    before_ns = time.time_ns()
    entry = store.save("main", [stored_run()])
    after_ns = time.time_ns()

    os.utime(entry.folder, (0, 0))

    assert before_ns - 10 <= entry.created_ns <= after_ns


@pytest.mark.parametrize("content", [b"", b"\xff", b'{"a": "\xff"}', b"[" * 100_000, b"{} {}"])
def test_what_is_not_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)

    with pytest.raises(ProfileFormatError, match="JSON"):
        read_json(tmp_path / "a.json")
