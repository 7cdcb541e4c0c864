"""Lines of instructions of a real cubin, found by the real libcupti without a GPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("source_lines_program.py")


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton to compile with")
def test_the_lines_of_instructions_are_those_of_the_disassembler() -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False, env=environ
    )

    assert done.returncode == 0, done.stderr[-2000:]
    lines = json.loads(done.stdout)
    assert len(lines["expected"]) > 20
    assert len(set(lines["expected"])) > 3
    assert lines["found"] == lines["expected"]
    assert lines["unknown"] == [""]
