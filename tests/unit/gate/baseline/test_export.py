from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from fakes.stored import stored_run

from proton_bench.analysis.run_files import read_runs
from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.gate.baseline.entry import Entry
from proton_bench.gate.baseline.export import export_entry
from proton_bench.gate.baseline.store import BaselineStore


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / ".proton")


@pytest.fixture
def entry(store: BaselineStore) -> Entry:
    return store.save("main", [stored_run(), stored_run()])


def test_runs_are_copied_to_a_folder_that_is_one_side_of_a_gate(
    store: BaselineStore, entry: Entry, tmp_path: Path
) -> None:
    files = export_entry(store.catalogue, entry, tmp_path / "deep" / "out")

    assert [file.name for file in files] == ["main-0.proton", "main-1.proton"]
    assert len(read_runs([tmp_path / "deep" / "out"])) == 2


def test_an_empty_folder_is_filled(store: BaselineStore, entry: Entry, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()

    assert len(export_entry(store.catalogue, entry, tmp_path / "out")) == 2


def test_a_folder_that_holds_something_is_left_alone(
    store: BaselineStore, entry: Entry, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")

    with pytest.raises(UsageError, match="out"):
        export_entry(store.catalogue, entry, tmp_path / "out")


def test_damaged_runs_are_not_exported(store: BaselineStore, entry: Entry, tmp_path: Path) -> None:
    (store.catalogue.folder_of(entry.id) / "1.proton").write_bytes(b"x")

    with pytest.raises(ProfileFormatError, match="damaged"):
        export_entry(store.catalogue, entry, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_leaves_nothing(
    store: BaselineStore, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(tmp_path.iterdir())

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=os.strerror(errno.ENOSPC)):
        export_entry(store.catalogue, entry, tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before
