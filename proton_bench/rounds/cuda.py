"""GPUs through torch: whether a function uses one, its clock, its L2 cache, CUDA graphs."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.model.benchmark_columns import FLUSH, WARM_UP
from proton_bench.rounds.measurement import Around, Device, RoundTime

_LEAST_FLUSHED_BYTES = 32 << 20
_GRAPH_WARM_UPS = 3
# Depth and width of the search for tensors in arguments and results.
_DEPTH = 3
_BREADTH = 100


class UseOfCuda:
    """Finds out whether a call gives work to a GPU of torch.

    It does if its arguments, closure, globals or result have a tensor on a GPU, or if it allocates
    GPU memory. Any other call is timed on the CPU, which waits for the GPU.
    """

    def __init__(self, *reachable: object) -> None:
        self._reachable = reachable
        self._allocated = _allocations()

    def seen(self, result: object) -> bool:
        """Return this after the call, from its result."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return False
        if _allocations() != self._allocated:
            return True
        return any(_is_on_gpu(each) for each in _parts((*self._reachable, result), _DEPTH))


class CudaTimer:
    """Reads the GPU's clock by events on the current stream.

    The L2 cache is flushed by work before the first event, so that the CPU has submitted the calls
    before the GPU is ready for them.

    Args:
        around: Returns a context manager for flushing the cache.
        flush_l2: Whether to flush it.

    Raises:
        UsageError: torch has no GPU here.
    """

    device = Device.CUDA

    def __init__(self, around: Around, *, flush_l2: bool) -> None:
        torch = cuda_torch()
        self._torch = torch
        self._around = around
        self._first, self._last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._flushed = _l2_sized(torch) if flush_l2 else None
        self._begun_ns = 0

    def prepare(self) -> None:
        """Flush the cache, in its own node."""
        if self._flushed is not None:
            with self._around(FLUSH):
                self._flushed.zero_()

    def begin(self) -> None:
        """Begin a round."""
        self._first.record()
        self._begun_ns = time.monotonic_ns()

    def end(self) -> RoundTime:
        """End the round, wait for the GPU, and return its time."""
        submitted_ns = time.monotonic_ns()
        self._last.record()
        self._last.synchronize()
        return RoundTime(
            float(submitted_ns - self._begun_ns),
            self._first.elapsed_time(self._last) * 1e6,
            (self._begun_ns, submitted_ns),
        )


def as_graph(call: Callable[[], object], around: Around) -> Callable[[], None]:
    """Return the replay of a CUDA graph of one call.

    Args:
        call: The function.
        around: Returns a context manager for the calls before the capture.

    Raises:
        UsageError: torch has no GPU here, or the call cannot be captured.
    """
    torch = cuda_torch()
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with around(WARM_UP), torch.cuda.stream(beside):
        for _ in range(_GRAPH_WARM_UPS):
            call()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            kept = call()
    except RuntimeError as error:
        line = str(error).partition("\n")[0]
        raise UsageError(
            f"the function cannot be captured into a CUDA graph ({line}); remove code that waits "
            "for the GPU, or time it without a graph"
        ) from error
    return functools.partial(_replay, graph, kept)


def _replay(graph: Any, kept: object) -> None:
    del kept  # the graph's output must exist as long as the graph
    graph.replay()


def cuda_torch() -> Any:
    """Return torch, which has a GPU.

    Raises:
        UsageError: It has none, or there is no torch.
    """
    try:
        import torch
    except ImportError:
        raise UsageError(
            "a GPU's timer and CUDA graphs need torch, which is not installed"
        ) from None
    if not torch.cuda.is_available():
        raise UsageError("torch sees no GPU")
    return torch


def _l2_sized(torch: Any) -> Any:
    known = torch.cuda.get_device_properties(torch.cuda.current_device())
    size = max(2 * int(getattr(known, "L2_cache_size", 0)), _LEAST_FLUSHED_BYTES)
    return torch.empty(size, dtype=torch.int8, device="cuda")


def _allocations() -> int:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return int(torch.cuda.memory_stats().get("allocation.all.allocated", 0))


def _is_on_gpu(value: object) -> bool:
    return getattr(value, "is_cuda", False) is True


def _parts(values: Iterable[object], depth: int) -> Iterator[object]:
    for value in islice(values, _BREADTH):
        yield value
        if depth:
            yield from _parts(_inside(value), depth - 1)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if inspect.ismethod(value):
        return (value.__self__, value.__func__)
    if inspect.isfunction(value):
        cells = value.__closure__ or ()
        closed_over = [cell.cell_contents for cell in cells if not _is_empty(cell)]
        names = value.__code__.co_names
        return [*closed_over, *(value.__globals__[n] for n in names if n in value.__globals__)]
    parameters = getattr(value, "parameters", None)  # of a torch module
    return list(parameters())[:1] if _is_module(value) and callable(parameters) else ()


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises for a variable that has no value yet
    except ValueError:
        return True
    return False


def _is_module(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
