from __future__ import annotations

import os
from pathlib import Path

import pytest

from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.gate.history.history import (
    ACKNOWLEDGED_FILE,
    Acknowledgement,
    read_acknowledged,
    write_acknowledged,
)


def known(series: str, until_ns: int = 5) -> Acknowledgement:
    return Acknowledgement(series, ("step", "a\nb"), "median", until_ns, "me@here", 7, "abc")


def test_a_store_without_any_has_none(tmp_path: Path) -> None:
    assert read_acknowledged(tmp_path / ".proton") == {}


def test_the_acknowledgement_of_the_latest_step_counts(tmp_path: Path) -> None:
    write_acknowledged(tmp_path / ".proton", [known("a"), known("b", until_ns=9)])
    write_acknowledged(tmp_path / ".proton", [known("a", until_ns=9), known("b")])

    expected = {"a": known("a", until_ns=9), "b": known("b", until_ns=9)}
    assert read_acknowledged(tmp_path / ".proton") == expected


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema": "proton_bench.acknowledged", "version": [2, 0], "series": []}',
        b'{"schema": "proton_bench.acknowledged", "version": [1, 0], "series": [{}]}',
    ],
)
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / ACKNOWLEDGED_FILE
    file.write_bytes(content)

    with pytest.raises(ProfileFormatError, match="remove it"):
        write_acknowledged(tmp_path, [known("a")])
    assert file.read_bytes() == content


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".proton").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").symlink_to(tmp_path / "new")
    (tmp_path / ACKNOWLEDGED_FILE).symlink_to(tmp_path / "new")

    for store in (tmp_path / ".proton", tmp_path):
        with pytest.raises(UsageError, match="symbolic link"):
            write_acknowledged(store, [known("a")])
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "new").exists()


def test_a_full_disk_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_acknowledged(tmp_path, [known("a")])

    def refuse(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(OutputError):
            write_acknowledged(tmp_path, [known("b")])
    assert read_acknowledged(tmp_path) == {"a": known("a")}
