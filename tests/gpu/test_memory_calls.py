"""Driver calls that manage memory, in the samples of the host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.analysis.why.answer import why
from proton_bench.formats.registry import read_steps

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

PROGRAM = """
import torch

network = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
values = torch.randn(4096, 1024, device="cuda")
for _ in range(300):
    EMPTIED
    optimizer.zero_grad()
    network(values).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
"""


@pytest.mark.parametrize("is_emptied", [True, False])
def test_a_cache_that_is_emptied_in_each_step_stalls_it(is_emptied: bool, tmp_path: Path) -> None:
    line = "torch.cuda.empty_cache()" if is_emptied else "pass"
    (tmp_path / "program.py").write_text(PROGRAM.replace("EMPTIED", line))
    command = [sys.executable, "-m", "proton_bench", "run", "-b", "cupti", "-n", "run"]
    subprocess.run([*command, "program.py"], cwd=tmp_path, check=True, timeout=300)

    (step,) = read_steps([tmp_path / "run.proton"])

    found = {finding.id: finding for finding in why(step).findings}
    assert ("allocator-stalls" in found) is is_emptied
    if is_emptied:
        assert "cuMemFree" in found["allocator-stalls"].text
