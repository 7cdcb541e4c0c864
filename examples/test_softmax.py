# ruff: noqa: D100, D103 - the names of the tests say what they check
from __future__ import annotations

import pytest
from device import DEVICE, pick
from softmax import softmax

# isort: split
import torch

import proton_bench as proton


@pytest.mark.parametrize("columns", pick(full=(1024, 4096, 8192), small=(64, 200, 512)))
def test_softmax_agrees_with_torch(columns: int) -> None:
    x = torch.randn(pick(full=4096, small=16), columns, device=DEVICE)

    with proton.scope("triton"):
        ours = softmax(x)
    with proton.scope("torch"):
        reference = torch.softmax(x, dim=-1)

    torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-6)


def test_softmax_of_large_values_does_not_overflow() -> None:
    x = torch.full((2, 100), 1.0e4, device=DEVICE)

    ours = softmax(x)

    torch.testing.assert_close(ours, torch.full_like(x, 0.01), rtol=1e-5, atol=1e-7)
