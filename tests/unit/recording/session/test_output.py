"""Places of files, and whether they can be written."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import msgspec
import pytest
from capture_fixtures import FakeBackends, read_tree

import proton_bench as proton
from proton_bench.errors import OutputError
from proton_bench.recording.session import output
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.output import check_writable, library_formats, output_turn
from proton_bench.recording.session.recording import open_session


def test_default_is_upstreams_format() -> None:
    assert library_formats("") == ("hatchet",)
    assert library_formats("hatchet_msgpack") == ("hatchet_msgpack",)


@pytest.mark.parametrize("value", ["1", "on", "True"])
def test_environment_adds_the_native_file(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_BENCH_NATIVE", value)

    assert library_formats("") == ("hatchet", "proton")
    assert library_formats("proton") == ("proton",)


def test_the_session_chooses_a_format_where_none_is_named() -> None:
    assert library_formats("", ("chrome_trace", "perfetto")) == ("chrome_trace", "perfetto")
    assert library_formats("hatchet", ("chrome_trace",)) == ("hatchet",)


def test_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "x"))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["/proc", "/proc/self/fdinfo", "/no/such/folder"])
def test_folder_that_takes_no_files_is_refused(folder: str) -> None:
    with pytest.raises(OutputError, match=r"cannot write profile .*name another one"):
        check_writable(f"{folder}/x")


@pytest.mark.parametrize("length", [215, 240, 250])
def test_a_name_too_long_for_one_of_its_files_is_refused(tmp_path: Path, length: int) -> None:
    with pytest.raises(OutputError, match=os.strerror(errno.ENAMETOOLONG)):
        check_writable(str(tmp_path / ("x" * length)))


def test_a_long_name_fits(tmp_path: Path) -> None:
    check_writable(str(tmp_path / ("x" * 200)))


def test_two_with_one_name_write_one_after_the_other(tmp_path: Path) -> None:
    order: list[str] = []

    def write(name: str) -> None:
        with output_turn(str(tmp_path / name)):
            order.append(name)

    second = threading.Thread(target=write, args=["x"])
    with output_turn(str(tmp_path / "x")):
        second.start()
        write("y")
        write("-")
    second.join()

    assert order[-1] == "x"
    assert sorted(order[:2]) == ["-", "y"]


def test_stdout_needs_no_check() -> None:
    check_writable("-")

    assert not Path("-").exists()


def test_every_format_holds_the_same_tree(tmp_path: Path, fakes: FakeBackends) -> None:
    session = open_session(SessionOptions(name=tmp_path / "x"))
    with proton.scope("a", {"flops": 2.0}):
        pass

    paths = session.finalize(("hatchet", "hatchet_msgpack", "proton", "json"))

    assert [path.name for path in paths] == [
        "x.hatchet",
        "x.hatchet_msgpack",
        "x.proton",
        "x.json",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    profiles = [proton.open_profile(path) for path in paths]
    assert [profile.inclusive("flops").tolist() for profile in profiles] == [[2.0, 2.0]] * 4


@pytest.mark.parametrize(
    ("formats", "native", "written"),
    [
        (("proton", "hatchet"), "", {"x.proton"}),
        (("hatchet",), "", {"x.hatchet"}),
        (("hatchet", "proton"), "1", {"x.proton", "x.hatchet"}),
    ],
)
def test_upstreams_file_of_many_rows_is_left_to_export(
    tmp_path: Path,
    fakes: FakeBackends,
    monkeypatch: pytest.MonkeyPatch,
    formats: tuple[str, ...],
    native: str,
    written: set[str],
) -> None:
    monkeypatch.setattr(output, "_MOST_ROWS_TWICE", 2)
    monkeypatch.setenv("PROTON_BENCH_NATIVE", native)
    session = open_session(SessionOptions(name=tmp_path / "x"))
    with proton.scope("a", {"flops": 2.0}), proton.scope("b", {"flops": 2.0}):
        pass

    session.finalize(formats)

    assert {path.name for path in tmp_path.iterdir()} == written
    said = [remark for remark in session.remarks if "proton export x.proton" in remark]
    assert len(said) == (written == {"x.proton"})


def test_phases_become_numbered_parts(tmp_path: Path, fakes: FakeBackends) -> None:
    session = open_session(SessionOptions(name=tmp_path / "x"))
    for phase in range(3):
        with proton.scope(f"scope{phase}", {"a": 1}):
            pass
        proton.data.advance_phase(session.id)
    proton.data.clear(session.id, 1)

    paths = session.finalize(("hatchet",))

    assert [path.name for path in paths] == [
        "x.part_0.hatchet",
        "x.part_2.hatchet",
        "x.part_3.hatchet",
    ]
    assert read_tree(paths[1])["children"][0]["frame"]["name"] == "scope2"


def test_stdout_gets_the_profile(
    fakes: FakeBackends, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for formats in (("hatchet",), ("hatchet_msgpack",), ("json",)):
        session = open_session(SessionOptions(name=""))
        with proton.scope("a", {"n": 1}):
            pass
        assert session.finalize(formats) == []

    written = capfdbinary.readouterr().out
    assert b'"name": "a"' in written
    assert msgspec.msgpack.encode("a") in written


def test_stdout_that_takes_only_text_gets_the_profile(
    fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[str] = []

    class TextOnly:
        def write(self, text: str) -> None:
            pieces.append(text)

        def flush(self) -> None: ...

    session = open_session(SessionOptions(name="-"))
    monkeypatch.setattr("sys.stdout", TextOnly())

    session.finalize(("hatchet",))

    assert json.loads("".join(pieces))[0]["frame"]["name"] == "ROOT"


def test_file_that_cannot_be_written_in_the_end_ends_the_session(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    session = open_session(SessionOptions(name=folder / "x"))
    folder.rmdir()

    with pytest.raises(OutputError):
        session.finalize(("hatchet",))

    assert not session.is_live
    assert fakes.calls[-1] == "fake.stop"
    assert os.listdir(tmp_path) == []
