"""Passes of ``--instrument`` on a GPU, on unchanged programs."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.formats.registry import read_profile

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

KERNELS = """\
import sys
import torch
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, N, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    inner = tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, N, B):
        left = tl.load(a + rows[:, None] * N + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))

@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf"))
    weights = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + tl.program_id(0) * n + at, weights / tl.sum(weights, axis=0), mask=at < n)

torch.manual_seed(0)
a, b = (torch.randn(512, 512, device="cuda", dtype=torch.float16) for _ in range(2))
c, x = torch.empty_like(a), torch.randn(64, 1000, device="cuda")
y = torch.empty_like(x)
product[(8, 8)](a, b, c, 512, B=64)
softmax[(64,)](x, y, 1000, B=1024)
torch.testing.assert_close(c, a @ b, atol=1e-1, rtol=1e-2)
torch.testing.assert_close(y, torch.softmax(x, 1))
torch.cuda.synchronize()
"""
PASSES = ("loops", "loads", "stores", "dots", "waits", "barriers", "all")


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"TRITON_CACHE_DIR": str(folder / "cache")} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def scopes(folder: Path) -> dict[str, dict[str, float]]:
    """Cycles of all scopes that passes made, by kernel and name."""
    profile = read_profile(folder / "work.proton")
    if "cycles" not in profile.columns:
        return {}
    cycles = profile.column("cycles")
    found: dict[str, dict[str, float]] = {}
    for row in range(1, len(profile)):
        path = profile.path(row)
        kernel = next((name for name in path if name in {"product", "softmax"}), None)
        if kernel is not None and "@work.py:" in path[-1]:
            found.setdefault(kernel, {})[path[-1]] = float(cycles.get(row) or 0)
    return found


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "work.py").write_text(KERNELS)
    return tmp_path


@pytest.mark.parametrize("passes", PASSES)
def test_a_pass_measures_kernels_that_compute_the_same(program: Path, passes: str) -> None:
    done = run(program, "-m", "proton_bench", f"--instrument={passes}", "work.py")

    assert done.returncode == 0, done.stderr
    found = scopes(program)
    assert bool(found) == (passes != "barriers"), done.stderr
    assert all(value > 0 for names in found.values() for value in names.values())


def test_what_stands_in_a_loop_takes_less_than_the_loop(program: Path) -> None:
    run(program, "-m", "proton_bench", "--instrument=loops,waits:kernel=product", "work.py")

    product = scopes(program)["product"]
    loop = next(value for name, value in product.items() if name.startswith("loop.0@"))
    inside = [value for name, value in product.items() if "_wait." in name]
    assert inside
    assert max(inside) < loop


def test_filters_and_unknown_passes(program: Path) -> None:
    done = run(program, "-m", "proton_bench", "--instrument=all:kernel=soft*", "work.py")
    wrong = run(program, "-m", "proton_bench", "--instrument=lods", "work.py")

    assert (done.returncode, list(scopes(program))) == (0, ["softmax"])
    assert (wrong.returncode, "did you mean 'loads'" in wrong.stderr) == (2, True)


def test_listing_leaves_kernels_as_they_are(program: Path) -> None:
    done = run(program, "-m", "proton_bench", "--instrument=print-ops:json", "work.py")

    listed = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert {each["kernel"] for each in listed} == {"product", "softmax"}
    assert scopes(program) == {}


def test_kernels_of_inductor_take_passes(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import torch\n"
        "f = torch.compile(lambda x: torch.softmax(x + 1, -1) * 2)\n"
        "x = torch.randn(256, 512, device='cuda')\n"
        "torch.testing.assert_close(f(x), torch.softmax(x + 1, -1) * 2)\n"
    )
    folder = str(tmp_path / "inductor")

    done = run(
        tmp_path, "-m", "proton_bench", "--instrument=loads,stores", "work.py",
        TORCHINDUCTOR_CACHE_DIR=folder,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    profile = read_profile(tmp_path / "work.proton")
    names = {profile.path(row)[-1].partition("@")[0] for row in range(1, len(profile))}
    assert {"load.0", "store.0"} <= names, done.stderr


def test_the_switch_of_inductor_writes_its_traces(tmp_path: Path) -> None:
    pytest.importorskip("torch._inductor.runtime.proton_utils", reason="torch without the switch")
    (tmp_path / "work.py").write_text(
        "from proton_bench.recording import compat\n"
        "compat.install()\n"
        "import torch\n"
        "f = torch.compile(lambda x: torch.softmax(x + 1, -1) * 2)\n"
        "for _ in range(3):\n"
        "    f(torch.randn(256, 512, device='cuda'))\n"
    )
    traces = tmp_path / "traces"

    done = run(
        tmp_path, "work.py",
        TORCHINDUCTOR_TRITON_PROTON_PROFILING="1",
        TORCHINDUCTOR_TRITON_PROTON_OUTPUT_DIR=str(traces),
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "inductor"),
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    events = json.loads(gzip.decompress((traces / "inductor.trace.json.gz").read_bytes()))
    programs = [each for each in events["traceEvents"] if each.get("cat") == "cta"]
    assert len(programs) > 1, done.stderr
    assert all(each["name"].startswith("CTA") for each in programs)
