from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.histories import recorded
from fakes.stored import put

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.baselines import BaselineStore
from proton_bench.gate.history.points import Followed
from proton_bench.gate.history.sources import Sources
from proton_bench.gate.policy import Policy


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / ".proton")


def test_all_entries_of_all_baselines_are_points(store: BaselineStore) -> None:
    runs = recorded(4, {})
    entries = [store.save(name, [run]) for name, run in zip("abab", runs, strict=True)]
    store.promote("a")

    found = list(Sources.named([], store).points(Followed(Policy())))

    assert sorted((each.group, each.source) for each in found) == sorted(
        (entry.name, entry.reference) for entry in entries
    )


def test_words_name_baselines_entries_files_and_folders(
    store: BaselineStore, tmp_path: Path
) -> None:
    runs = recorded(6, {})
    store.save("a", runs[:1])
    entry = store.save("b", runs[1:2])
    store.save("b", runs[2:3])
    folder = put(tmp_path / "runs", *runs[3:5])
    file = put(tmp_path / "single", runs[5]) / "0.proton"

    found = list(
        Sources.named(["a", entry.reference, str(folder), str(file)], store).points(
            Followed(Policy())
        )
    )

    assert [(each.group, each.runs) for each in found] == [("a", 1), ("b", 1), ("", 2), ("", 1)]
    assert [each.source for each in found[1:]] == [entry.reference, str(folder), str(file)]


@pytest.mark.parametrize(
    "words", [["nothing"], ["./nothing.proton"], ["a@20260101T000000-00000000"]]
)
def test_what_is_not_there_is_an_error(words: list[str], store: BaselineStore) -> None:
    store.save("a", recorded(1, {}))

    with pytest.raises(UsageError):
        Sources.named(words, store)


def test_an_empty_store_is_an_error(store: BaselineStore) -> None:
    with pytest.raises(UsageError):
        Sources.named([], store)


def test_runs_that_were_saved_twice_count_once(store: BaselineStore) -> None:
    run = recorded(1, {})
    store.save("a", run)
    again = store.save("a", run)
    store.save("b", run)

    sources = Sources.named([], store)

    assert [each.group for each in sources.points(Followed(Policy()))] == ["a", "b"]
    assert list(sources.left_out) == [again.reference]


def test_a_run_in_several_files_counts_once(store: BaselineStore, tmp_path: Path) -> None:
    runs = [
        Run(replace(each.profile, provenance=each.profile.provenance.updated(pid=pid)), each.source)
        for pid, each in enumerate(recorded(2, {}))
    ]
    folder, copy = put(tmp_path / "runs", *runs), put(tmp_path / "copy", runs[1]) / "0.proton"

    sources = Sources.named([str(folder), str(copy)], store)

    assert [each.source for each in sources.points(Followed(Policy()))] == [str(folder)]
    assert list(sources.left_out) == [str(copy)]


def test_a_damaged_entry_is_left_out_and_named(store: BaselineStore) -> None:
    good, bad = (store.save("a", [run]) for run in recorded(2, {}))
    bad.files()[0].write_bytes(b"x")

    sources = Sources.named(["a"], store)

    assert [each.source for each in sources.points(Followed(Policy()))] == [good.reference]
    assert list(sources.left_out) == [bad.reference]


def test_a_file_that_is_named_twice_counts_once(store: BaselineStore, tmp_path: Path) -> None:
    file = put(tmp_path / "runs", *recorded(1, {})) / "0.proton"
    link = tmp_path / "link.proton"
    link.symlink_to(file)

    sources = Sources.named([str(file), str(link)], store)

    assert [each.source for each in sources.points(Followed(Policy()))] == [str(file)]
    assert list(sources.left_out) == [str(link)]
