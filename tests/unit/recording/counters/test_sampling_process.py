"""How the process that samples counters starts and ends."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from proton_bench.errors import BackendUnavailableError
from proton_bench.recording.counters.sampling_process import SamplingProcess


def ended() -> tuple[int, dict[str, str]]:
    """Return the code of a process whose socket is closed, and its environment."""
    process = SamplingProcess()
    while not (started := Path(f"/proc/{process.number}/environ").read_bytes()):
        pass  # the kernel is not done with it yet
    socket.socket(fileno=process.socket).close()
    pairs = (pair.partition(b"=") for pair in started.split(b"\0"))
    return process.end(), {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}


def test_it_sees_every_gpu_and_no_other_tool_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/tool.so")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    monkeypatch.setitem(os.environb, b"ODD", b"\xff=")

    code, environment = ended()

    assert code == 0
    assert environment["ODD"] == os.fsdecode(b"\xff=")
    assert not environment.keys() & {"CUDA_INJECTION64_PATH", "CUDA_VISIBLE_DEVICES"}


def test_it_loads_nothing_from_folders_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sitecustomize", "usercustomize", "proton_bench", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PROTON_BENCH_AUTOSTART", "{")

    assert ended()[0] == 0


@pytest.mark.parametrize("executable", [None, "", "/usr/bin/uwsgi", "/does/not/exist/python"])
def test_without_an_interpreter_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    monkeypatch.setattr(sys, "executable", executable)

    with pytest.raises(BackendUnavailableError, match="counters=gpm"):
        SamplingProcess()


def test_a_frozen_program_has_no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    with pytest.raises(BackendUnavailableError, match="not a Python interpreter"):
        SamplingProcess()
