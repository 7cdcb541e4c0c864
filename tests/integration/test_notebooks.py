"""The notebooks of the examples run from the first cell to the last, on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for module in ("proton_bench._native", "torch", "triton", "nbclient", "ipykernel"):
    pytest.importorskip(module)

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
# A separate process, because Jupyter's libraries cause warnings themselves.
RUN = """
import json, sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
notebook.cells.append(nbformat.v4.new_code_cell("print(table.to_json(orient='index'))"))
place = {"metadata": {"path": sys.argv[2]}}
NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
print(json.dumps([cell.get("outputs", []) for cell in notebook.cells]))
"""


def texts(outputs: list[dict[str, Any]]) -> str:
    shown = (each.get("text") or each.get("data", {}).get("text/plain", "") for each in outputs)
    return "".join(shown)


@pytest.fixture(scope="module")
def fused() -> list[list[dict[str, Any]]]:
    """Outputs of the cells of matmul_bias.ipynb, and at last its table as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(EXAMPLES / "matmul_bias.ipynb"), str(EXAMPLES)],
        env=os.environ | {"EXAMPLES_SIZE": "small", "CUDA_VISIBLE_DEVICES": "", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_fused_kernels_do_the_same_work_with_fewer_launches_and_bytes(
    fused: list[list[dict[str, Any]]],
) -> None:
    table = json.loads(texts(fused[-1]))
    unfused, one = table["unfused"], table["fused"]

    assert (unfused["launches"], one["launches"]) == (3, 1)
    # 64 x 96 results of 64 products, of four bytes: read x and w; write, read, write, read, write.
    operands, result, bias = 4 * (64 * 64 + 64 * 96), 4 * 64 * 96, 4 * 96
    assert unfused["MB moved"] * 1e6 == pytest.approx(operands + 5 * result + bias)
    assert one["MB moved"] * 1e6 == pytest.approx(operands + result + bias)
    flops = [row["TFLOP/s"] * row["time (us)"] * 1e6 for row in (unfused, one)]
    assert flops == pytest.approx([2 * 64 * 96 * 64 + 2 * 64 * 96] * 2, rel=1e-3)
    assert one["speed-up"] == pytest.approx(unfused["time (us)"] / one["time (us)"])
    assert unfused["speed-up"] == 1


def test_the_comparison_names_what_is_gone(fused: list[list[dict[str, Any]]]) -> None:
    text = texts(fused[-2])

    assert "own cost of the profiler: about" in text
    for kernel in ("bias", "relu"):
        assert any(kernel in line and "REMOVED" in line for line in text.splitlines())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]

    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
