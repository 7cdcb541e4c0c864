"""How the process that evaluates counters starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

pytest.importorskip("proton_bench._native")

from proton_bench.recording.counters.evaluator import evaluator_command, evaluator_environment


def test_it_is_not_recorded_and_keeps_the_rest_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROTON_BENCH_AUTOSTART", "{}")
    monkeypatch.setitem(os.environb, b"ODD", b"\xff=")

    environment = evaluator_environment()

    assert b"ODD=\xff=" in environment
    assert not [each for each in environment if each.startswith(b"PROTON_BENCH_AUTOSTART=")]


def test_it_ends_when_its_socket_is_closed() -> None:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(evaluator_command(), stdin=theirs, stderr=subprocess.PIPE)
    theirs.close()
    ours.close()

    _, stderr = process.communicate(timeout=60)

    assert (process.returncode, stderr) == (0, b"")


def test_the_interpreter_is_the_one_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/python")

    assert evaluator_command()[0] == b"/opt/python"
