from __future__ import annotations

import sys
from contextlib import nullcontext

import pytest

from proton_bench.errors import UsageError
from proton_bench.pytest_plugin.benchmarks.in_test import BenchmarkCall, Surroundings
from proton_bench.pytest_plugin.benchmarks.marker import Asked
from proton_bench.rounds.measurement import Device, Plan


@pytest.mark.parametrize("plan", [Plan(device=Device.CUDA), Plan(cudagraph=True)])
def test_without_torch_the_options_that_need_it_are_named(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    where = Surroundings(lambda step: nullcontext(), measures=True, is_coroutine=False)

    with pytest.raises(UsageError, match="cudagraph"):
        BenchmarkCall("test_x", Asked(plan=plan), where)(sum, [1])
