# ruff: noqa: D100, D103 - the names of the tests say what they check
from __future__ import annotations

import pytest
from recording import Options, parse  # before triton: switches its interpreter on

# isort: split
import gluon_matmul
import override
import scoped_add
import scoped_matmul
import torch
from device import DEVICE, pick

from proton_bench.mode import SAMPLING_STRATEGY

EVERY_OPTION = ["--op-measure", "--warp-sampling", "--warp-ids", "0", "--increase-accuracy"]


@pytest.mark.parametrize("size", pick(full=(100_000, 1000), small=(200, 64)))
def test_scoped_addition_agrees_with_torch(size: int) -> None:
    x, y = torch.randn(size, device=DEVICE), torch.randn(size, device=DEVICE)

    ours = scoped_add.add(x, y)

    torch.testing.assert_close(ours, x + y)


def test_scoped_product_agrees_with_torch() -> None:
    size = pick(full=512, small=48)
    a, b = (torch.randn(size, size, device=DEVICE, dtype=torch.float16) for _ in range(2))

    ours = scoped_matmul.matmul(a, b)

    torch.testing.assert_close(ours, a @ b, rtol=1e-2, atol=1e-1)


@pytest.mark.skipif(bool(gluon_matmul.missing()), reason=gluon_matmul.missing() or "it runs")
def test_scoped_product_in_gluon_agrees_with_torch() -> None:
    a, b = (torch.randn(512, 512, device=DEVICE, dtype=torch.float16) for _ in range(2))

    ours = gluon_matmul.matmul(a, b)

    torch.testing.assert_close(ours, a @ b, rtol=1e-2, atol=1e-1)


def test_options_make_the_mode() -> None:
    options = parse("Description.", [*EVERY_OPTION, "--warp-ids", "1, 3"])

    assert options == Options(
        op_measure=True, warp_sampling=True, warp_ids="1, 3", increase_accuracy=True
    )
    mode = options.mode()
    assert (mode.sampling_strategy, mode.sampling_options) == (SAMPLING_STRATEGY.SELECTIVE, "1,3")
    assert {each.value for each in mode.optimizations} == {"clock32", "time_shift", "sched_stores"}


def test_records_stand_around_loads_and_stores() -> None:
    text = "  %0 = tt.load %p : t loc(#a)\n  %1 = arith.addf %0, %0\n  tt.store %p, %1 : t\n"

    lines = override.bracket(text).splitlines()

    assert [line.strip().split(" loc")[0] for line in lines] == [
        'proton.record start "load.0"',
        "%0 = tt.load %p : t",
        'proton.record end "load.0"',
        "%1 = arith.addf %0, %0",
        'proton.record start "store.0"',
        "tt.store %p, %1 : t",
        'proton.record end "store.0"',
    ]
