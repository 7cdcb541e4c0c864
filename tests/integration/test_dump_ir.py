"""From the IR of a program's kernels to records in it: dump, insert, override."""

from __future__ import annotations

import os
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


@pytest.fixture(params=TRITONS, ids=lambda folder: folder or "installed")
def python(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run Python in the test's folder, on each Triton."""

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        folders = [request.param, *(str(ROOT / part) for part in ("tests", "plugins", ""))]
        inherited = {key: value for key, value in os.environ.items() if "TRITON_" not in key}
        return subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env={
                **inherited,
                "PYTHONPATH": os.pathsep.join(filter(None, folders)),
                "TRITON_CACHE_DIR": str(tmp_path / "cache"),
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


def test_records_that_were_written_into_the_ir_are_compiled(python: Run, tmp_path: Path) -> None:
    dumped = python("-m", "proton_bench", "dump-ir", "-o", "ir", "--only", "ttgir", PROGRAM)

    assert dumped.returncode == 0, dumped.stderr
    assert "compiled [0, 0, 0, None]" in dumped.stdout  # plain, and without the program's session
    (listed,) = [line for line in dumped.stdout.splitlines() if line.endswith(".ttgir")]
    assert [path.name for path in (tmp_path / "ir").rglob("*.*")] == ["plain_add.ttgir"]

    insert_records(tmp_path / listed)
    run = python(
        PROGRAM,
        WITH_RECORDS="1",
        TRITON_KERNEL_OVERRIDE="1",
        TRITON_OVERRIDE_DIR=str(tmp_path / "ir"),
        TRITON_ALWAYS_COMPILE="1",
    )

    assert run.returncode == 0, run.stderr
    assert "compiled [2, 4, 256, 0]" in run.stdout


def test_one_kernel_takes_a_file_without_variables(python: Run, tmp_path: Path) -> None:
    python("-m", "proton_bench", "dump-ir", PROGRAM)
    (path,) = (tmp_path / "ir").rglob("*.ttgir")
    insert_records(path)

    run = python(PROGRAM, str(path), WITH_RECORDS="1")

    assert "compiled [2, 4, 256, 0]" in run.stdout, run.stderr


def test_every_stage_is_listed(python: Run, tmp_path: Path) -> None:
    done = python("-m", "proton_bench", "dump-ir", "-o", "x/y", PROGRAM)

    suffixes = {Path(line).suffix for line in done.stdout.splitlines() if line.startswith("x/y")}
    assert {".ttir", ".ttgir", ".llir", ".ptx", ".cubin"} <= suffixes
    assert not (tmp_path / "unwanted.hatchet").exists()


def test_a_suffix_that_no_file_has_keeps_all_and_names_what_there_is(
    python: Run, tmp_path: Path
) -> None:
    done = python("-m", "proton_bench", "dump-ir", "--only", "zzz", PROGRAM)

    assert done.returncode == 2
    assert (
        "--only zzz matches no file, so all were kept in ir: for plain_add there are" in done.stderr
    )
    assert ".ttgir" not in done.stdout
    assert {path.suffix for path in (tmp_path / "ir").rglob("*.*")} >= {".ttir", ".ttgir", ".ptx"}


def test_exit_code_of_a_program_that_fails_stands_also_where_no_file_is_kept(python: Run) -> None:
    code = f"import runpy; runpy.run_path({PROGRAM!r}, run_name='__main__'); raise SystemExit(7)"

    done = python("-m", "proton_bench", "dump-ir", "--only", "zzz", "python", "-c", code)

    assert done.returncode == 7
    assert "--only zzz" in done.stderr


def test_a_folder_with_files_is_left_alone(python: Run, tmp_path: Path) -> None:
    (tmp_path / "ir").mkdir()
    (tmp_path / "ir" / "edited.ttgir").write_text("precious")

    done = python("-m", "proton_bench", "dump-ir", PROGRAM)

    assert done.returncode == 2
    assert (tmp_path / "ir" / "edited.ttgir").read_text() == "precious"


def test_a_program_without_kernels_says_so(python: Run) -> None:
    done = python("-m", "proton_bench", "dump-ir", "python", "-c", "print('hello')")

    assert done.returncode == 2
    assert "hello" in done.stdout
    assert "compiled no Triton kernel" in done.stderr


@pytest.mark.parametrize(
    ("code", "expected"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 15)", 143)]
)
def test_the_exit_code_is_the_programs(python: Run, code: str, expected: int) -> None:
    assert python("-m", "proton_bench", "dump-ir", "python", "-c", code).returncode == expected
