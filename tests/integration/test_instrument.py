"""``--instrument`` from the command line and pytest, on kernels that the interpreter runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from integration.outputs import paths

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")
pytest.importorskip("torch")
pytest.importorskip("triton")

HIDDEN = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
KERNELS = """\
import torch
import triton
import triton.language as tl

@triton.jit
def twice(x):
    return tl.load(x) * 2

@triton.jit
def reduce_rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(n):
        total += tl.load(x + row * BLOCK + at) + tl.load(y + at)
        for _ in tl.static_range(2):
            total += twice(y + at)
    while n > 0:
        n -= 1
    tl.store(y + at, total, mask=at < BLOCK)

@triton.jit
def multiply(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    block = at[:, None] * N + at[None, :]
    tl.store(y + block, tl.dot(tl.load(x + block), tl.load(x + block)))

def run():
    x, y, z = torch.rand(4, 16), torch.rand(16), torch.rand(16, 16)
    reduce_rows[(2,)](x, y, 4, BLOCK=16)
    multiply[(1,)](z, torch.empty(16, 16), N=16)
"""
LINES = {text.strip(): number for number, text in enumerate(KERNELS.splitlines(), start=1)}
LOOP = f"loop.0@work.py:{LINES['for row in range(n):']}"
LOAD = LINES["total += tl.load(x + row * BLOCK + at) + tl.load(y + at)"]
TWICE = LINES["return tl.load(x) * 2"]
WHILE = f"loop.1@work.py:{LINES['while n > 0:']}"
MULTIPLY = LINES["tl.store(y + block, tl.dot(tl.load(x + block), tl.load(x + block)))"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_program(tmp_path)
    return tmp_path


def write_program(folder: Path) -> None:
    (folder / "work.py").write_text(KERNELS + "\nif __name__ == '__main__':\n    run()\n")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with loops, loads and dots."""
    folder = tmp_path_factory.mktemp("recorded")
    write_program(folder)
    done = proton(folder, "--instrument=loops,loads,dots", "work.py")
    assert done.returncode == 0, done.stderr
    return folder


def proton(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-m", "proton_bench", *words],
        cwd=folder,
        env=clean | HIDDEN | {"PROTON_BENCH_QUIET": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def below_kernel(folder: Path, kernel: str, name: str = "work") -> list[tuple[str, ...]]:
    found = paths(folder / f"{name}.proton")
    return [path[path.index(kernel) + 1 :] for path in found if kernel in path[:-1]]


def test_operations_of_interpreted_kernels_stand_below_them_with_their_lines(
    recorded: Path,
) -> None:
    assert below_kernel(recorded, "reduce_rows") == [
        (LOOP,),
        (LOOP, f"load.0@work.py:{LOAD}"),
        (LOOP, f"load.1@work.py:{LOAD}"),
        (LOOP, f"load.2@work.py:{TWICE}"),
        (WHILE,),
    ]
    assert below_kernel(recorded, "multiply") == [
        (f"load.0@work.py:{MULTIPLY}",),
        (f"load.1@work.py:{MULTIPLY}",),
        (f"dot.0@work.py:{MULTIPLY}",),
    ]
    profile = read_profile(recorded / "work.proton")
    wall = profile.column("wall (ns)")
    loads = [row for row in range(1, len(profile)) if profile.path(row)[-1].startswith("load.")]
    assert len(loads) == 5
    assert all((wall.get(row) or 0) > 0 for row in loads)


def test_screens_show_each_scope_of_an_interpreted_kernel_with_its_time(recorded: Path) -> None:
    shown = proton(recorded, "view", "work.proton").stdout

    lines = {line.split()[-1]: line.split()[0] for line in shown.splitlines() if "@work.py" in line}
    assert {name.partition(".")[0] for name in lines} == {"loop", "load", "dot"}
    assert all(float(first.replace(",", "")) >= 0 for first in lines.values())


def test_scopes_of_the_source_end_with_the_loop_that_a_pass_brackets(folder: Path) -> None:
    (folder / "leaks.py").write_text(
        """\
import torch
import triton
import triton.language as tl
import proton_bench.language as pl

@triton.jit
def leaky(x, N: tl.constexpr):
    for i in range(N):
        pl.enter_scope("in loop")
        tl.store(x + i, 1.0)
    pl.enter_scope("at end")

leaky[(2,)](torch.rand(4), N=2)
leaky[(2,)](torch.rand(4), N=2)
"""
    )

    done = proton(folder, "--instrument=loops", "leaks.py", PROTON_BENCH_QUIET="")

    assert done.returncode == 0, done.stderr
    assert below_kernel(folder, "leaky", "leaks") == [
        ("loop.0@leaks.py:8",),
        ("loop.0@leaks.py:8", "in loop"),
        ("loop.0@leaks.py:8", "in loop", "in loop"),
        ("at end",),
    ]
    assert done.stderr.count("kernel 'leaky': scope 'in loop' is opened but never closed") == 1
    assert done.stderr.count("kernel 'leaky': scope 'at end' is opened but never closed") == 1


def test_filters_choose_kernels_and_lines(folder: Path) -> None:
    passes = ["all:kernel=multiply", f"loads:kernel=red*:line={TWICE}"]
    proton(folder, *(f"--instrument={each}" for each in passes), "work.py")

    assert below_kernel(folder, "reduce_rows") == [(f"load.2@work.py:{TWICE}",)]
    assert [path[-1].partition(".")[0] for path in below_kernel(folder, "multiply")] == [
        *("load", "load", "dot", "store")
    ]


def test_listing_puts_nothing_into_the_profile(folder: Path) -> None:
    quiet = {"PROTON_BENCH_QUIET": ""}
    done = proton(folder, "--instrument=dots,print-ops:json", "work.py", **quiet)

    listed = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [(each["kernel"], len(each["scopes"])) for each in listed] == [("multiply", 1)]
    assert listed[0]["scopes"][0]["line"] == MULTIPLY
    assert below_kernel(folder, "multiply") == []


def test_listing_for_people(folder: Path) -> None:
    words = ["--instrument=print-ops:kernel=multiply", "work.py"]
    done = proton(folder, *words, PROTON_BENCH_QUIET="")

    assert "proton: multiply: 4 scopes" in done.stderr
    assert f"  dot.0@work.py:{MULTIPLY}  tt.dot" in done.stderr
    assert "\nproton: reduce_rows" not in done.stderr


@pytest.mark.parametrize(
    ("passes", "said"),
    [
        ("barriers", ["'barriers'", "--instrument=print-ops"]),
        (
            "print-ops:kernel=zzz",
            ["pass 'print-ops:kernel=zzz' matched no kernel; these ran: reduce_rows, multiply\n"],
        ),
    ],
)
def test_passes_that_find_nothing_say_so(folder: Path, passes: str, said: list[str]) -> None:
    done = proton(folder, f"--instrument={passes}", "work.py", PROTON_BENCH_QUIET="")

    assert done.returncode == 0
    assert all(text in done.stderr for text in said)


def test_passes_go_along_with_options_of_the_mode(folder: Path) -> None:
    done = proton(folder, "-b", "cpu", "-m", "cpu:depth=1", "--instrument=dots", "work.py")

    assert done.returncode == 0, done.stderr
    assert below_kernel(folder, "multiply") == [(f"dot.0@work.py:{MULTIPLY}",)]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--instrument=loads,dotz"], 2, "column 7: there is no pass 'dotz'; did you mean 'dots'"),
        (["--instrument="], 2, "--instrument names no pass"),
        (["--instrument=loads:lines=3"], 2, "column 7: there is no filter 'lines=3'"),
        (["-m", "cpu:passes=dots", "--instrument=loads"], 2, "passes are given twice"),
        (["-b", "replay", "--instrument=loads"], 69, "instrumentation"),
    ],
)
def test_what_is_wrong_is_said_before_the_program_runs(
    folder: Path, words: list[str], code: int, says: str
) -> None:
    done = proton(folder, *words, "work.py")

    assert done.returncode == code
    assert says in done.stderr
    assert not (folder / "work.proton").exists()


def test_a_disabled_profiler_ignores_the_option(folder: Path) -> None:
    (folder / "plain.py").write_text("print('ran')")

    done = proton(folder, "--instrument=nonsense", "plain.py", TRITON_PROTON_DISABLE="1")

    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
