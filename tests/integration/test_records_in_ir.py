"""From the IR of a program's kernels to records in it: dump, insert, override."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.tritons import TRITONS

pytest.importorskip("proton_bench._native")
pytest.importorskip("triton")

ROOT = Path(__file__).parents[2]
PROGRAM = str(ROOT / "tests" / "fakes" / "compile_add.py")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run Python in one folder, on each Triton."""
    folder = tmp_path_factory.mktemp("triton")

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        folders = [request.param, *(str(ROOT / part) for part in ("tests", "plugins", ""))]
        inherited = {key: value for key, value in os.environ.items() if "TRITON_" not in key}
        return subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env={
                **inherited,
                "PYTHONPATH": os.pathsep.join(filter(None, folders)),
                "TRITON_CACHE_DIR": str(folder / "cache"),
                "TRITON_DEFAULT_FP_FUSION": "1",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def insert_records(path: Path) -> None:
    """Bracket the loop, as a user would."""
    lines = path.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if "scf.for" in line)
    indent = lines[start].partition("%")[0]
    end = next(n for n, line in enumerate(lines) if n > start and line.startswith(f"{indent}}}"))
    lines.insert(end + 1, f'{indent}proton.record end "loop" loc(#loc)')
    lines.insert(start, f'{indent}proton.record start "loop" loc(#loc)')
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def dumped(python: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the IR of the program's kernel, as Triton itself writes it."""
    folder = tmp_path_factory.mktemp("ir")
    done = python(
        PROGRAM,
        TRITON_KERNEL_DUMP="1",
        TRITON_DUMP_DIR=str(folder),
        TRITON_ALWAYS_COMPILE="1",
        TRITON_PROTON_DISABLE="1",
    )
    assert "compiled [0, 0, 0, None]" in done.stdout, done.stderr
    return folder


def with_records(dumped: Path, folder: Path) -> Path:
    """Copy the IR into a folder and return its file with records."""
    shutil.copytree(dumped, folder)
    (path,) = folder.rglob("*.ttgir")
    insert_records(path)
    return path


def test_records_that_were_written_into_the_ir_are_compiled(
    python: Run, dumped: Path, tmp_path: Path
) -> None:
    path = with_records(dumped, tmp_path / "ir")
    for stage in {*path.parent.iterdir()} - {path}:  # later ones would replace what comes from it
        stage.unlink()

    run = python(
        PROGRAM,
        WITH_RECORDS="1",
        TRITON_KERNEL_OVERRIDE="1",
        TRITON_OVERRIDE_DIR=str(tmp_path / "ir"),
        TRITON_ALWAYS_COMPILE="1",
    )

    assert run.returncode == 0, run.stderr
    assert "compiled [2, 4, 256, 0]" in run.stdout


def test_one_kernel_takes_a_file_without_variables(
    python: Run, dumped: Path, tmp_path: Path
) -> None:
    path = with_records(dumped, tmp_path / "ir")

    run = python(PROGRAM, str(path), WITH_RECORDS="1")

    assert "compiled [2, 4, 256, 0]" in run.stdout, run.stderr
