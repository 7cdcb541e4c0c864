from __future__ import annotations

import os
from pathlib import Path

import pytest
from fakes.stored import put, stored_run

from proton_bench.errors import UsageError
from proton_bench.store.adding.spool import Spool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / "node1/run", stored_run(100.0))
    return tmp_path


def names(files: list[Path]) -> list[str]:
    return [file.name for file in files]


def test_a_file_is_taken_once_at_the_second_look(folder: Path) -> None:
    spool = Spool(folder)

    assert [len(spool.take()) for _ in range(4)] == [0, 1, 0, 0]


def test_a_file_that_grows_is_left_until_it_stays(folder: Path) -> None:
    spool, growing = Spool(folder), folder / "trace.hatchet"
    spool.take()
    for size in range(1, 4):
        growing.write_bytes(b"x" * size)
        assert growing.name not in names(spool.take())

    assert names(spool.take()) == [growing.name]


def test_a_replaced_file_is_taken_again(folder: Path) -> None:
    spool, file = Spool(folder), next(folder.rglob("*.proton"))
    assert [spool.take(), spool.take()] == [[], [file]]
    other = file.with_name("other")
    other.write_bytes(b"other content")
    os.replace(other, file)

    assert [spool.take(), spool.take(), spool.take()] == [[], [file], []]


def test_files_of_running_writers_are_left(folder: Path) -> None:
    spool, file = Spool(folder), next(folder.rglob("*.proton"))
    for name in ("run.partial.proton", ".proton-tmp-0123456789abcdef", "notes.txt"):
        file.with_name(name).write_bytes(file.read_bytes())
    spool.take()

    assert spool.take() == [file]


def test_a_spool_is_a_folder(folder: Path) -> None:
    with pytest.raises(UsageError):
        Spool(folder / "nowhere")
