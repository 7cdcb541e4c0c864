"""Memory of torch on a GPU, by call path."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.formats.registry import read_profile, read_steps
from proton_bench.model.metrics.memory import FAILED, GROWN, PEAK

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")

PROGRAM = """
import json, sys, torch
net = torch.nn.Sequential(
    torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)
)
net = net.cuda()
optimizer = torch.optim.AdamW(net.parameters())
run = torch.compile(net) if "compile" in sys.argv else net
kept = []
for step in range(17):
    optimizer.zero_grad()
    run(torch.randn(256, 512, device="cuda")).square().mean().backward()
    if "leak" in sys.argv:
        kept.append(torch.empty(1 << 18, device="cuda"))  # leak
    optimizer.step()
most = torch.cuda.max_memory_allocated()
if "oom" in sys.argv:
    try:
        torch.empty(1 << 42, device="cuda")
    except torch.cuda.OutOfMemoryError:
        pass
print(json.dumps([most, torch.cuda.memory_allocated()]))
"""


def recorded(folder: Path, *arguments: str) -> tuple[Path, int, int]:
    """Return the file of a run, and what torch allocated at most and at its end."""
    script, file = folder / "train.py", folder / "train.proton"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "proton_bench", "run", "-o", str(file), str(script)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    most, held = json.loads(done.stdout.splitlines()[0])
    return file, most, held


@pytest.mark.parametrize("arguments", [(), ("compile",)], ids=["eager", "compiled"])
def test_rows_sum_to_what_torch_says(arguments: tuple[str, ...], tmp_path: Path) -> None:
    file, most, _ = recorded(tmp_path, *arguments)

    profile = read_profile(file)
    assert profile.inclusive(PEAK)[0] == most
    assert not any("memory" in reason for reason in profile.dropped)


def test_a_leak_of_one_tensor_a_step_is_named_with_its_line(tmp_path: Path) -> None:
    file, _, _ = recorded(tmp_path, "leak")
    line = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if "# leak" in text)

    (steady,) = read_steps([file])
    column = steady.columns[GROWN]
    rows = [row for row in range(len(steady)) if column.valid[row] and column.values[row] > 0]

    assert [steady.name(row).partition("@")[0] for row in rows] == [f"{tmp_path}/train.py:{line}"]
    assert column.values[rows[0]] == 1 << 20


def test_what_was_alive_at_an_error_is_in_the_file(tmp_path: Path) -> None:
    file, _, held = recorded(tmp_path, "oom")

    profile = read_profile(file)
    assert profile.inclusive(FAILED)[0] == 1 << 44
    assert profile.inclusive(PEAK)[0] == held
