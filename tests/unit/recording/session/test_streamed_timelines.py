"""Timelines of sessions: written while they record, whole at the end."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends

import proton_bench as proton
from proton_bench import _native as native
from proton_bench import data
from proton_bench.errors import OutputError, UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import open_session

DAY_NS = 24 * 3600 * 10**9


@pytest.fixture(autouse=True)
def timeline_backend(fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = fakes.make("fake", data=("tree", "trace"))
    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", lambda text=None: (backend,))


def launch(kernel: str, stream: int = 7) -> None:
    number = native.emit_launch()
    start_ns = time.monotonic_ns()
    native.emit_kernel(number, kernel, start_ns, start_ns + 1000, "CUDA", 0, stream)


def events(path: Path, category: str) -> list[dict[str, Any]]:
    document = json.loads(path.read_text())
    return [event for event in document["traceEvents"] if event.get("cat") == category]


def test_a_kernel_has_its_scopes_and_the_file_its_time(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), data="trace")
    with proton.scope("test"):
        launch("foo")
    proton.finalize(session)

    trace = tmp_path / "x.chrome_trace"
    (kernel,) = events(trace, "kernel")
    (scope,) = events(trace, "scope")
    assert kernel["args"]["call_stack"] == ["ROOT", "test", "foo"]
    assert kernel["dur"] == 1
    assert scope["name"] == "test"
    base_ns = json.loads(trace.read_text())["baseTimeNanoseconds"]
    assert abs(time.time_ns() - base_ns) < DAY_NS
    assert [path.name for path in tmp_path.iterdir()] == ["x.chrome_trace"]


def test_values_of_scopes_stand_in_their_names(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), data="trace")
    with proton.scope("scope_1", metrics={"m1": 1.0}), proton.scope("plain"):
        launch("foo")
    proton.finalize(session)

    trace = tmp_path / "x.chrome_trace"
    (valued,) = events(trace, "metric")
    assert valued["name"] == "scope_1: <m1, 1.000000>"
    assert [scope["name"] for scope in events(trace, "scope")] == ["plain"]


def test_scopes_without_a_kernel_are_the_whole_timeline(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), data="trace")
    with proton.scope("alone", metrics={"m": 2.0}):
        pass
    proton.finalize(session)

    (scope,) = events(tmp_path / "x.chrome_trace", "metric")
    assert isinstance(scope["args"]["scope_id"], int)


def test_each_stream_has_a_row(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), data="trace")
    for stream in (7, 13):
        with proton.scope(f"stream {stream}"):
            launch("foo", stream)
    proton.finalize(session)

    rows = {kernel["tid"] for kernel in events(tmp_path / "x.chrome_trace", "kernel")}
    assert len(rows) == 2


def test_each_thread_has_a_row(tmp_path: Path) -> None:
    def work() -> None:
        with proton.scope("in thread"):
            pass

    session = proton.start(str(tmp_path / "x"), data="trace")
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with proton.scope("in main"):
        pass
    proton.finalize(session)

    rows = {scope["name"]: scope["tid"] for scope in events(tmp_path / "x.chrome_trace", "scope")}
    assert rows["in thread"] != rows["in main"]


class Hostile(threading.Thread):
    """A thread whose attributes are code of the program."""

    def __getattribute__(self, name: str) -> Any:
        if name == "_name" and threading.current_thread() is self:
            raise RuntimeError("asked by the profiler")
        return super().__getattribute__(name)


@pytest.mark.parametrize("name", ["data loader", "wörker ☃"])
def test_rows_have_the_names_of_pythons_threads(tmp_path: Path, name: str) -> None:
    def work() -> None:
        with proton.scope("in thread"):
            launch("foo")

    session = proton.start(str(tmp_path / "x"), data="trace")
    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join()
    with proton.scope("in main"):
        pass
    proton.finalize(session)

    document = json.loads((tmp_path / "x.chrome_trace").read_text())
    rows = [event["args"] for event in document["traceEvents"] if event["name"] == "thread_name"]
    found = {row["thread_name"] for row in rows if "thread_name" in row}
    assert found == {name, threading.main_thread().name}


def test_naming_a_thread_runs_no_code_of_the_program(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with proton.scope("in thread"):
                pass
        except BaseException as error:  # noqa: BLE001 - it is what must not happen
            failed.append(error)

    session = proton.start(str(tmp_path / "x"), data="trace")
    thread = Hostile(target=work)
    thread.start()
    thread.join()
    proton.finalize(session)

    assert failed == []
    assert len(events(tmp_path / "x.chrome_trace", "scope")) == 1


def test_a_scope_that_is_open_across_phases_belongs_to_the_one_in_which_it_ends(
    tmp_path: Path,
) -> None:
    session = proton.start(str(tmp_path / "x"), data="trace")
    with proton.scope("across"):
        launch("first")
        data.advance_phase(session)
        launch("second")
    proton.finalize(session)

    parts = [tmp_path / f"x.part_{number}.chrome_trace" for number in (0, 1)]
    assert [len(events(part, "scope")) for part in parts] == [0, 1]
    stacks = [events(part, "kernel")[0]["args"]["call_stack"] for part in parts]
    assert stacks == [["ROOT", "across", "first"], ["ROOT", "across", "second"]]


def test_a_scope_that_is_open_at_the_end_is_marked(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), data="trace")
    scope = proton.enter_scope("open")
    launch("foo")
    proton.finalize(session)
    assert scope is not None
    proton.exit_scope()

    (shown,) = events(tmp_path / "x.chrome_trace", "scope")
    assert shown["args"]["open"] is True
    assert len(events(tmp_path / "x.chrome_trace", "kernel")) == 1


def test_both_formats_are_written_where_the_environment_asks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTON_BENCH_TRACE_FORMATS", "chrome_trace,perfetto")
    for number, chosen in enumerate(["", "perfetto", "chrome_trace", "hatchet"]):
        session = proton.start(str(tmp_path / f"{number}"), data="trace")
        launch("foo")
        proton.finalize(session, chosen)

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0.chrome_trace",
        "0.pftrace",
        "1.pftrace",
        "2.chrome_trace",
        "3.hatchet",
    ]
    assert b"foo" in gzip.decompress((tmp_path / "1.pftrace").read_bytes())


def test_what_was_not_streamed_is_refused_and_the_session_stays(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), data="trace")

    with pytest.raises(UsageError, match="perfetto cannot be written at the end"):
        proton.finalize(session, "perfetto")

    proton.finalize(session)
    assert [path.name for path in tmp_path.iterdir()] == ["x.chrome_trace"]


def test_the_tree_of_a_trace_can_be_asked_for(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), data="trace")
    with proton.scope("test"):
        launch("foo")

    tree = data.get(session)
    assert tree[0]["children"][0]["children"][0]["frame"]["name"] == "foo"
    proton.finalize(session)


def test_the_profile_says_what_became_of_the_timeline(tmp_path: Path) -> None:
    session = open_session(SessionOptions(name=str(tmp_path / "x"), data="trace"))
    launch("foo")
    session.finalize(("proton", "chrome_trace"))

    facts = read_profile(tmp_path / "x.proton").provenance["timeline"]
    assert facts["events"] >= 1
    assert facts["lost"] == facts["waits"] == 0


def test_a_cleared_phase_takes_its_events_along(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), data="trace")
    launch("cleared")
    data.clear(session)
    launch("kept")
    proton.finalize(session)

    names = [kernel["name"] for kernel in events(tmp_path / "x.chrome_trace", "kernel")]
    assert len(names) == 1
    assert "cleared" not in (tmp_path / "x.chrome_trace").read_text()


def test_two_sessions_have_their_own_events(tmp_path: Path) -> None:
    first = proton.start(str(tmp_path / "first"), data="trace")
    launch("both")
    second = proton.start(str(tmp_path / "second"), data="trace")
    launch("both")
    proton.finalize(first)
    launch("late")
    proton.finalize(second)

    counts = [
        len(events(tmp_path / f"{name}.chrome_trace", "kernel")) for name in ("first", "second")
    ]
    assert counts == [2, 2]


def test_a_timeline_goes_to_stdout_at_the_end(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    session = proton.start("-", data="trace")
    launch("foo")
    assert capfdbinary.readouterr().out == b""
    proton.finalize(session)

    document = json.loads(capfdbinary.readouterr().out)
    assert any(event.get("cat") == "kernel" for event in document["traceEvents"])


def test_the_file_says_which_rank_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    session = proton.start(str(tmp_path / "x"), data="trace")
    proton.finalize(session)

    document = json.loads((tmp_path / "x.chrome_trace").read_text())
    assert document["distributedInfo"] == {"rank": 3, "local_rank": 1, "world_size": 4}


def test_a_timeline_that_cannot_be_written_is_an_error_and_the_tree_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTON_BENCH_NATIVE", "1")
    folder = tmp_path / "gone"
    folder.mkdir()
    session = proton.start(str(folder / "x"), data="trace")
    (folder / "x.chrome_trace").mkdir()
    launch("foo")

    with pytest.raises(OutputError, match=r"x\.chrome_trace"):
        proton.finalize(session)
    assert len(read_profile(folder / "x.proton")) == 2


def test_sessions_without_a_timeline_start_no_thread(tmp_path: Path) -> None:
    before = {path.name for path in Path("/proc/self/task").iterdir()}
    session = proton.start(str(tmp_path / "x"))
    names = {
        path.joinpath("comm").read_text().strip()
        for path in Path("/proc/self/task").iterdir()
        if path.name not in before
    }
    proton.finalize(session)

    assert "proton-writer" not in names
