"""Both kernels of a pair compute the same."""
# ruff: noqa: D103 - the names of the tests say what they check

from __future__ import annotations

from collections.abc import Mapping

import pytest
from slow_to_fast import Kernel, make_kernels

# isort: split
import torch


@pytest.fixture(scope="module")
def kernels() -> Mapping[str, Kernel]:
    """Return small kernels that were launched once."""
    torch.manual_seed(0)
    found = make_kernels(rows=256, columns=64, size=64)
    for launch, _ in found.values():
        launch()
    return found


@pytest.mark.parametrize("name", ["rows: loads apart", "rows: side by side"])
def test_sums_of_rows(kernels: Mapping[str, Kernel], name: str) -> None:
    assert kernels[name][1].eq(64).all()


@pytest.mark.parametrize("name", ["sum: 16 programs", "sum: 2048 programs"])
def test_the_sum_of_all(kernels: Mapping[str, Kernel], name: str) -> None:
    assert kernels[name][1].item() == 256 * 64


def test_products_are_alike(kernels: Mapping[str, Kernel]) -> None:
    torch.testing.assert_close(
        kernels["product: TF32"][1], kernels["product: FP32"][1], rtol=1e-2, atol=5e-2
    )
