from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.formats.registry import read_profile
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

pytest.importorskip("proton_bench._native")
pytest.importorskip("torch")
pytest.importorskip("triton")

EXAMPLES = Path(__file__).parents[2] / "examples"
# Those of scopes inside kernels have a test of their own.
TESTED = (str(EXAMPLES), f"--ignore={EXAMPLES / 'intra_kernel'}")
OPTIONS = ("-q", "-p", "no:cacheprovider")
SCRIPTS = ["softmax", "layer_norm", "matmul", "attention", "transformer"]

# Every test runs programs that import torch and Triton.


def proton(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proton_bench", *arguments],
        cwd=folder,
        env=os.environ | {"EXAMPLES_SIZE": "small", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )


def totals(profile: Profile, metric: str) -> dict[tuple[str, ...], float]:
    """Return the inclusive value of every path, siblings of one name summed."""
    folded = profile.fold_variants()
    values = folded.inclusive(metric)
    return {folded.path(row): float(values[row]) for row in range(len(folded))}


def nodes_of_tests(profile: Profile, *files: str) -> set[tuple[str, ...]]:
    """Return the nodes of the tests in these files and of the whole run."""
    rows = [row for row in range(1, len(profile)) if profile.kind(row) is FrameKind.TEST]
    nodes = {profile.path(row) for row in rows}
    return {node for node in nodes if len(node) == 1 or node[1].endswith(files)}


def test_thirty_kernels_are_thirty_paths(tmp_path: Path) -> None:
    script = str(EXAMPLES / "thirty_kernels.py")
    result = proton(tmp_path, "-o", "x.proton", script, "--slower", "13", "--percent", "50")

    assert result.returncode == 0, result.stderr
    launches = totals(read_profile(tmp_path / "x.proton"), "count")
    assert [launches[f"kernel{number:02d}", "iterate_kernel"] for number in range(30)] == [2] * 30


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Profile of ``proton pytest examples/``."""
    folder = tmp_path_factory.mktemp("examples")
    result = proton(folder, "-n", "all", "pytest", *OPTIONS, *TESTED)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "skipped" not in result.stdout
    return read_profile(folder / "all.proton")


def leaves(profile: Profile, file: str) -> set[str]:
    return {
        profile.name(row)
        for row in range(1, len(profile))
        if profile.path(row)[1:2] and profile.path(row)[1].endswith(file)
    }


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("test_softmax.py", {"softmax_kernel", "aten::softmax"}),
        ("test_layer_norm.py", {"forward_kernel", "backward_kernel", "aten::layer_norm"}),
        ("test_matmul.py", {"matmul_kernel", "<autotune>", "aten::matmul"}),
        ("test_attention.py", {"attention_kernel", "aten::scaled_dot_product_attention"}),
        ("test_transformer.py", {"forward", "backward", "block_0", "aten::linear"}),
    ],
)
def test_each_example_shows_its_kernels_and_operators(
    tested: Profile, file: str, expected: set[str]
) -> None:
    assert expected <= leaves(tested, file)


def test_all_time_of_the_examples_stands_below_tests(tested: Profile) -> None:
    times = totals(tested, "time (ns)")

    in_tests = sum(value for path, value in times.items() if len(path) == 2)
    assert 0 < in_tests <= times[()]
    assert times["session",] == times[()]


@pytest.mark.nightly  # test_pytest_workers.py has the same of smaller tests
@pytest.mark.parametrize(
    "words",
    [
        ["-m", "proton_bench", "-n", "two", "pytest"],
        ["-m", "pytest", "--proton", "--proton-name", "two"],
    ],
    ids=["proton pytest", "pytest --proton"],
)
def test_two_workers_give_the_test_nodes_of_one_process(
    tested: Profile, tmp_path: Path, words: list[str]
) -> None:
    pytest.importorskip("xdist")

    files = ("test_softmax.py", "test_layer_norm.py")
    result = subprocess.run(
        [sys.executable, *words, *OPTIONS, "-n", "2", *(str(EXAMPLES / file) for file in files)],
        cwd=tmp_path,
        env=os.environ | {"EXAMPLES_SIZE": "small", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two.hatchet", "two.proton"]
    merged = read_profile(tmp_path / "two.proton")
    assert nodes_of_tests(merged, *files) == nodes_of_tests(tested, *files)
    assert totals(merged, "time (ns)")[()] > 0


def test_each_script_runs_under_the_command_line(tmp_path: Path) -> None:
    files = [str(EXAMPLES / f"{name}.py") for name in SCRIPTS]
    (tmp_path / "all.py").write_text(
        "import runpy, sys\n"
        "import proton_bench as proton\n"
        f"sys.path.insert(0, {str(EXAMPLES)!r})\n"
        f"for file in {files}:\n"
        "    with proton.scope(file):\n"
        "        runpy.run_path(file, run_name='__main__')\n"
    )

    result = proton(tmp_path, "-n", "all", "-k", "triton", "all.py")

    assert result.returncode == 0, result.stderr
    assert [line.partition(": ")[0] for line in result.stdout.splitlines()] == SCRIPTS
    own = {f"{name}.hatchet" for name in SCRIPTS}
    written = {path.name for path in tmp_path.iterdir()}
    assert written == own | {"all.hatchet", "all.proton", "all.py"}
    profile = read_profile(tmp_path / "all.proton")
    times = totals(profile, "time (ns)")
    assert all(times[(file,)] > 0 for file in files)
    sizes = (64, 200, 512)  # launch metadata of softmax becomes metrics
    assert totals(profile, "bytes")[(files[0],)] == sum(2 * 16 * size * 4 for size in sizes)
    assert "softmax_16x200" in {profile.name(row) for row in range(len(profile))}


def test_a_script_opens_its_own_session_without_the_command_line(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / "matmul.py")],
        cwd=tmp_path,
        env=os.environ | {"EXAMPLES_SIZE": "small", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stderr
    assert (tmp_path / "matmul.hatchet").exists()
