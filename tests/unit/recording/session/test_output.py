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
from proton_bench.errors import OutputError, UsageError
from proton_bench.recording.session import output
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.output import check_writable, library_formats, output_turn
from proton_bench.recording.session.output_format import (
    check_formats,
    chosen_trace_formats,
    default_formats,
    suffix_of,
    trace_formats_of,
)
from proton_bench.recording.session.output_name import read_name
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


VARIABLE = "PROTON_BENCH_TRACE_FORMATS"


def test_an_unknown_format_is_named_with_the_choices() -> None:
    with pytest.raises(UsageError, match="Unknown output format: csv; choose from: hatchet"):
        check_formats(["hatchet", "csv"])
    with pytest.raises(UsageError, match=r"choose from: .*chrome_trace, perfetto"):
        check_formats(["csv"], "trace")


@pytest.mark.parametrize("name", ["chrome_trace", "perfetto"])
def test_a_timeline_needs_a_session_that_keeps_one(name: str) -> None:
    check_formats([name, "proton"], "trace")
    with pytest.raises(UsageError, match=f"{name} needs a timeline: .*data='trace'"):
        check_formats([name])


def test_a_format_that_was_not_streamed_is_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=f"perfetto cannot be written at the end.*{VARIABLE}="):
        check_formats(["perfetto"], "trace", ("chrome_trace",))


def test_upstreams_formats_are_the_default() -> None:
    assert default_formats("tree") == ("hatchet",)
    assert default_formats("trace") == ("chrome_trace",)
    assert default_formats("trace", ("perfetto", "chrome_trace")) == ("perfetto", "chrome_trace")


def test_formats_of_timelines_and_of_trees_are_distinguished() -> None:
    formats = ("proton", "perfetto", "chrome_trace", "hatchet")

    assert trace_formats_of(formats, "trace") == ("perfetto", "chrome_trace")
    assert trace_formats_of(formats, "tree") == ()
    assert [suffix_of(name) for name in formats[:3]] == ["proton", "pftrace", "chrome_trace"]


def test_the_environment_names_the_formats_of_timelines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_trace_formats("perfetto") == ("perfetto",)
    monkeypatch.setenv(VARIABLE, "chrome_trace, perfetto")
    assert chosen_trace_formats("perfetto") == ("chrome_trace", "perfetto")
    monkeypatch.setenv(VARIABLE, "hatchet")
    with pytest.raises(UsageError, match=f"{VARIABLE}='hatchet' names 'hatchet'; choose from: ch"):
        chosen_trace_formats("perfetto")


def test_a_bare_name_writes_both_formats_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    output = read_name("x")

    assert output.name == str(tmp_path / "x")
    assert output.formats == ("proton", "hatchet")


@pytest.mark.parametrize("suffix", ["proton", "hatchet", "hatchet_msgpack", "chrome_trace"])
def test_a_known_suffix_writes_just_that_format(suffix: str) -> None:
    output = read_name(f"runs/x.{suffix}", folder="/data")

    assert (output.name, output.formats) == ("/data/runs/x", (suffix,))


def test_a_trace_is_written_in_the_small_format_and_printed_in_upstreams() -> None:
    assert read_name("x", data="trace").formats == ("proton", "perfetto")
    assert read_name("-", data="trace").formats == ("chrome_trace",)
    assert read_name("x.pftrace", data="trace").formats == ("perfetto",)


@pytest.mark.parametrize(
    ("mode", "data", "formats"),
    [
        ("periodic_flushing", "tree", ("hatchet",)),
        ("periodic_flushing", "trace", ("chrome_trace",)),
        ("replay:file=x+periodic_flushing:interval=1:format=proton", "tree", ("proton",)),
    ],
)
def test_all_phases_have_the_format_of_periodic_flushing(
    mode: str, data: str, formats: tuple[str, ...]
) -> None:
    assert read_name("x", data=data, mode=mode).formats == formats


def test_an_unknown_suffix_is_part_of_the_name() -> None:
    assert read_name("model.v2", folder="/data").name == "/data/model.v2"


def test_the_rank_and_the_tag_stand_before_the_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")

    assert read_name("x.proton", tag=".gw0", folder="/data").name == "/data/x.rank1.gw0"


@pytest.mark.parametrize("text", ["", "-"])
def test_stdout_gets_text(text: str) -> None:
    assert (read_name(text).name, read_name(text).formats) == (text, ("hatchet",))


@pytest.mark.parametrize("text", ["runs/", ".", "runs/.."])
def test_a_folder_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        read_name(text)
