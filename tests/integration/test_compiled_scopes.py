"""Scopes and states in code of torch.compile, with and without a recording."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

pytestmark = pytest.mark.long
PROGRAM = Path(__file__).parents[1] / "fakes" / "compiled_program.py"
CASES = (
    "number of graphs",
    "breaks",
    "eager",
    "aot_eager",
    "names of layers",
    "sizes",
    "break inside",
    "subclass",
    "exported",
    "traced",
    "checkpointed",
    "raised",
)


def run(folder: Path, state: str, *cases: str) -> dict[str, Any]:
    result = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder / "profile"), state, *cases],
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    results: dict[str, Any] = json.loads(result.stdout)
    return results


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("idle"), "idle", "same graphs", *CASES)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recording")


@pytest.fixture(scope="module")
def recording(recorded: Path) -> dict[str, Any]:
    return run(recorded, "recording", *CASES)


@pytest.fixture(params=["idle", "recording"])
def results(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.getfixturevalue(request.param)
    return found


def scopes_below(folder: Path, name: str) -> list[str]:
    """Return the names in the profile below the frames of the name, depth first."""

    def frames(node: dict[str, Any]) -> list[dict[str, Any]]:
        return [node, *(each for child in node["children"] for each in frames(child))]

    (tree, *_) = json.loads((folder / "profile.hatchet").read_text())
    found = [node for node in frames(tree) if node["frame"]["name"].startswith(name)]
    return [node["frame"]["name"] for top in found for node in frames(top)[1:]]


def test_graphs_of_idle_scopes_are_those_without_scopes(idle: dict[str, Any]) -> None:
    assert idle["same graphs"]


def test_all_forms_make_one_graph_without_a_break(results: dict[str, Any]) -> None:
    assert results["number of graphs"] == 1
    assert results["breaks"] == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_all_forms_compute_what_they_compute_uncompiled(
    results: dict[str, Any], backend: str
) -> None:
    assert results[backend]


def test_no_case_warns(results: dict[str, Any]) -> None:
    assert [results[f"{case}: warnings"] for case in CASES] == [[]] * len(CASES)


def test_idle_names_compile_once(idle: dict[str, Any]) -> None:
    assert idle["names of layers"] == 1


def test_recorded_names_stop_to_compile_before_dynamo_gives_up(recording: dict[str, Any]) -> None:
    assert 1 < recording["names of layers"] < 8


def test_a_metric_of_a_size_compiles_once_for_all_sizes(results: dict[str, Any]) -> None:
    assert results["sizes"] == 1


def test_a_break_of_the_program_in_a_scope_makes_two_graphs(results: dict[str, Any]) -> None:
    assert results["break inside"] == [64.0, 64.0, 2]


def test_a_subclass_breaks_the_graph_and_computes_the_same(results: dict[str, Any]) -> None:
    assert results["subclass"] == 32.0


def test_exported_and_traced_programs_hold_nothing_of_scopes(results: dict[str, Any]) -> None:
    assert results["exported"] == [False, False]
    assert not results["traced"]


def test_checkpointed_regions_have_the_gradients_of_eager(results: dict[str, Any]) -> None:
    compiled, eager = results["checkpointed"]
    assert compiled == pytest.approx(eager)


def test_an_error_in_a_compiled_scope_reaches_the_caller(results: dict[str, Any]) -> None:
    assert results["raised"] == "IndexError"


def test_ranges_and_metrics_of_a_graph_are_recorded(
    recording: dict[str, Any], recorded: Path
) -> None:
    assert recording["eager"]
    names = scopes_below(recorded, "Torch-Compiled Region")
    wanted = ("outer", "step 0", "step 1", "function", "timed", "built", "attribute", "decorated")
    assert set(wanted) <= set(names)
    assert not [name for name in names if name.startswith("proton_bench::")]


@pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs a C++ compiler")
def test_inductor_enters_the_range_of_each_kernel_also_of_one_that_a_pass_moved(
    tmp_path: Path,
) -> None:
    results = run(tmp_path, "recording", "inductor", "moved")
    names = scopes_below(tmp_path, "Torch-Compiled Region")
    assert results["inductor"]
    assert results["moved"]
    assert {"outer", "step 0", "step 1", "function"} <= set(names)
    assert {"layer 0", "layer 1"} <= set(names)


def test_nothing_imports_torch_for_its_scopes(tmp_path: Path) -> None:
    program = (
        "import sys, proton_bench as proton\n"
        "with proton.scope('a'), proton.state('b'): pass\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=60)
    assert done.returncode == 0


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("state", ["idle", "recording"])
def test_a_module_first_used_while_dynamo_traces_makes_no_break(tmp_path: Path, state: str) -> None:
    program = (
        "import torch, proton_bench as proton\n"
        f"if {state == 'recording'}: proton.start('p')\n"
        "def f(x):\n"
        "    with proton.scope('a'), proton.state('b'): return x + 1\n"
        "assert torch.compile(f, backend='eager', fullgraph=True)(torch.ones(2)).sum() == 4\n"
    )
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, timeout=300)
    assert done.returncode == 0
