"""The profiler's estimate of its own cost, against the truth: python -m benchmarks.micro.own_cost.

Programs whose time is spent in small calls run bare and recorded in turn, in one process. What
recording adds to the processor time of the process is the truth, in which the thread that consumes
records is contained; the session's own estimate is what its profile would say. Needs torch.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import torch

import proton_bench as proton
from benchmarks.interleaved import added_ratio, median, print_machine, print_row
from proton_bench import _native as native
from proton_bench.recording.models.torch_context import torch_context
from proton_bench.recording.session.provenance import estimated_cost_ns
from proton_bench.recording.session.recording import find_session

BAR = "0.67 to 1.5"
PAIRS = 40
BLOCKS = 2

Counts = Callable[[], dict[str, int]]


@contextmanager
def in_call_paths(context: str) -> Iterator[Counts]:
    """Record scopes, and what else the context names, as beside a GPU."""
    core = native.Session(context, False)
    torch_context.hold(core.id, context)
    core.activate()
    yield core.counts
    core.deactivate()
    torch_context.release(core.id)
    core.remove()


@contextmanager
def on_the_cpu(context: str) -> Iterator[Counts]:
    """Record with the backend `cpu`."""
    with TemporaryDirectory() as folder:
        number = proton.start(f"{folder}/profile", backend="cpu", context=context)
        assert number is not None
        session = find_session(number)
        assert session is not None
        yield session.counts
        proton.finalize(number)


@dataclass(frozen=True)
class Case:
    """A program, and how it is recorded."""

    name: str
    work: Callable[[], None]
    recorded: Callable[[str], Any]
    context: str

    def pair(self) -> tuple[float, float]:
        """Return nanoseconds that recording added, and that it says it added."""
        before_ns = self._blocks_ns()
        with self.recorded(self.context) as counts:
            recorded_ns = self._blocks_ns() + self._blocks_ns()
            native.drain()
            estimate_ns = estimated_cost_ns(counts())
        return recorded_ns - before_ns - self._blocks_ns(), estimate_ns

    def _blocks_ns(self) -> int:
        start_ns = time.process_time_ns()
        for _ in range(BLOCKS):
            self.work()
        return time.process_time_ns() - start_ns


def training() -> Callable[[], None]:
    """Return training steps of a small transformer layer stack."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(1, 4, 8)

    def work() -> None:
        for _ in range(5):
            optimizer.zero_grad()
            model(data).sum().backward()
            optimizer.step()

    return work


def inference() -> Callable[[], None]:
    """Return forward passes of a small convolutional model."""
    parts = [
        part
        for _ in range(10)
        for part in (torch.nn.Conv1d(4, 4, 3, padding=1), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
    ]
    model = torch.nn.Sequential(*parts).eval()
    data = torch.randn(1, 4, 8)

    def work() -> None:
        with torch.no_grad():
            for _ in range(20):
                model(data)

    return work


def modules() -> Callable[[], None]:
    """Return calls of modules that compute nothing."""
    model = torch.nn.Sequential(*[torch.nn.Identity() for _ in range(200)])
    data = torch.ones(4)

    def work() -> None:
        for _ in range(20):
            model(data)

    return work


def scopes() -> None:
    """Open scopes around a call that does little."""
    for number in range(10_000):
        with proton.scope("scope"):
            divmod(number, 7)


def main() -> None:
    """Print what was added, what was estimated, and the ratio."""
    parser = argparse.ArgumentParser(description="The estimate of the profiler's own cost.")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    train, infer, call = training(), inference(), modules()
    cases = [
        Case("training, cpu backend", train, on_the_cpu, "shadow"),
        Case("training, cpu backend, layers+ops", train, on_the_cpu, "layers+ops"),
        Case("training, layers+ops", train, in_call_paths, "layers+ops"),
        Case("training, layers", train, in_call_paths, "layers"),
        Case("inference, layers+ops", infer, in_call_paths, "layers+ops"),
        Case("empty modules, layers", call, in_call_paths, "layers"),
        Case("scopes", scopes, in_call_paths, "shadow"),
        Case("scopes, cpu backend", scopes, on_the_cpu, "shadow"),
    ]
    print_machine()
    print(f"torch {torch.__version__}, {options.pairs} pairs")
    gc.freeze()
    gc.disable()  # it comes at random moments
    costs: dict[str, list[tuple[float, float]]] = {case.name: [] for case in cases}
    for _ in range(options.pairs + 1):
        for case in cases:
            costs[case.name].append(case.pair())
    for name, pairs in costs.items():
        added, estimated = zip(*pairs[1:], strict=True)  # the first one warms up
        print_row(f"{name}: added", f"{median([each / 1e6 for each in added]):.2f} ms")
        print_row(f"{name}: estimated", f"{median([each / 1e6 for each in estimated]):.2f} ms")
        print_row(f"{name}: estimated over added", f"{added_ratio(estimated, added):.2f}", BAR)


if __name__ == "__main__":
    main()
