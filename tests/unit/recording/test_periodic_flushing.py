"""Phases that are over are written while the program runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from capture_fixtures import FakeBackends

import proton_bench as proton
from proton_bench import _native as native
from proton_bench import data
from proton_bench.errors import OutputError, SessionError, UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.plugin.flushing import PERIODIC_FLUSHING

PATIENCE_S = 60


@pytest.fixture(autouse=True)
def flushing(fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakes.make("fake", data=("tree", "trace"))
    backend = replace(made, modes=(*made.modes, PERIODIC_FLUSHING))
    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", lambda text=None: (backend,))


def launch(kernel: str) -> None:
    now_ns = time.monotonic_ns()
    native.emit_kernel(native.emit_launch(), kernel, now_ns, now_ns + 10, "CUDA", 0, 7)


def wait_until(is_there: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < deadline_s
        native.drain()


def scopes_of_hatchet(path: Path) -> list[str]:
    tree = json.loads(path.read_text())
    return [child["frame"]["name"] for child in tree[0]["children"]]


def scopes_of_msgpack(path: Path) -> list[str]:
    tree = msgspec.msgpack.decode(path.read_bytes(), strict=False)
    return [child["frame"]["name"] for child in tree[0]["children"]]


@pytest.mark.parametrize(
    ("form", "read"), [("hatchet", scopes_of_hatchet), ("hatchet_msgpack", scopes_of_msgpack)]
)
def test_ten_phases_of_scopes_give_ten_files(
    tmp_path: Path, form: str, read: Callable[[Path], list[str]]
) -> None:
    session = proton.start(str(tmp_path / "x"), mode=f"periodic_flushing:format={form}")
    for phase in range(10):
        if phase:
            data.advance_phase(session)
        for number in range(500):
            with proton.scope(f"scope_{phase}_{number}"):
                launch("foo")
    proton.finalize(session, form)

    assert len(list(tmp_path.iterdir())) == 10
    for phase in range(10):
        expected = [f"scope_{phase}_{number}" for number in range(500)]
        assert sorted(read(tmp_path / f"x.part_{phase}.{form}")) == sorted(expected)


def test_a_phase_is_written_and_freed_while_the_session_records(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), mode="periodic_flushing")
    launch("foo")
    data.advance_phase(session)

    wait_until((tmp_path / "x.part_0.hatchet").exists)
    assert data.is_phase_complete(session, 0)
    with pytest.raises(SessionError, match="Phase 0 has no data"):
        data.get(session, 0)
    proton.finalize(session)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "x.part_0.hatchet",
        "x.part_1.hatchet",
    ]


def test_a_phase_waits_for_its_records(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), mode="periodic_flushing:format=proton")
    number = native.emit_launch()
    data.advance_phase(session)
    launch("later")
    data.advance_phase(session)
    wait_until((tmp_path / "x.part_1.proton").exists)
    assert not (tmp_path / "x.part_0.proton").exists()
    native.emit_kernel(number, "slow", 1, 11, "CUDA", 0, 7)

    wait_until((tmp_path / "x.part_0.proton").exists)
    profile = read_profile(tmp_path / "x.part_0.proton")
    assert [profile.name(row) for row in range(1, len(profile))] == ["slow"]
    proton.finalize(session)


@pytest.mark.parametrize(
    ("form", "suffix"), [("chrome_trace", "chrome_trace"), ("perfetto", "pftrace")]
)
def test_phases_of_timelines_are_files_too(tmp_path: Path, form: str, suffix: str) -> None:
    mode = f"periodic_flushing:format={form}"
    session = proton.start(str(tmp_path / "x"), data="trace", mode=mode)
    for _ in range(3):
        launch("foo")
        data.advance_phase(session)
    wait_until((tmp_path / f"x.part_2.{suffix}").exists)
    proton.finalize(session)

    files = {f"x.part_{number}.{suffix}" for number in range(4)}
    assert {path.name for path in tmp_path.iterdir()} == files


def test_without_a_second_phase_the_file_has_no_number(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), mode="periodic_flushing:format=hatchet_msgpack")
    launch("foo")
    proton.finalize(session)

    assert [path.name for path in tmp_path.iterdir()] == ["x.hatchet_msgpack"]


def test_phases_advance_by_themselves(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), mode="periodic_flushing:interval=0.01")
    launch("foo")

    first = tmp_path / "x.part_0.hatchet"
    wait_until(first.exists)
    proton.finalize(session)

    assert scopes_of_hatchet(first) == ["foo"]


def test_a_part_that_cannot_be_written_is_an_error_at_the_end(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), mode="periodic_flushing")
    (tmp_path / "x.part_0.hatchet").mkdir()
    launch("foo")
    data.advance_phase(session)
    launch("bar")

    with pytest.raises(OutputError, match=r"x\.part_0\.hatchet"):
        proton.finalize(session)
    assert scopes_of_hatchet(tmp_path / "x.part_1.hatchet") == ["bar"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "periodic_flushing:k=1"}, "FakeProfiler: unsupported option key: k"),
        ({"mode": "periodic_flushing:format=zzz"}, "FakeProfiler: unsupported format: zzz"),
        ({"mode": "periodic_flushing:interval=0"}, "FakeProfiler: unsupported interval: 0"),
        ({"mode": "foo"}, "FakeProfiler: unsupported mode: foo"),
        ({"mode": "periodic_flushing:format=chrome_trace"}, "chrome_trace needs a timeline"),
        ({"mode": "periodic_flushing+periodic_flushing"}, "twice"),
        ({"mode": "periodic_flushing", "name": "-"}, "writes a file for each phase"),
    ],
)
def test_wrong_modes_are_refused_in_upstreams_words(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        proton.start(**{"name": str(tmp_path / "x"), **options})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_the_mode_stands_beside_another_one(tmp_path: Path, fakes: FakeBackends) -> None:
    session = proton.start(str(tmp_path / "x"), mode="slow:interval=5+periodic_flushing")
    launch("foo")
    data.advance_phase(session)
    wait_until((tmp_path / "x.part_0.hatchet").exists)
    proton.finalize(session)

    assert "fake.open(slow:interval=5+periodic_flushing)" in fakes.calls


def test_two_sessions_must_agree_on_it(tmp_path: Path) -> None:
    first = proton.start(str(tmp_path / "x"), mode="periodic_flushing")

    with pytest.raises(UsageError, match="same profiler but a different mode"):
        proton.start(str(tmp_path / "y"))

    proton.finalize(first)
