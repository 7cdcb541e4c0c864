"""Operators of concurrent requests of a server land below their own request."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")
pytest.importorskip("torch")

SERVER = """
import asyncio
import torch
import proton_bench as proton

layer = torch.nn.Linear(4, 4)


async def part(x):
    await asyncio.sleep(0)
    torch.relu(x)


async def request(number):
    with proton.scope(f"request {number}"):
        x = torch.ones(2, 4)
        for _ in range(3):
            x = layer(x)
            await asyncio.sleep(0)
        await asyncio.gather(part(x), asyncio.to_thread(torch.tanh, x))


async def serve():
    await asyncio.gather(*(request(number) for number in range(1000)))


asyncio.run(serve())
"""
OF_A_REQUEST = {
    ("aten::ones",): 1,
    ("Linear", "aten::linear", "aten::addmm"): 3,
    ("aten::relu",): 1,
    ("aten::tanh",): 1,
}


def test_every_operator_lands_below_its_own_request(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")

    command = [sys.executable, "-m", "proton_bench", "-n", "served", "-c", "layers+ops"]
    subprocess.run([*command, "server.py"], cwd=tmp_path, check=True, capture_output=True)

    profile = read_profile(tmp_path / "served.proton")
    column = profile.columns["count"]
    counts: Counter[tuple[str, ...]] = Counter()
    for row in range(len(profile)):
        if column.valid[row]:
            counts[profile.path(row)] += int(column.values[row])
    for number in range(1000):
        own = {path: counts[f"request {number}", *path] for path in OF_A_REQUEST}
        assert own == OF_A_REQUEST
    operators = {path[-1] for path in OF_A_REQUEST} - {"aten::ones"}
    strays = {path for path in counts if len(path) == 1 or not path[0].startswith("request ")}
    assert not [path for path in strays if path[-1] in operators]
