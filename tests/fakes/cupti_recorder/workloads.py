"""Workloads to record: small programs for one NVIDIA GPU, one for each question.

A workload is prepared (imports, compilation, warm-up), then ``record`` is entered and it runs.
``mark`` notes a place in the stream. The workload returns what the stream must then hold.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

Mark = Callable[[str], None]
Record = Callable[[], AbstractContextManager[Mark]]
Expected = dict[str, int]
BLOCK = 256


def _add_kernel() -> Any:
    import triton_add

    return triton_add.add_kernel


def _tensors(size: int) -> tuple[Any, Any, Any]:
    import torch

    return tuple(torch.full((size,), 1.0, device="cuda") for _ in range(3))  # type: ignore[return-value]


def _launch(tensors: tuple[Any, Any, Any]) -> Any:
    x, y, out = tensors
    return _add_kernel()[(x.numel() // BLOCK,)](x, y, out, x.numel(), BLOCK=BLOCK)


def triton(record: Record) -> Expected:
    """50 Triton launches of two shapes on two streams; recorded from before CUDA starts."""
    import torch

    with record() as mark:
        shapes = [_tensors(BLOCK), _tensors(4 * BLOCK)]
        streams = [torch.cuda.Stream(), torch.cuda.Stream()]
        torch.cuda.synchronize()
        mark("launches")
        for number in range(50):
            with torch.cuda.stream(streams[number % 2]):
                _launch(shapes[number // 2 % 2])
        torch.cuda.synchronize()
    return {"kernels": 50, "add_kernel": 50, "memcpys": 0}


def eager(record: Record) -> Expected:
    """Two training steps of a small perceptron."""
    import torch

    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(32, 64, device="cuda")

    def step(mark: Mark) -> None:
        mark("forward")
        loss = model(batch).square().mean()
        mark("backward")
        loss.backward()
        mark("optimizer")
        optimizer.step()
        optimizer.zero_grad()

    step(lambda _: None)
    torch.cuda.synchronize()
    with record() as mark:
        step(mark)
        step(mark)
        torch.cuda.synchronize()
    return {"kernels": 10}


def compiled(record: Record) -> Expected:
    """Two calls of a function that torch.compile made."""
    import torch

    @torch.compile
    def work(x: Any) -> Any:
        return torch.softmax(torch.nn.functional.gelu(x) * 2.0 + 1.0, dim=-1)

    batch = torch.randn(64, 128, device="cuda")
    work(batch)
    work(batch)
    torch.cuda.synchronize()
    with record() as mark:
        mark("calls")
        work(batch)
        work(batch)
        torch.cuda.synchronize()
    return {"kernels": 2}


def _captured() -> Any:
    import torch

    tensors, side_tensors = _tensors(BLOCK), _tensors(2 * BLOCK)
    _launch(tensors)
    _launch(side_tensors)
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        _launch(tensors)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            _launch(side_tensors)
            _launch(side_tensors)
        tensors[2].mul_(2.0)
        main.wait_stream(side)
        tensors[2].copy_(tensors[0])
    return graph


def graph(record: Record) -> Expected:
    """A graph of two streams, captured by torch and replayed 20 times."""
    import torch

    _launch(_tensors(BLOCK))
    torch.full((4,), 1.0, device="cuda").mul_(2.0)
    torch.cuda.synchronize()
    with record() as mark:
        mark("capture")
        captured = _captured()
        mark("replays")
        for _ in range(20):
            captured.replay()
        torch.cuda.synchronize()
        mark("destruction")
        del captured
    return {"kernels": 82, "graph_launches": 20}


def graph_traced(record: Record) -> Expected:
    """The same with one record per graph launch."""
    return {**graph(record), "kernels": 2, "graphs": 20}


def graph_late(record: Record) -> Expected:
    """Replays of a graph that was captured before the recording began."""
    import torch

    captured = _captured()
    captured.replay()
    torch.cuda.synchronize()
    with record() as mark:
        mark("replays")
        for _ in range(3):
            captured.replay()
        torch.cuda.synchronize()
    return {"kernels": 12, "graph_launches": 3}


def graph_changes(record: Record) -> Expected:
    """A graph captured through the driver: replayed, updated, cloned and made a child."""
    import graph_calls
    import torch

    tensors = [_tensors(BLOCK), _tensors(8 * BLOCK)]
    for shape in tensors:
        _launch(shape)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with record() as mark, torch.cuda.stream(stream):
        graphs = graph_calls.GraphCalls(stream.cuda_stream)
        mark("capture")
        first = graphs.capture(lambda: [_launch(tensors[0]), _launch(tensors[0])])
        executable = graphs.instantiate(first)
        graphs.launch(executable, 2)
        mark("update")
        second = graphs.capture(lambda: [_launch(tensors[1]), _launch(tensors[1])])
        graphs.update(executable, second)
        graphs.launch(executable, 2)
        mark("clone")
        clone = graphs.clone(first)
        graphs.launch(graphs.instantiate(clone), 2)
        mark("child")
        parent = graphs.parent_of(clone)
        graphs.launch(graphs.instantiate(parent), 2)
        stream.synchronize()
        mark("destruction")
        graphs.destroy()
    return {"kernels": 16, "graph_launches": 8, "add_kernel": 16}


def copies(record: Record) -> Expected:
    """Copies in every direction, from pageable and pinned memory, and a memory set."""
    import torch

    pageable, pinned = torch.ones(1000), torch.ones(2000).pin_memory()
    target, other = torch.empty(2000, device="cuda"), torch.empty(2000, device="cuda")
    driver = ctypes.CDLL("libcuda.so.1")
    torch.cuda.synchronize()
    with record() as mark:
        mark("host to device")
        target[:1000].copy_(pageable)
        target.copy_(pinned, non_blocking=True)
        mark("device to device")
        other.copy_(target)
        mark("device to host")
        pageable.copy_(other[:1000])
        pinned.copy_(other, non_blocking=True)
        mark("set")
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        driver.cuMemsetD32Async(ctypes.c_uint64(target.data_ptr()), 7, ctypes.c_size_t(500), stream)
        other.zero_()
        torch.cuda.synchronize()
    return {"memcpys": 5, "memsets": 1}


def nvtx(record: Record) -> Expected:
    """Nested NVTX ranges around launches."""
    import torch

    tensors = _tensors(BLOCK)
    _launch(tensors)
    torch.cuda.synchronize()
    with record():
        torch.cuda.nvtx.range_push("outer")
        _launch(tensors)
        torch.cuda.nvtx.range_push("inner")
        _launch(tensors)
        torch.cuda.nvtx.range_pop()
        with torch.cuda.nvtx.range("second"):
            _launch(tensors)
        torch.cuda.nvtx.range_pop()
        _launch(tensors)
        torch.cuda.synchronize()
    return {"kernels": 4, "ranges": 3}


def threads(record: Record) -> Expected:
    """Four threads that launch at the same time, 10 times each, on streams of their own."""
    import torch

    tensors = _tensors(BLOCK)
    _launch(tensors)
    torch.cuda.synchronize()

    def work(mark: Mark, number: int) -> None:
        torch.cuda.set_device(0)
        mark(f"thread {number}")
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(10):
                _launch(tensors)

    with record() as mark:
        workers = [threading.Thread(target=work, args=(mark, number)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        torch.cuda.synchronize()
    return {"kernels": 40, "threads": 4}


def failing(record: Record) -> Expected:
    """Launches that the driver refuses, between launches that run."""
    import torch

    tensors = _tensors(BLOCK)
    kernel = _launch(tensors)
    driver = ctypes.CDLL("libcuda.so.1")
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    function = ctypes.c_void_p(kernel.function)
    zero = ctypes.c_uint64(0)  # more arguments than the kernel has
    arguments = (ctypes.c_void_p * 32)(*[ctypes.addressof(zero)] * 32)
    torch.cuda.synchronize()
    with record() as mark:
        for grid, block in (((1, 1, 1), (4096, 1, 1)), ((1, 70000, 1), (32, 1, 1))):
            _launch(tensors)
            mark("refused")
            driver.cuLaunchKernel(function, *grid, *block, 0, stream, arguments, None)
        _launch(tensors)
        torch.cuda.synchronize()
    return {"kernels": 3, "failed_launches": 2}


def double(record: Record) -> Expected:
    """Launches of the double of libcupti: checks the recorder where there is no GPU."""
    import os

    library = ctypes.CDLL(os.environ["RECORDED_CUPTI"])
    with record() as mark:
        mark("launches")
        for number in range(10):
            library.fake_cupti_launch(b"kernel_%d" % (number % 2), ctypes.c_uint32(number % 2))
        library.fake_cupti_failing_launch(b"refused", 1)
        library.fake_cupti_copy(1, ctypes.c_uint64(4096), 0)
        library.fake_cupti_nvtx_push(b"range")
        library.fake_cupti_nvtx_pop()
        recorded = library.fake_cupti_graph_create()
        for _ in range(3):
            library.fake_cupti_graph_add_kernel(recorded, b"kernel_0", 0)
        executable = library.fake_cupti_graph_instantiate(recorded)
        library.fake_cupti_graph_launch(executable, 0)
        library.fake_cupti_graph_launch(executable, 0)
    return {"kernels": 16, "failed_launches": 1, "memcpys": 1, "ranges": 1, "graph_launches": 2}


GPU_WORKLOADS = (
    *("triton", "eager", "compiled", "graph", "graph_traced", "graph_late", "graph_changes"),
    *("copies", "nvtx", "threads", "failing"),
)
