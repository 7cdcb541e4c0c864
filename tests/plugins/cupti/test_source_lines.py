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
    innermost = [int(re.split("[:@]", chain[-1])[1]) for chain in answer["found"]]

    assert len(innermost) > 20
    assert len(set(innermost)) > 3
    assert innermost == answer["expected"]
    assert answer["unknown"] == [[]]


def test_inlined_code_stands_below_the_line_that_called_it(answer: Any) -> None:
    """Before Triton 3.9 the PTX tells it, later the cubin itself."""
    innermost, middle, kernel = (
        f"{PROGRAM}:{line_of(text)}@rotate"
        for text in ("the innermost line", "the line in the middle", "the line in the kernel")
    )

    assert [kernel, middle, innermost] in answer["found"]
    assert {chain[0].rpartition(":")[0] for chain in answer["found"]} == {str(PROGRAM)}
    library = [chain for chain in answer["found"] if "standard.py" in chain[-1]]
    assert library  # tl.sum
    assert {len(chain) for chain in library} >= {2}


def test_the_line_itself_is_the_same_with_and_without_what_called_it(answer: Any) -> None:
    assert [chain[-1] for chain in answer["bare"]] == [chain[-1] for chain in answer["found"]]


def test_where_the_source_is_not_known_lines_of_the_ptx_stand_in(answer: Any) -> None:
    places = {chain[-1] for chain in answer["stripped"]}

    assert {len(chain) for chain in answer["stripped"]} == {1}
    numbers = [re.fullmatch(r"rotate\.ptx:(\d+)@rotate", place) for place in places]
    assert len(numbers) > 20
    assert all(each and 0 < int(each[1]) <= answer["ptx_lines"] for each in numbers)


def test_cubins_that_are_damaged_do_no_harm_in_the_real_library(answer: Any) -> None:
    assert answer["damaged"] == 120  # the program, which is a process of its own, came so far
