"""What torch spends on a record of an operator, which it makes for whatever observes operators."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from proton_bench.recording.native import native

_CALLS = 32
_ROUNDS = 8
_OPERATORS_PER_NODE = 2  # autograd's frame around the node, and the operator that the node calls


@dataclass(frozen=True, slots=True)
class RecordCosts:
    """Nanoseconds per record.

    Attributes:
        operator_ns: Of an operator.
        node_ns: Of a node of a backward pass, without the operators around and inside.
    """

    operator_ns: float
    node_ns: float


def measure_record_costs(*, has_nodes: bool) -> RecordCosts | None:
    """Measure them with the observers of now, in some milliseconds.

    A chain of small operators runs with and without records on the calling thread. No session sees
    them, no device and no random numbers are used, and what the program set for torch stays.

    Args:
        has_nodes: Measure backward passes too. The first one of a process starts threads, so not
            before the program ran one.

    Returns:
        None where they cannot be measured: torch is not imported, its own profiler runs, which
        would see the chain, or the program did something to torch that forbids it.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or torch.autograd._profiler_enabled():
        return None
    enabled = native.enable_torch_records(enabled=True)
    if enabled is None:
        return None
    native.mute_ops()
    try:
        with _plain(torch):
            return _measure(torch, has_nodes=has_nodes)
    except Exception:  # noqa: BLE001 - an estimate is not worth the profile
        return None
    finally:
        native.unmute_ops()
        native.enable_torch_records(enabled=enabled)


@contextlib.contextmanager
def _plain(torch: Any) -> Iterator[None]:
    """Run operators as if the program had changed nothing about them."""
    with (
        torch._C.DisableTorchFunction(),
        torch._C._DisableTorchDispatch(),
        torch.inference_mode(mode=False),
        torch.enable_grad(),
    ):
        yield


def _measure(torch: Any, *, has_nodes: bool) -> RecordCosts:
    start = torch.zeros(1, dtype=torch.float32, device="cpu", requires_grad=True)

    def forward() -> Any:
        end = start
        for _ in range(_CALLS):
            end = end.neg()
        return end

    passes: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for _ in range(_ROUNDS):
        for enabled, times in passes.items():
            native.enable_torch_records(enabled=enabled)
            forward()  # torch lists its observers anew
            end, forward_ns = _timed(forward)
            backward_ns = 0
            if has_nodes:
                backward = functools.partial(torch.autograd.grad, end, start)
                _, backward_ns = _timed(backward)
            times.append((forward_ns, backward_ns))
    least_ns = {on: [min(part) for part in zip(*each, strict=True)] for on, each in passes.items()}
    forward_added_ns, backward_added_ns = (
        (observed - bare) / _CALLS
        for observed, bare in zip(least_ns[True], least_ns[False], strict=True)
    )
    operator_ns = max(forward_added_ns, 0.0)
    return RecordCosts(operator_ns, max(backward_added_ns - _OPERATORS_PER_NODE * operator_ns, 0.0))


def _timed(work: Callable[[], Any]) -> tuple[Any, int]:
    start_ns = time.perf_counter_ns()
    result = work()
    return result, time.perf_counter_ns() - start_ns
