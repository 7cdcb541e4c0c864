from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench.errors import OutputError
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.pytest_plugin.testrun.workers import WorkerOrders, WorkerParts, is_controller

pytest.importorskip("proton_bench._native")

from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import Session, open_session

VARIABLE, AUTOSTART = "PROTON_BENCH_WORKER", "PROTON_BENCH_AUTOSTART"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A controller's session; the environment is restored afterwards."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv(AUTOSTART, "orders for children")
    options = SessionOptions(name=tmp_path / "run", backend="cpu", command=("pytest", "-n", "2"))
    session = open_session(options)
    yield session
    session.finalize(formats=())


def node(name: str) -> Any:
    return SimpleNamespace(gateway=SimpleNamespace(id=name))


def folder_of(session: Session) -> Path:
    (folder,) = Path(session.path).parent.glob("run.parts-*")
    return folder


def part(folder: Path, worker: str) -> None:
    builder = ProfileBuilder()
    builder.add(0, f"made by {worker}", FrameKind.SCOPE)
    write_profile(builder.build(), folder / f"{worker}.proton")


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({"dist": "load", "tx": ["popen"]}, True),
        ({"dist": "load", "tx": []}, False),
        ({"dist": "no", "tx": ["popen"]}, False),
        ({}, False),
    ],
)
def test_the_controller_has_workers_and_a_way_to_distribute(
    option: dict[str, object], expected: bool
) -> None:
    config: Any = SimpleNamespace(option=SimpleNamespace(**option))

    assert is_controller(config) is expected


def test_workers_learn_how_to_record_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    WorkerParts(session, interpret=True)
    fields = json.loads(os.environ[VARIABLE])
    monkeypatch.setenv(VARIABLE, json.dumps({**fields, "controller": -1}))
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")

    orders = WorkerOrders.take()

    assert orders is not None
    assert orders.folder == str(folder_of(session))
    assert (orders.backend, orders.context, orders.mode, orders.hook) == (
        "cpu", "shadow", None, None,
    )  # fmt: skip
    assert orders.command == ("pytest", "-n", "2")
    assert orders.interpret
    assert os.environ[AUTOSTART] == "orders for children"
    assert WorkerOrders.take() is None


def test_other_children_of_the_controller_are_not_workers(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    WorkerParts(session, interpret=True)

    assert WorkerOrders.take() is None
    assert AUTOSTART not in os.environ


def test_the_controller_does_not_take_its_own_orders(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw3")  # it runs in a test of another worker
    WorkerParts(session, interpret=True)

    assert WorkerOrders.take() is None


def test_gathering_adds_the_parts_and_restores_the_environment(session: Session) -> None:
    parts = WorkerParts(session, interpret=False)
    for worker in ("gw0", "gw1"):
        parts.pytest_configure_node(node(worker))
        part(folder_of(session), worker)

    notes = parts.gather()

    profile = session.profile()
    assert notes == []
    assert [profile.name(row) for row in (1, 2)] == ["made by gw0", "made by gw1"]
    assert VARIABLE not in os.environ
    assert os.environ[AUTOSTART] == "orders for children"


def test_the_folder_goes_when_the_files_are_written(session: Session, tmp_path: Path) -> None:
    parts = WorkerParts(session, interpret=False)
    parts.pytest_configure_node(node("gw0"))
    part(folder_of(session), "gw0")

    parts.gather()
    kept_until_then = folder_of(session).exists()
    session.finalize(("proton",))

    assert kept_until_then
    assert [path.name for path in tmp_path.iterdir()] == ["run.proton"]


def test_a_worker_without_a_part_is_named_by_its_tests(session: Session) -> None:
    parts = WorkerParts(session, interpret=False)
    for worker in ("gw0", "gw1", "gw2"):
        parts.pytest_configure_node(node(worker))
    for worker, test in (("gw0", "a"), ("gw0", "a"), ("gw1", "b"), ("gw1", "c")):
        parts.pytest_runtest_logreport(SimpleNamespace(node=node(worker), nodeid=test))

    notes = parts.gather()

    assert notes == [
        "worker gw0 left no profile: 1 test missing from this one",
        "worker gw1 left no profile: 2 tests missing from this one",
    ]
    assert sum(session.profile().dropped.values()) == 3


def test_a_session_that_is_over_keeps_the_parts(session: Session) -> None:
    parts = WorkerParts(session, interpret=False)
    session.finalize(formats=())

    (note,) = parts.gather()

    assert str(folder_of(session)) in note


def test_files_of_others_keep_the_folder(session: Session) -> None:
    parts = WorkerParts(session, interpret=False)
    foreign = folder_of(session) / "notes.txt"
    foreign.write_text("mine")

    parts.gather()

    assert foreign.read_text() == "mine"


def test_without_a_place_for_the_parts_nothing_starts(session: Session, tmp_path: Path) -> None:
    session.path = str(tmp_path / "missing" / "run")

    with pytest.raises(OutputError, match="cannot make a folder for the workers' profiles"):
        WorkerParts(session, interpret=False)


def test_parts_of_a_profile_for_stdout_lie_among_temporary_files(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session.path = "-"

    WorkerParts(session, interpret=False)

    (folder,) = tmp_path.glob("proton.parts-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
