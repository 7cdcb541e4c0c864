"""Hardware counters of a GPU: the mode ``counters`` on kernels whose use of it is known."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import no_session_left

import proton_bench as proton
from proton_bench.analysis.kernels.gpu_facts import CounterFacts, counter_facts
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile
from proton_bench_plugins.cupti.privileges import Permission, read_privileges

torch = pytest.importorskip("torch")

__all__ = ["no_session_left"]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("only_sampler"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
    pytest.mark.skipif(
        read_privileges().permission is Permission.REFUSED, reason=read_privileges().text
    ),
]

RUN_S = 3.0


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, only_sampler: None
) -> tuple[Profile, CounterFacts]:
    """Return a profile of copies and products, with the facts of its counters."""
    torch.manual_seed(1)
    source = torch.randn(1 << 27, device="cuda")
    target = torch.empty_like(source)
    left, right = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for _ in range(10):
        target.copy_(source)
        torch.mm(left, right)
    torch.cuda.synchronize()
    path = tmp_path_factory.mktemp("counters") / "out"
    session = proton.start(str(path), backend="cupti", mode="counters")
    end_s = time.monotonic() + RUN_S
    while time.monotonic() < end_s:
        with proton.scope("copies"):
            target.add_(source)
        with proton.scope("products"):
            torch.mm(left, right)
        torch.cuda.synchronize()
    proton.finalize(session, output_format="proton")
    profile = read_profile(Path(f"{path}.proton"))
    facts = counter_facts(profile)
    assert facts is not None
    return profile, facts


def share(profile: Profile, scope: str, quantity: str) -> float:
    """Return a unit's share of its peak in the kernels of a scope, in percent."""
    (row,) = [row for row in range(len(profile)) if profile.name(row) == scope]

    def of(metric: str) -> Any:
        return profile.inclusive(metric)[row]

    return float(100 * of(f"{quantity}_busy (ns)") / of("counter_time (ns)"))


def test_bursts_cover_the_run(recorded: tuple[Profile, CounterFacts]) -> None:
    _, facts = recorded

    assert facts.error == ""
    assert facts.bursts >= 10
    assert facts.lost_samples == 0


def test_a_sum_of_large_arrays_is_bound_by_memory(
    recorded: tuple[Profile, CounterFacts],
) -> None:
    profile, _ = recorded

    assert share(profile, "copies", "dram") > 70
    assert share(profile, "copies", "tensor") < 5


def test_a_large_product_is_bound_by_tensor_cores(
    recorded: tuple[Profile, CounterFacts],
) -> None:
    profile, _ = recorded

    assert share(profile, "products", "tensor") > 60
    assert share(profile, "products", "dram") < 50
