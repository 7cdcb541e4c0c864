"""A scope inside a kernel measures the cycles of its instructions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import proton_bench
import proton_bench.language as pl
from proton_bench import mode

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytestmark = pytest.mark.gpu

import triton.language as tl  # noqa: E402

LINKS = 1024
CYCLES_PER_LINK = 4  # from one dependent FFMA to the next, from compute capability 7.0 on
CHAIN = tl.constexpr("mov.f32 $0, $1;\n" + "fma.rn.f32 $0, $0, $0, $0;\n" * LINKS)
ROUNDS = 8


@triton.jit
def chained(values, rounds):
    at = values + tl.arange(0, 32)
    value = tl.load(at)
    for _ in range(rounds):
        pl.enter_scope("chain")
        value = tl.inline_asm_elementwise(CHAIN, "=f,f", [value], tl.float32, False, 1)
        pl.exit_scope("chain")
    tl.store(at, value)


def find(node: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the metrics of the first node of that name."""
    if node["frame"]["name"] == name:
        return dict(node["metrics"])
    return next((m for child in node["children"] if (m := find(child, name))), None)


def measure(folder: Path, **options: Any) -> float:
    """Return the mean cycles of the chain, without launches that fetch the code."""
    values = torch.zeros(32, device="cuda")
    pl.enable_semantic("triton")
    session = proton_bench.start(
        str(folder / "chain"), backend="instrumentation", mode=mode.Default(**options)
    )
    proton_bench.deactivate(session)
    chained[1,](values, ROUNDS, num_warps=1)
    proton_bench.activate(session)
    for _ in range(20):
        chained[1,](values, ROUNDS, num_warps=1)
    proton_bench.finalize()
    tree = json.loads((folder / "chain.hatchet").read_text(encoding="utf-8"))
    found = find(tree[0], "chain")
    assert found is not None
    return float(found["cycles"]) / (20 * ROUNDS)


@pytest.mark.parametrize("buffer_type", ["shared", "global"])
@pytest.mark.parametrize("clock", ["", ",clock32"])
def test_a_chain_of_known_length_is_measured_within_two_percent(
    tmp_path: Path, buffer_type: str, clock: str
) -> None:
    options = {"buffer_type": buffer_type, "optimizations": f"time_shift{clock}"}

    measured = measure(tmp_path, **options)

    assert measured == pytest.approx(LINKS * CYCLES_PER_LINK, rel=0.02)
