"""How the process that samples counters starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

pytest.importorskip("proton_bench._native")

from proton_bench.recording.counters.sampling_process import (
    sampling_command,
    sampling_environment,
)


def test_it_is_not_recorded_and_sees_every_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROTON_BENCH_AUTOSTART", "{}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    monkeypatch.setitem(os.environb, b"ODD", b"\xff=")

    environment = sampling_environment()

    assert b"ODD=\xff=" in environment
    names = {each.partition(b"=")[0] for each in environment}
    assert not names & {b"PROTON_BENCH_AUTOSTART", b"CUDA_VISIBLE_DEVICES"}


def test_it_ends_when_its_socket_is_closed() -> None:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(sampling_command(), stdin=theirs, stderr=subprocess.PIPE)
    theirs.close()
    ours.close()

    _, stderr = process.communicate(timeout=60)

    assert (process.returncode, stderr) == (0, b"")


def test_the_interpreter_is_the_one_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/python")

    assert sampling_command()[0] == b"/opt/python"
