"""``code_bytes`` is what Triton's interpreter moves when it runs the kernel, masks not counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench_plugins.triton.code_bytes import KernelWork

pytest.importorskip("triton")
pytest.importorskip("torch")

from fakes.memory_kernels import CONSTANTS, UNKNOWN

PROGRAM = Path(__file__).parents[2] / "fakes" / "memory_kernels.py"
Run = Callable[[str, list[int], dict[str, int]], int]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def kernels(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, KernelWork]:
    """What the code of each kernel says, compiled without a GPU."""
    made = run_on(request.param, tmp_path_factory.mktemp("cache"), PROGRAM.name, "compile")
    return {name: KernelWork(compiled(**facts)) for name, facts in made.items()}


def compiled(ttir: str, signature: dict[str, str]) -> Any:
    """Return a kernel as Triton would."""
    function = SimpleNamespace(arg_names=list(signature))
    return SimpleNamespace(
        asm={"ttir": ttir}, src=SimpleNamespace(signature=signature, fn=function)
    )


@pytest.fixture(scope="module")
def interpreted() -> Iterator[Run]:
    """Run a launch in Triton's interpreter and return the bytes that it moved."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(PROGRAM), "interpret"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PROGRAM.parents[1])},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    to, back = process.stdin, process.stdout

    def run(kernel: str, grid: list[int], integers: dict[str, int]) -> int:
        to.write(json.dumps({"kernel": kernel, "grid": grid, "integers": integers}) + "\n")
        to.flush()
        return int(back.readline())

    with process:
        yield run
        to.close()


def of_launch(
    kernels: dict[str, KernelWork], name: str, grid: list[int], integers: dict[str, int]
) -> dict[str, Any]:
    given_values = {**integers, **CONSTANTS.get(name, {}), **UNKNOWN.get(name, {})}
    names = kernels[name].names
    return kernels[name].of_launch(tuple(grid), [given_values.get(each) for each in names])


@pytest.mark.parametrize("name", CONSTANTS)
def test_it_is_what_the_interpreter_moves(
    name: str, kernels: dict[str, KernelWork], interpreted: Run
) -> None:
    @settings(max_examples=how_many(100, 6), deadline=None)
    @given(
        st.tuples(*(st.integers(1, most) for most in (4, 2, 2))).map(list),
        st.fixed_dictionaries({each: st.integers(2, 40) for each in "MNK"}),
    )
    def check(grid: list[int], integers: dict[str, int]) -> None:
        used = {each: integers[each] for each in integers if each in kernels[name].names}
        moved = interpreted(name, grid, {**used, **CONSTANTS[name]})

        assert of_launch(kernels, name, grid, used)["code_bytes"] == moved

    check()


@pytest.mark.parametrize("name", UNKNOWN)
def test_nothing_is_said_where_the_code_does_not_say_it(
    name: str, kernels: dict[str, KernelWork]
) -> None:
    assert "code_bytes" not in of_launch(kernels, name, [3], {"N": 5})


@pytest.mark.parametrize("triton", TRITONS, ids=lambda folder: folder or "installed")
def test_arguments_are_those_of_triton_launches(triton: str, tmp_path: Path) -> None:
    found = run_on(triton, tmp_path, PROGRAM.name, "launch")

    products = [4 * (passes * (16 * 16 + 16 * 32) + 16 * 32) * 4 for passes in (1, 1, 3, 4)]
    descriptors = [2 * (passes * (16 + 1) + 5) * 4 for passes in (2, 4)]
    assert found == [*products, 7 * 16 * 2 * 4, *descriptors, None, 2 * 16, 0, 2 * 16]
