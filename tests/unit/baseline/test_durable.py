from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from proton_bench.baseline.durable import (
    is_in_use,
    kept,
    locked,
    move,
    refused,
    replace,
    write_new,
)
from proton_bench.errors import OutputError, UsageError


def test_a_file_is_written_once(tmp_path: Path) -> None:
    write_new(tmp_path / "a", b"one")

    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"


def test_replacing_leaves_no_scratch(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        replace(tmp_path / "a", content, tmp_path / "scratch")

    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"two")]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_replacing_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            replace(tmp_path / "a", b"new", tmp_path / "scratch")

    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"old")]


def test_a_folder_moves_with_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "staging").mkdir()
    write_new(tmp_path / "staging" / "a", b"one")

    move(tmp_path / "staging", tmp_path / "entry")

    assert (tmp_path / "entry" / "a").read_bytes() == b"one"
    assert not (tmp_path / "staging").exists()


def test_a_folder_is_in_use_while_it_is_held(tmp_path: Path) -> None:
    with locked(tmp_path, create=False):
        assert is_in_use(tmp_path)
    with kept(tmp_path):
        assert is_in_use(tmp_path)
    assert not is_in_use(tmp_path)


def test_what_is_not_there_is_not_held(tmp_path: Path) -> None:
    with kept(tmp_path / "lock"):
        assert not (tmp_path / "lock").exists()


def test_what_the_file_system_refuses_is_said_in_one_line() -> None:
    with (
        pytest.raises(OutputError, match=r"^cannot save x: of its own \('a\\nb'\)"),
        refused("save x"),
    ):
        raise OSError(errno.ENOSPC, "of its own", "a\nb")


@pytest.mark.parametrize("error", [OutputError("mine"), UsageError("mine")])
def test_errors_of_ours_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error), match=r"^mine$"), refused("save x"):
        raise error
