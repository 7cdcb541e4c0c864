from __future__ import annotations

import errno
import multiprocessing
import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from proton_bench.errors import OutputError, UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.gate.policy import read_policy
from proton_bench.support import inputs, streams
from proton_bench.support.files import (
    opened_output,
    refused,
    remove_files,
    write_file,
)

WRITERS, WRITES = 8, 20


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_a_file_is_replaced_and_no_scratch_is_left(tmp_path: Path) -> None:
    for content in (b"one", "tw\udcff"):
        write_file(tmp_path / "a", content)

    assert contents(tmp_path) == {"a": b"tw\\udcff"}


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_full_disk_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "a.proton").write_bytes(b"old")
    (tmp_path / "a.partial.proton").write_bytes(b"the only record")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OutputError) as caught:
            write_file(tmp_path / "a.proton", b"new")

    assert caught.value.exit_code == 74
    assert contents(tmp_path) == {"a.proton": b"old", "a.partial.proton": b"the only record"}


def test_a_block_that_fails_writes_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with opened_output(tmp_path / "a") as stream:
            stream.write(b"half")
            raise UsageError("not so")

    with pytest.raises(UsageError):
        fail()

    assert contents(tmp_path) == {}


def test_a_link_that_a_user_names_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")

    write_file(tmp_path / "a", b"x")

    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "b").read_bytes() == b"x"


def test_devices_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    write_file(tmp_path / "null", b"x")

    with pytest.raises(OutputError):
        write_file(Path("/dev/full"), b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_pipe_gets_the_bytes_and_one_without_a_reader_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(streams, "_READER_WAIT_S", 0.0)
    with pytest.raises(OutputError, match="nothing reads"):
        write_file(tmp_path / "pipe", b"x")

    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_file(tmp_path / "pipe", b"x")
    got = os.read(reader, 9)
    os.close(reader)

    assert got == b"x"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("name", ["", "folder", "a\0b", "missing/a", "x" * 300, "loop"])
def test_what_cannot_be_written_is_an_error_of_ours(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(OutputError):
        write_file(tmp_path / name, b"x")


def test_the_longest_names_can_be_written(tmp_path: Path) -> None:
    write_file(tmp_path / ("x" * 255), b"x")

    assert len(list(tmp_path.iterdir())) == 1


def _write_often(file: str, letter: str) -> None:
    for _ in range(WRITES):
        write_file(Path(file), letter.encode() * 50_000)


def test_many_writers_of_one_name_leave_whole_files_only(tmp_path: Path) -> None:
    file = tmp_path / "a"
    write_file(file, b"0" * 50_000)
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_write_often, args=(str(file), letter))
        for letter in "abcdefgh"[:WRITERS]
    ]
    for writer in writers:
        writer.start()

    torn = 0
    while any(writer.is_alive() for writer in writers):
        seen = file.read_bytes()
        torn += len(seen) != 50_000 or len(set(seen)) != 1
    for writer in writers:
        writer.join()

    assert ([writer.exitcode for writer in writers], torn) == ([0] * WRITERS, 0)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_files_are_removed_by_their_names_and_nothing_behind_links(tmp_path: Path) -> None:
    outside, place = tmp_path / "outside", tmp_path / "in"
    for each in ("outside/mine", "in/deep/a", "in/deep/kept", "in/b", "in/folder/c"):
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).write_bytes(b"x")
    (place / "link").symlink_to(outside)
    (place / "deep" / "to_file").symlink_to(outside / "mine")

    named = ["deep/a", "b", "folder", "gone", "gone/a", "b/a", "link/mine", "deep/to_file"]
    escaping = ["../outside/mine", str(outside / "mine"), "deep/../../outside/mine", "", ".", "/"]
    remove_files(place, [*named, *escaping])

    left = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if is_file(each))
    assert left == ["in/deep/kept", "in/folder/c", "outside/mine"]
    assert (place / "link").is_symlink()
    assert not (place / "deep" / "to_file").is_symlink()


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


