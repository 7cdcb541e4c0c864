"""How the process that samples counters starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from proton_bench.recording.counters.sampling_process import (
    sampling_command,
    sampling_environment,
)


def test_it_sees_every_gpu_and_no_other_tool_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/tool.so")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    monkeypatch.setitem(os.environb, b"ODD", b"\xff=")

    environment = sampling_environment()

    assert b"ODD=\xff=" in environment
    names = {each.partition(b"=")[0] for each in environment}
    assert not names & {b"CUDA_INJECTION64_PATH", b"CUDA_VISIBLE_DEVICES"}


def ended(**more: str) -> tuple[int, bytes]:
    """Return the code and the errors of a process whose socket is closed."""
    ours, theirs = socket.socketpair()
    ours.close()
    with (
        theirs,
        subprocess.Popen(
            [os.fsdecode(word) for word in sampling_command()],
            stdin=theirs.fileno(),
            stderr=subprocess.PIPE,
            env={**os.environ, **more},
        ) as process,
    ):
        _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr


def test_it_ends_when_its_socket_is_closed() -> None:
    assert ended() == (0, b"")


def test_it_loads_nothing_from_folders_of_the_program(tmp_path: Path) -> None:
    for name in ("sitecustomize", "usercustomize", "proton_bench", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)\n", encoding="utf-8")

    assert ended(PYTHONPATH=str(tmp_path), PROTON_BENCH_AUTOSTART="{") == (0, b"")


def test_the_interpreter_is_the_one_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/python")

    assert sampling_command()[0] == b"/opt/python"


@pytest.mark.parametrize("executable", [None, "", "/usr/bin/uwsgi"])
def test_a_program_that_embeds_python_has_no_interpreter(
    monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    monkeypatch.setattr(sys, "executable", executable)

    assert sampling_command() == []


def test_a_frozen_program_has_no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    assert sampling_command() == []
