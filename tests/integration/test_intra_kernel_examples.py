"""The examples of scopes inside kernels as scripts, in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from capture_fixtures import read_tree

pytest.importorskip("torch")
pytest.importorskip("triton")


FOLDER = Path(__file__).parents[2] / "examples" / "intra_kernel"
EVERY_OPTION = ["--op-measure", "--warp-sampling", "--warp-ids", "0", "--increase-accuracy"]


def run(folder: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, FOLDER / script, *words],
        cwd=folder,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TRITON_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
    )


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(
    ("name", "options", "scopes"),
    [
        ("scoped_matmul", EVERY_OPTION, {"product", "load", "dot", "store"}),
        ("scoped_add", [], {"add_block", "load_x", "load_y", "store"}),
    ],
)
def test_without_a_gpu_scopes_are_host_time(
    name: str, options: list[str], scopes: set[str], tmp_path: Path
) -> None:
    done = run(tmp_path, f"{name}.py", *options)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "agrees with torch" in done.stdout
    assert frames(read_tree(tmp_path / f"{name}.hatchet")) >= scopes


def test_without_a_gpu_the_kernel_in_gluon_says_what_it_needs(tmp_path: Path) -> None:
    done = run(tmp_path, "gluon_matmul.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped: no GPU" in done.stdout


def test_without_a_gpu_the_override_shows_the_records(tmp_path: Path) -> None:
    done = run(tmp_path, "override.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("proton.record start") == 3, done.stdout
    assert "is not run" in done.stdout


def frames(node: dict[str, object]) -> set[str]:
    """Return the names of all frames."""
    children = node["children"]
    assert isinstance(children, list)
    return {node["frame"]["name"]}.union(*map(frames, children))  # type: ignore[index]
