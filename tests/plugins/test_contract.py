"""Every built-in backend passes the contract test that third parties use."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.recordings import write_recording

pytest.importorskip("proton_bench._native")

from proton_bench.plugin.contract import assert_backend_contract
from proton_bench.plugin.manager import PluginManager
from proton_bench.recording.session.session import Session, SessionOptions, open_session
from proton_bench_plugins import replay

BUILTIN = PluginManager(entry_points=False)


def session_opener(folder: Path, backend: str, mode: str = "") -> Callable[[], Session]:
    numbers = itertools.count()

    def open_one() -> Session:
        name = str(folder / f"session{next(numbers)}")
        return open_session(SessionOptions(name=name, backend=backend, mode=mode))

    return open_one


def test_the_built_in_plugins_are_whole() -> None:
    assert BUILTIN.broken == ()
    assert {"cpu", "replay"} <= set(BUILTIN.backends())


def test_cpu_keeps_the_contract(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    backend = BUILTIN.backends()["cpu"].backend

    assert_backend_contract(
        backend,
        open_session=session_opener(tmp_path, "cpu"),
        workload=lambda: torch.ones(4) + 1,
    )

    assert list(tmp_path.iterdir()) == []


def test_replay_keeps_the_contract(tmp_path: Path) -> None:
    recording = tmp_path / "stream.records"
    kernel = {
        "event": "kernel",
        "correlation_id": 1,
        "name": "matmul",
        "start_ns": 1000,
        "end_ns": 1500,
        "device_kind": "CUDA",
        "device_index": 0,
        "stream": 7,
    }
    events = [{"event": "launch", "correlation_id": 1}, kernel]
    write_recording(recording, events)
    mode = f"replay:file={recording}:pace=manual"

    assert_backend_contract(
        BUILTIN.backends()["replay"].backend,
        modes=(mode, f"replay:file={recording}"),
        open_session=session_opener(tmp_path, "replay", mode),
        workload=replay.launch,
    )

    assert list(tmp_path.iterdir()) == [recording]
