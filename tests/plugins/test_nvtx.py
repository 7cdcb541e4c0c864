"""Scopes as NVTX ranges for a tool that receives them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

PROGRAM = """
import threading
import proton_bench as proton
proton.start("out", backend="cpu")
with proton.scope("outer"):
    with proton.scope("inner \\u00e4"):
        pass
    proton.enter_scope("entered")
    other = threading.Thread(target=proton.scope("thread").__enter__)
    other.start()
    other.join()
proton.finalize()
with proton.scope("after"):
    pass
second = proton.start("second", backend="cpu")
with proton.scope("second"):
    pass
proton.finalize(second)
"""


def run(tool: Path | str, tmp_path: Path, **variables: str) -> tuple[list[str], str]:
    """Return what the tool received and what the program printed."""
    import os

    log = tmp_path / "log"
    environment = {
        **os.environ,
        "PROTON_BENCH_NVTX_SCOPES": "1",
        "NVTX_INJECTION64_PATH": str(tool),
        "FAKE_NVTX_LOG": str(log),
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return log.read_text().splitlines() if log.exists() else [], done.stderr


def test_a_tool_hears_scopes_as_ranges(cupti_doubles: Doubles, tmp_path: Path) -> None:
    heard, said = run(cupti_doubles.nvtx_tool, tmp_path)

    assert heard == [
        *("push outer", "push inner ä", "pop", "push entered", "push thread", "pop", "pop"),
        *("push second", "pop"),
    ]
    assert said == ""


def test_no_range_is_sent_unless_asked_for(cupti_doubles: Doubles, tmp_path: Path) -> None:
    heard, said = run(cupti_doubles.nvtx_tool, tmp_path, PROTON_BENCH_NVTX_SCOPES="0")

    assert (heard, said) == ([], "")


@pytest.mark.parametrize("tool", ["", "libcupti.so", "/nowhere/tool.so"])
def test_without_a_receiver_it_is_said(tool: str, cupti_doubles: Doubles, tmp_path: Path) -> None:
    path = cupti_doubles.cupti if tool == "libcupti.so" else tool

    heard, said = run(path, tmp_path)

    assert heard == []
    assert said.count("no tool receives NVTX ranges") == 2  # once a session
    assert f"(now {path or 'not set'})" in said


def test_a_tool_that_wants_nothing_is_ignored(cupti_doubles: Doubles, tmp_path: Path) -> None:
    heard, said = run(cupti_doubles.nvtx_tool, tmp_path, FAKE_NVTX_REFUSES="1")

    assert heard == []
    assert "no tool receives NVTX ranges" in said
