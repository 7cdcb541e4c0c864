# ruff: noqa: D100, D103 - the names of the tests say what they check
from __future__ import annotations

import pytest
from device import DEVICE, can_autotune, pick
from matmul import matmul

# isort: split
import torch

import proton_bench as proton

SHAPES = pick(full=((2048, 2048, 2048), (1000, 500, 300)), small=((64, 64, 64), (33, 50, 40)))


@pytest.fixture(autouse=True)
def benchmark_driver() -> None:
    if not can_autotune():
        pytest.skip("triton.autotune needs a GPU; without one run `proton pytest examples`")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_matmul_agrees_with_torch(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a = torch.randn(m, k, device=DEVICE, dtype=torch.float16)
    b = torch.randn(k, n, device=DEVICE, dtype=torch.float16)

    with proton.scope("triton"):
        ours = matmul(a, b)
    with proton.scope("torch"):
        reference = a @ b

    torch.testing.assert_close(ours, reference, rtol=1e-2, atol=1e-1)
