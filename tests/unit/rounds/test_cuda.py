"""Calls of torch's CUDA side, with a double of it."""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.torch_cuda import TorchOnGpu

from proton_bench.errors import UsageError
from proton_bench.rounds.cuda import FLUSH, CudaTimer, UseOfCuda, as_graph
from proton_bench.rounds.measurement import Device, RoundTime


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> TorchOnGpu:
    double = TorchOnGpu()
    monkeypatch.setitem(sys.modules, "torch", double)
    return double


ON_GPU = SimpleNamespace(is_cuda=True)
ON_CPU = SimpleNamespace(is_cuda=False)


def closing_over(value: object) -> Any:
    return lambda: value


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(
    ("reachable", "result", "seen"),
    [
        ((), None, False),
        ((), ON_CPU, False),
        ((), ON_GPU, True),
        ((), {"out": [(ON_GPU,)]}, True),
        ((functools.partial(print, 1, x=ON_GPU),), None, True),
        ((functools.partial(closing_over(ON_GPU)),), None, True),
        ((closing_over(ON_CPU),), None, False),
    ],
)
def test_a_tensor_on_a_gpu_within_reach_means_that_it_is_used(
    reachable: tuple[object, ...], result: object, seen: bool
) -> None:
    assert UseOfCuda(*reachable).seen(result) is seen


def test_memory_of_the_gpu_that_a_call_took_means_that_it_is_used(torch: TorchOnGpu) -> None:
    use = UseOfCuda()
    torch.allocated += 1

    assert use.seen(None)


def test_without_torch_nothing_uses_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)

    assert not UseOfCuda().seen(ON_GPU)
    assert "torch" not in sys.modules


def test_the_cache_is_flushed_in_a_node_of_its_own_before_the_first_event(
    torch: TorchOnGpu,
) -> None:
    @contextmanager
    def around(name: str) -> Any:
        torch.log.append(f"{name} begins")
        yield
        torch.log.append(f"{name} ends")

    timer = CudaTimer(around, flush_l2=True)
    timer.prepare()
    timer.begin()
    took = timer.end()

    assert torch.log == [f"{FLUSH} begins", "flush", f"{FLUSH} ends", "record", "record", "wait"]
    assert took.gpu_ns == 250_000.0
    assert torch.flushed_bytes == 100 << 20
    assert timer.device is Device.CUDA
    assert isinstance(took, RoundTime)


def test_without_flush_no_memory_is_taken(torch: TorchOnGpu) -> None:
    timer = CudaTimer(lambda name: nullcontext(), flush_l2=False)
    timer.prepare()
    timer.begin()

    assert torch.log == ["record"]
    assert torch.flushed_bytes == 0


def test_a_graph_is_captured_once_and_replayed(torch: TorchOnGpu) -> None:
    calls: list[int] = []

    replay = as_graph(lambda: calls.append(1), lambda name: nullcontext())
    replay()
    replay()

    assert len(calls) == 4  # three to warm up, one captured
    assert torch.log == ["replay", "replay"]


@pytest.mark.usefixtures("torch")
def test_what_cannot_be_captured_says_so() -> None:
    calls: list[int] = []

    def waits() -> None:
        calls.append(1)
        if len(calls) == 4:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

    with pytest.raises(UsageError, match=r"cannot be captured .* stream is capturing\)"):
        as_graph(waits, lambda name: nullcontext())


def test_without_a_gpu_its_timer_says_so(torch: TorchOnGpu) -> None:
    torch.available = False

    with pytest.raises(UsageError, match="torch sees no GPU"):
        CudaTimer(lambda name: nullcontext(), flush_l2=False)


def test_without_torch_the_timer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(UsageError, match="torch, which is not installed"):
        CudaTimer(lambda name: nullcontext(), flush_l2=False)
