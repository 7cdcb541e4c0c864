from __future__ import annotations

from pathlib import Path

import pytest
from fakes.stored import other_gpu, put, stored_run

from proton_bench.errors import UsageError
from proton_bench.gate.baseline.reference import read_sides, split_reference
from proton_bench.gate.baseline.store import BaselineStore


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BaselineStore:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "new", stored_run())
    return BaselineStore(tmp_path / ".proton")


def test_a_name_is_what_was_promoted_for_the_machine_of_the_new_runs(store: BaselineStore) -> None:
    for facts in ({}, other_gpu(name="B200", uuid="GPU-2")):
        store.promote("main", store.save("main", [stored_run(**facts)]).id)

    base, _ = read_sides(["main"], ["new"], store)

    (gpu,) = base.runs[0].profile.provenance["gpus_at_start"]
    assert gpu["name"] == "NVIDIA H200"


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
