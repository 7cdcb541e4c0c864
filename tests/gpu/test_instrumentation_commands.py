"""``--instrument`` on scripts that know nothing of it, the examples, and the override flow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.formats.registry import read_profile

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
PLACED = re.compile(r"^(load|dot|store|loop|wait|barrier)\w*\.\d+@(\w+\.py):\d+$")


def run(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, on small data."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={**os.environ, "EXAMPLES_SIZE": "small"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def proton(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "proton_bench", "-n", "out", *words)


def said(done: subprocess.CompletedProcess[str]) -> str:
    return f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


def placed_scopes(path: Path, kernel: str) -> dict[str, int]:
    """Return the sums of cycles of scopes with a place, below kernels of a name."""
    profile = read_profile(path)
    found: dict[str, int] = {}
    for row in range(1, len(profile)):
        *above, name = profile.path(row)
        if any(kernel in each for each in above) and PLACED.match(name):
            found[name] = found.get(name, 0) + int(profile.columns["cycles"].values[row])
    return found


@pytest.mark.parametrize(
    ("script", "kernel", "expected"),
    [
        ("softmax.py", "softmax", {"load", "store"}),
        ("matmul.py", "matmul", {"load", "dot", "store"}),
    ],
)
def test_scripts_are_instrumented_as_they_are(
    script: str, kernel: str, expected: set[str], tmp_path: Path
) -> None:
    done = proton(tmp_path, "--instrument=loads,dots,stores", EXAMPLES / script)

    assert done.returncode == 0, said(done)
    assert "agree" in done.stdout, said(done)
    found = placed_scopes(tmp_path / "out.proton", kernel)
    kinds = {re.split(r"[._]", name)[0] for name in found}
    assert kinds >= expected, f"{found}\n{said(done)}"
    assert {PLACED.match(name)[2] for name in found} == {script}  # type: ignore[index]
    assert all(cycles > 0 for cycles in found.values()), found


def test_operations_are_listed(tmp_path: Path) -> None:
    done = proton(tmp_path, "--instrument=print-ops", EXAMPLES / "softmax.py")

    assert done.returncode == 0, said(done)
    assert "softmax.py:" in done.stdout + done.stderr, said(done)


def test_unknown_pass_is_named(tmp_path: Path) -> None:
    done = proton(tmp_path, "--instrument=lods", EXAMPLES / "softmax.py")

    assert done.returncode == 2, said(done)
    assert "lods" in done.stderr
    assert "loads" in done.stderr, said(done)


def test_kernels_without_such_operations_are_reported(tmp_path: Path) -> None:
    done = proton(tmp_path, "--instrument=dots", EXAMPLES / "softmax.py")

    assert done.returncode == 0, said(done)
    assert "softmax" in done.stderr, said(done)


@pytest.mark.parametrize("name", ["scoped_add", "scoped_matmul", "gluon_matmul"])
@pytest.mark.parametrize("data", ["tree", "timeline"])
def test_examples_inside_kernels(name: str, data: str, tmp_path: Path) -> None:
    options = ["--op-measure"] if data == "tree" else ["--warp-sampling", "--increase-accuracy"]

    done = run(tmp_path, EXAMPLES / "intra_kernel" / f"{name}.py", *options)

    assert done.returncode == 0, said(done)
    suffix = "hatchet" if data == "tree" else "chrome_trace"
    if "skipped" in done.stdout:
        assert name == "gluon_matmul"
        return
    text = (tmp_path / f"{name}.{suffix}").read_text(encoding="utf-8")
    assert '"store"' in text, said(done)


def test_override_is_one_command(tmp_path: Path) -> None:
    done = run(tmp_path, EXAMPLES / "intra_kernel" / "override.py")

    assert done.returncode == 0, said(done)
    text = (tmp_path / "override.hatchet").read_text(encoding="utf-8")
    for scope in ("load.0", "load.1", "store.0"):
        assert f'"{scope}"' in text, said(done)
    assert "plain_add_kernel" in done.stdout, said(done)
