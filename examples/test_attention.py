# ruff: noqa: D100, D103 - the names of the tests say what they check
from __future__ import annotations

import pytest
from attention import attention
from device import DEVICE, pick

# isort: split
import torch

import proton_bench as proton

SHAPES = pick(full=((4, 16, 1024, 64), (2, 8, 500, 64)), small=((1, 2, 64, 32), (1, 1, 50, 16)))


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_attention_agrees_with_torch(shape: tuple[int, int, int, int], causal: bool) -> None:
    q, k, v = (torch.randn(shape, device=DEVICE, dtype=torch.float16) for _ in range(3))

    with proton.scope("triton"):
        ours = attention(q, k, v, causal=causal)
    with proton.scope("torch"):
        reference = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    torch.testing.assert_close(ours, reference, rtol=1e-2, atol=1e-2)
