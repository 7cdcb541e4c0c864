"""Lines of instructions of a real cubin, found by the real libcupti without a GPU."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("proton_bench._native")

PROGRAM = Path(__file__).with_name("source_lines_program.py")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="no Triton to compile with"
)


@pytest.fixture(scope="module")
def answer() -> Any:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def line_of(text: str) -> int:
    (found,) = (
        number
        for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
        if line.endswith(f"# {text}")
    )
    return found


def test_the_lines_of_instructions_are_those_of_the_disassembler(answer: Any) -> None:
    lines = [int(re.split("[:@]", text)[1]) for text in answer["found"]]

    assert len(lines) > 20
    assert len(set(lines)) > 3
    assert lines == answer["expected"]
    assert answer["unknown"] == [""]


def test_code_that_was_inlined_has_its_own_line(answer: Any) -> None:
    files = {text.rpartition(":")[0] for text in answer["found"]}

    assert f"{PROGRAM}:{line_of('the line of inlined code')}@rotate" in answer["found"]
    assert len(files) > 1  # tl.sum stands in a library


def test_cubins_that_are_damaged_do_no_harm_in_the_real_library(answer: Any) -> None:
    assert answer["damaged"] == 120  # the program, which is a process of its own, came so far
