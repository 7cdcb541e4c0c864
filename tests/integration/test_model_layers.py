"""Layers, operators and backward passes of models in call paths, without a GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.long
TOP = Path(__file__).resolve().parents[2]
FAKES = TOP / "tests" / "fakes"
PROGRAMS = (
    "forward",
    "training",
    "backward_elsewhere",
    "two_threads",
    "checkpointed",
    "checkpointed_reentrant",
    "custom_function",
    "double_backward",
    "gradient_in_forward",
    "scopes_around",
    "exceptions",
    "recursion",
    "shared",
    "out_of_root",
    "added_later",
    "wrappers",
    "distributed",
    "script",
    "modules_die",
    "explicit_scopes",
    "in_state",
    "twice_attached",
    "timeline",
)
ATTENTION = "Model > h.0 (Block) > h.0.attn (Attention)"
C_ATTN = f"{ATTENTION} > h.0.attn.c_attn (Linear)"

Result = dict[str, Any]


def run(folder: Path, **programs: Sequence[str]) -> dict[str, dict[str, Result]]:
    """Run programs of tests/fakes/model_programs.py by context; the import of torch costs most."""
    folders = (str(TOP), str(TOP / "plugins"), os.environ.get("PYTHONPATH", ""))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }
    words = [f"{context}:{name}" for context, names in programs.items() for name in names]
    result = subprocess.run(
        [sys.executable, str(FAKES / "model_kernels.py"), *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    results: dict[str, dict[str, Result]] = json.loads(result.stdout.splitlines()[-1])
    return results


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Result]]:
    programs = {
        "layers": PROGRAMS,
        "layers+ops": PROGRAMS,
        "ops": ["training"],
        "shadow": ["training", "scopes_around"],
    }
    return run(tmp_path_factory.mktemp("models"), **programs)


@pytest.fixture
def layers(recorded: dict[str, dict[str, Result]]) -> dict[str, Result]:
    return recorded["layers"]


@pytest.fixture
def both(recorded: dict[str, dict[str, Result]]) -> dict[str, Result]:
    return recorded["layers+ops"]


def paths(result: Result, kernel: str) -> dict[str, int]:
    """Return the launches of a kernel by the path above it."""
    end = f" > {kernel}"
    found = {
        path.removesuffix(end): count
        for path, count in result["paths"].items()
        if path.endswith(end)
    }
    return found | ({"": result["paths"][kernel]} if kernel in result["paths"] else {})


def share_below_layers(result: Result) -> float:
    """Return the share of launches whose path begins with a layer of a model."""
    counts = result["paths"]
    below = sum(count for path, count in counts.items() if path.startswith("Model"))
    return below / sum(counts.values())


def test_kernels_stand_below_their_layers_by_qualified_name_and_class(
    layers: dict[str, Result],
) -> None:
    assert paths(layers["forward"], "addmm_kernel") == {
        f"{above}{layer} (Linear)": 1
        for above, layer in [
            *(
                (f"Model > h.{n} (Block) > h.{n}.attn (Attention) > ", f"h.{n}.attn.{name}")
                for n in (0, 1)
                for name in ("c_attn", "c_proj")
            ),
            *(
                (f"Model > h.{n} (Block) > h.{n}.mlp (Sequential) > ", f"h.{n}.mlp.0")
                for n in (0, 1)
            ),
            ("Model > ", "head"),
        ]
    }


def test_kernels_stand_below_their_operators(both: dict[str, Result]) -> None:
    found = paths(both["forward"], "addmm_kernel")

    assert found[f"{C_ATTN} > aten::linear > aten::addmm"] == 1
    assert all(path.endswith("aten::linear > aten::addmm") for path in found)


def test_operators_alone_have_no_layers_and_no_backward_frame(
    recorded: dict[str, dict[str, Result]],
) -> None:
    found = recorded["ops"]["training"]["paths"]

    assert not [path for path in found if "Model" in path or "<backward>" in path]
    assert any(path.startswith("AddmmBackward0 > aten::mm > ") for path in found)


def test_scopes_alone_show_neither(recorded: dict[str, dict[str, Result]]) -> None:
    found = recorded["shadow"]

    assert all(" > " not in path for path in found["training"]["paths"])
    assert {path.split(" > ")[0] for path in found["scopes_around"]["paths"]} == {"bwd"}
    assert all(path.count(" > ") == 1 for path in found["scopes_around"]["paths"])


@pytest.mark.parametrize("program", ["training", "backward_elsewhere", "checkpointed"])
def test_backward_nodes_stand_below_the_layer_of_their_forward_operator(
    both: dict[str, Result], program: str
) -> None:
    found = [path for path in both[program]["paths"] if " > AddmmBackward0 > aten::mm" in path]

    steps = 2 if program == "training" else 1
    above = {path.partition(" > <backward>")[0] for path in found}
    forward = paths(both["forward"], "addmm_kernel")
    assert above == {path.partition(" > aten::linear")[0] for path in forward}
    mine = [path for path in found if path.startswith(f"{C_ATTN} > <backward> > Addmm")]
    assert sum(both[program]["paths"][path] for path in mine) == 2 * steps


def test_without_operators_backward_kernels_stand_below_the_backward_frame(
    layers: dict[str, Result],
) -> None:
    assert paths(layers["training"], "mm_kernel")[f"{C_ATTN} > <backward>"] == 4


def test_nearly_all_of_a_training_step_stands_below_layers(both: dict[str, Result]) -> None:
    assert share_below_layers(both["training"]) > 0.97


def test_sums_of_gradients_stand_below_the_layer_that_made_the_last(
    both: dict[str, Result],
) -> None:
    sums = [
        path
        for path in both["training"]["paths"]
        if "<backward> > aten::add >" in path or "AccumulateGrad" in path
    ]

    assert sums
    assert all(path.startswith("Model > ") for path in sums)


def test_the_step_of_an_optimizer_is_a_row_without_operators_too(
    layers: dict[str, Result], both: dict[str, Result]
) -> None:
    for recorded in (layers, both):
        assert paths(recorded["training"], "step_kernel") == {"Optimizer.step#SGD.step": 2}


def test_backward_passes_of_two_threads_do_not_mix(both: dict[str, Result]) -> None:
    found = both["two_threads"]["paths"]
    counts = {
        root: {
            path.partition(" > ")[2]: count
            for path, count in found.items()
            if path.startswith(root)
        }
        for root in ("Model > ", "Other > ")
    }

    assert counts["Model > "] == counts["Other > "]
    assert sum(counts["Model > "].values()) > 20 * 40


def test_a_reentrant_checkpoint_shows_the_recomputed_layers_below_its_backward(
    layers: dict[str, Result],
) -> None:
    found = paths(layers["checkpointed_reentrant"], "mm_kernel")
    block = "Model > <backward> > h.0 (Block) > h.0.attn (Attention) > h.0.attn.c_attn (Linear)"

    assert found[f"{block} > <backward>"] == 2
    assert f"{block}" in paths(layers["checkpointed_reentrant"], "addmm_kernel")


def test_functions_of_the_program_are_linked_to_their_forward(
    layers: dict[str, Result], both: dict[str, Result]
) -> None:
    layer = "Sequential > 1 (Custom)"

    assert paths(layers["custom_function"], "doubled_backward_kernel") == {
        f"{layer} > <backward>": 1
    }
    assert paths(both["custom_function"], "doubled_backward_kernel") == {
        f"{layer} > <backward> > DoubledBackward": 1
    }


def test_nodes_made_in_a_backward_pass_are_of_the_layer_of_that_pass(
    both: dict[str, Result],
) -> None:
    found = both["double_backward"]["paths"]

    twice = [path for path in found if "BmmBackward0" in path]
    assert twice
    assert all(path.startswith("Model > ") for path in twice)
    assert not [path for path in found if path.count("<backward>") > 1]


def test_a_gradient_inside_of_a_forward_pass_repeats_no_layer(both: dict[str, Result]) -> None:
    found = both["gradient_in_forward"]["paths"]

    assert any(path.startswith("Penalty > net (Linear) > <backward> > ") for path in found)
    assert not [path for path in found if path.count("Penalty") != 1]


def test_scopes_of_the_program_keep_their_kernels(layers: dict[str, Result]) -> None:
    found = layers["scopes_around"]["paths"]

    assert {path.split(" > ")[0] for path in found} == {"bwd"}
    assert any(path.startswith(f"bwd > {C_ATTN} > <backward> > ") for path in found)


def test_layers_end_with_any_exception(layers: dict[str, Result]) -> None:
    kinds = ["ValueError", "KeyboardInterrupt", "SystemExit", "GeneratorExit"]

    assert layers["exceptions"]["returned"] == kinds
    assert layers["exceptions"]["paths"] == {"after_kernel": 1}


def test_a_module_inside_of_itself_is_a_row_each_time(layers: dict[str, Result]) -> None:
    assert layers["recursion"]["paths"] == {"Nested > Nested > Nested > deepest_kernel": 1}


def test_a_shared_module_has_the_first_of_its_names(layers: dict[str, Result]) -> None:
    assert paths(layers["shared"], "relu_kernel") == {"Twice > first (ReLU)": 2}


def test_a_module_called_by_itself_keeps_its_name_once_its_root_was_called(
    layers: dict[str, Result],
) -> None:
    assert paths(layers["out_of_root"], "gelu_kernel") == {
        "h.1.mlp (Sequential) > h.1.mlp.1 (GELU)": 1,
        "Sequential > 1 (GELU)": 1,
    }


def test_modules_added_later_and_modules_of_no_parent_are_rows(layers: dict[str, Result]) -> None:
    assert paths(layers["added_later"], "tanh_kernel") == {"Sequential > 1 (Tanh)": 1}
    assert paths(layers["added_later"], "_softmax_kernel") == {
        "Sequential > 2 (Hidden) > Softmax": 1
    }


def test_a_wrapper_does_not_change_the_names_inside(layers: dict[str, Result]) -> None:
    assert f"DataParallel > {C_ATTN}" in paths(layers["wrappers"], "addmm_kernel")


def test_reductions_of_gradients_stand_below_the_layer_that_was_ready_last(
    both: dict[str, Result],
) -> None:
    reduced = paths(both["distributed"], "reduce_kernel")

    assert reduced
    assert all(
        path.startswith("DistributedDataParallel > Model > ") and " > <backward>" in path
        for path in reduced
    )
    assert any(
        path.startswith(f"DistributedDataParallel > {C_ATTN} > <backward> > AddmmBackward0")
        for path in both["distributed"]["paths"]
    )


def test_a_traced_module_has_the_name_of_its_class(layers: dict[str, Result]) -> None:
    assert paths(layers["script"], "addmm_kernel") == {"Sequential > 0 (Linear)": 1}


def test_names_of_modules_die_with_them(layers: dict[str, Result]) -> None:
    counts = layers["modules_die"]["returned"]

    assert counts[0] == counts[1] == counts[2]


def test_scopes_may_cross_the_borders_of_layers(layers: dict[str, Result]) -> None:
    assert layers["explicit_scopes"]["paths"] == {
        "opened outside > Closes > closed_kernel": 1,
        "Opens > opened inside > opened_kernel": 1,
        "end_kernel": 1,
    }


def test_a_state_stands_below_the_layers(layers: dict[str, Result]) -> None:
    assert layers["in_state"]["paths"] == {"Stateful > prepare > state_kernel": 1}


def test_the_function_that_calls_modules_stays_the_same_object(layers: dict[str, Result]) -> None:
    assert layers["twice_attached"]["returned"] == [True]


def test_a_timeline_shows_layers_as_slices_around_their_operators(
    layers: dict[str, Result],
) -> None:
    slices = [tuple(each) for each in layers["timeline"]["returned"]]

    names = [name for name, category in slices if category == "layer"]
    assert names[:3] == ["Model", "h.0 (Block)", "h.0.ln (LayerNorm)"]
    assert names[-1] == "head (Linear)"
    place = slices.index(("h.0.ln (LayerNorm)", "layer"))
    assert slices[place + 1] == ("aten::layer_norm", "cpu_op")


def test_nothing_is_lost(layers: dict[str, Result], both: dict[str, Result]) -> None:
    assert {each["dropped"] for each in (*layers.values(), *both.values())} == {0}


@pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs a C++ compiler")
def test_kernels_of_compiled_code_stand_below_their_layers(tmp_path: Path) -> None:
    found = run(tmp_path, shadow=["compiled", "compiled_blocks"])["shadow"]
    whole = found["compiled"]["returned"]
    c_attn = "h.0 (Block) > h.0.attn (Attention) > h.0.attn.c_attn (Linear)"

    assert whole["counts"] == [1, 1, 0]  # compiled once, and no frame is left open
    forward = [path for path in whole["again"] if path.endswith(f"{c_attn} > aten::addmm")]
    assert forward
    assert all(path.startswith("OptimizedModule > Model > ") for path in forward)
    backward = [path for path in whole["again"] if path.endswith(f"{c_attn} > aten::mm")]
    assert backward
    assert all("Model > <backward> > " in path for path in backward)
    blocks = found["compiled_blocks"]["returned"]
    for number in (0, 1):
        block = f"Model > h.{number} (Block) > "
        layer = f" > h.{number}.attn.c_attn (Linear) > aten::addmm"
        assert [path for path in blocks if path.startswith(block) and path.endswith(layer)]


def test_a_model_of_a_thousand_levels_is_recorded(tmp_path: Path) -> None:
    program = """
import torch

model = torch.nn.Linear(1, 1)
for _ in range(1500):
    model = torch.nn.Sequential(model)
inner = model
for _ in range(250):
    inner = inner[0]
import sys
sys.setrecursionlimit(100_000)
for part in (inner, model):
    try:
        part(torch.ones(1))
    except RecursionError:
        pass
print("done")
"""
    (tmp_path / "deep.py").write_text(program)

    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "--quiet", "-b", "cpu", "-o", "x.proton", "deep.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.stdout == "done\n", done.stderr
    assert done.returncode == 0
