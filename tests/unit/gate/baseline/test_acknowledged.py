from __future__ import annotations

import os
from multiprocessing import get_context
from pathlib import Path

import pytest
from fakes.stored import check_whole, stored_run

from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.gate.baseline.catalogue import ACKNOWLEDGED_FILE
from proton_bench.gate.baseline.entry import (
    Acknowledgement,
    Acknowledgements,
    decode_acknowledgements,
)
from proton_bench.gate.baseline.store import BaselineStore


def known(series: str, until_ns: int = 5) -> Acknowledgement:
    return Acknowledgement(series, ("step", "a\nb"), "median", until_ns, "me@here", 7, "abc")


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / ".proton")


def test_a_store_without_any_has_none(store: BaselineStore) -> None:
    assert store.catalogue.acknowledged() == Acknowledgements()


def test_the_last_acknowledgement_of_a_series_counts(store: BaselineStore) -> None:
    store.acknowledge([known("a"), known("b")])
    store.acknowledge([known("a", until_ns=9)])

    found = store.catalogue.acknowledged().by_series()

    assert found == {"a": known("a", until_ns=9), "b": known("b")}


def test_an_earlier_step_does_not_replace_a_later_one(store: BaselineStore) -> None:
    store.acknowledge([known("a", until_ns=9)])
    store.acknowledge([known("a", until_ns=5)])

    assert store.catalogue.acknowledged().by_series() == {"a": known("a", until_ns=9)}


def test_what_is_written_is_read_back() -> None:
    written = Acknowledgements((known("a"), known("b")))

    assert decode_acknowledgements(written.encoded(), "file") == written


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema": "proton_bench.acknowledged", "version": [2, 0], "series": []}',
        b'{"schema": "proton_bench.acknowledged", "version": [1, 0], "series": [{}]}',
        Acknowledgements((known("a", until_ns=-1),)).encoded(),
        Acknowledgements((known("a"),)).encoded()[:-9],
    ],
)
def test_a_damaged_file_is_named_and_left_alone(store: BaselineStore, content: bytes) -> None:
    store.save("main", [stored_run()])
    file = store.folder / ACKNOWLEDGED_FILE
    file.write_bytes(content)

    with pytest.raises(ProfileFormatError, match="remove it"):
        store.catalogue.acknowledged()
    with pytest.raises(ProfileFormatError):
        store.acknowledge([known("a")])
    assert file.read_bytes() == content
    check_whole(store)


def test_a_link_is_not_followed(store: BaselineStore, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(Acknowledgements((known("a"),)).encoded())
    store.save("main", [stored_run()])
    (store.folder / ACKNOWLEDGED_FILE).symlink_to(other)

    with pytest.raises(ProfileFormatError):
        store.catalogue.acknowledged()


def test_a_store_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".proton").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UsageError):
        BaselineStore(tmp_path / ".proton").acknowledge([known("a")])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_full_disk_leaves_the_file_as_it_was(
    store: BaselineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.acknowledge([known("a")])

    def refuse(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(OutputError):
            store.acknowledge([known("b")])
    assert store.catalogue.acknowledged().by_series() == {"a": known("a")}


def _acknowledge(folder: Path, series: str) -> None:
    BaselineStore(folder).acknowledge([known(series)])


def test_processes_at_once_lose_nothing(store: BaselineStore) -> None:
    context = get_context("spawn")
    names = [f"series{number}" for number in range(3)]
    workers = [context.Process(target=_acknowledge, args=(store.folder, name)) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert set(store.catalogue.acknowledged().by_series()) == set(names)