def test_a_pipe_without_a_writer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_PIPE_WAIT_MS", 1)
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(UsageError, match="a pipe without a writer"):
        read_profile(tmp_path / "pipe")
    with pytest.raises(UsageError, match="a pipe without a writer"):
        read_policy(tmp_path / "pipe")


@pytest.mark.parametrize("form", ["/dev/fd/{}", "/proc/self/fd/{}", "link", "/dev/stdout"])
def test_a_descriptor_is_written_to_where_it_stands(tmp_path: Path, form: str) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"before\n")
    handle = os.open(log, os.O_WRONLY | os.O_APPEND)
    stdout = os.dup(1)
    try:
        if form == "link":
            (tmp_path / "link").symlink_to(f"/dev/fd/{handle}")
            write_file(tmp_path / "link", b"x\n")
        elif form == "/dev/stdout":
            os.dup2(handle, 1)
            write_file(Path(form), b"x\n")
        else:
            write_file(Path(form.format(handle)), b"x\n")
        os.write(handle, b"after\n")
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(handle)

    assert log.read_bytes() == b"before\nx\nafter\n"
    assert not list(tmp_path.glob(".proton-tmp-*"))


def test_a_descriptor_of_another_process_is_added_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"before\n")
    with log.open("ab") as stream:
        other = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=stream)
    with other:
        write_file(Path(f"/proc/{other.pid}/fd/1"), b"x\n")

    assert log.read_bytes() == b"before\nx\n"


def test_a_descriptor_that_is_only_read_or_closed_is_an_error(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OutputError):
        write_file(Path(f"/dev/fd/{handle}"), b"x")
    os.close(handle)

    with pytest.raises(OutputError):
        write_file(Path(f"/dev/fd/{handle}"), b"x")


def test_errors_of_the_block_are_not_blamed_on_the_output(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def fail(name: str, error: Exception) -> None:
        with opened_output(tmp_path / name) as stream:
            stream.write(b"half")
            raise error

    for name in ("a", "pipe"):
        for error in (OSError(errno.EIO, "the input"), ValueError("the input")):
            with pytest.raises(type(error), match="the input") as caught:
                fail(name, error)
            assert caught.value is error
    os.close(reader)

    assert contents_but_pipes(tmp_path) == {}


def contents_but_pipes(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if not each.is_fifo()}


def test_a_write_that_fails_in_the_block_is_blamed_on_the_output() -> None:
    def fail() -> None:
        with opened_output(Path("/dev/full")) as stream:
            stream.write(b"x" * 100_000)
            raise AssertionError("it was written")

    with pytest.raises(OutputError, match="/dev/full"):
        fail()


def test_a_pipe_whose_reader_stops_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_ROOM_WAIT_MS", 1)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    with pytest.raises(OutputError, match="stopped reading") as caught:
        write_file(tmp_path / "pipe", b"x" * (1 << 21))

    os.close(reader)
    assert caught.value.exit_code == 74


def test_a_pipe_whose_reader_is_slow_gets_everything(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reading = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reading.start()

    write_file(tmp_path / "pipe", b"x" * (1 << 21))
    reading.join()

    assert len(got[0]) == 1 << 21


@pytest.mark.parametrize("content", ["\x1b[31mä\x9b\n", b"\x1b\xff\n"])
def test_a_terminal_gets_no_control_characters(content: bytes | str) -> None:
    ours, theirs = os.openpty()
    write_file(Path(os.ttyname(theirs)), content)
    write_file(Path(f"/dev/fd/{theirs}"), content)
    shown = b""
    while shown.count(b"\n") < 2:
        shown += os.read(ours, 1000)
    os.close(theirs)
    os.close(ours)

    assert len(shown.splitlines()) == 2
    assert not {0x1B, 0x9B, 0xFF} & {ord(each) for each in shown.decode()}
