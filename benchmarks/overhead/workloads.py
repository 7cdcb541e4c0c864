"""Workloads that a process of one arm runs block by block.

``prepare`` comes before the unprofiled blocks and, where ``recaptures``, again after the profiler
has started, so that it sees CUDA graphs being captured. ``block`` ends when the GPU has. Sizes for
a machine without a GPU are tiny: there they only show that everything runs.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.overhead.model import LanguageModel, Scope, Shape, Trainer, no_scope

EAGER = Shape(12, 768, 12, 4, 128, 8192)
COMPILED = Shape(6, 768, 12, 4, 128, 8192)
REPLAYED = Shape(12, 1024, 16, 8, 512, 8192)
SMALL = Shape(12, 768, 12, 1, 128, 8192)
DRY = Shape(1, 32, 2, 1, 8, 64)
WARM_UP = 3  # units; torch needs as many before a capture


class Workload(ABC):
    """A piece of work that can be repeated.

    Args:
        kind: "cuda", "double" or "cpu".

    Attributes:
        thread_s: Processor time in which this thread launched the newest block.
    """

    units = 1
    thread_s = 0.0
    dry_units = 2
    recaptures = False

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.device = torch.device("cuda" if kind == "cuda" else "cpu")
        if kind != "cuda":
            self.units = self.dry_units

    def prepare(self, scope: Scope | None) -> None:
        """Build, and run until everything is warm."""
        self.run(min(WARM_UP, self.units), scope)
        self.wait()

    def block(self, scope: Scope | None) -> int:
        """Run ``units`` units to their end, and return their number."""
        begin = time.thread_time()
        self.run(self.units, scope)
        self.thread_s = time.thread_time() - begin  # to wait for a GPU takes a processor, too
        self.wait()
        return self.units

    @abstractmethod
    def run(self, units: int, scope: Scope | None) -> None:
        """Launch the work of ``units`` units, in scopes if the tool has them."""

    def wait(self) -> None:
        """Wait for the GPU."""
        if self.kind == "cuda":
            torch.cuda.synchronize()


class Tiny(Workload):
    """Empty Triton kernels, four to a scope."""

    units = 4000
    dry_units = 8
    kernel = "empty"

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self._launch = self._launcher()

    def run(self, units: int, scope: Scope | None) -> None:
        """Launch ``units`` kernels."""
        launch = self._launch
        if scope is None:
            for _ in range(units // 4 or 1):
                launch()
                launch()
                launch()
                launch()
            return
        for _ in range(units // 4 or 1):
            with scope("layer"):
                launch()
                launch()
                launch()
                launch()

    def _launcher(self) -> Callable[[], object]:
        if self.kind != "cuda":
            return self._dry_launcher()
        from benchmarks.overhead import kernels

        kernel = getattr(kernels, self.kernel)[(1,)]
        data = torch.zeros(1, device=self.device)
        return lambda: kernel(data, 16)

    def _dry_launcher(self) -> Callable[[], object]:
        if self.kind == "double":
            from fakes.doubles import Cupti

            launch = Cupti()._functions["launch"]
            return lambda: launch(b"empty", 7)
        data = torch.zeros(1)
        return lambda: torch.neg(data)


class Metadata(Tiny):
    """The same with launch_metadata."""

    kernel = "described"

    def _dry_launcher(self) -> Callable[[], object]:
        bare = super()._dry_launcher()
        from triton import knobs
        from triton.compiler import LazyDict

        def launch() -> None:
            metadata = LazyDict({"name": "described", "function": 1, "stream": 7})
            metadata.add(lambda: {"name": "described_1", "flops32": 2.0, "bytes": 8}, ())
            knobs.runtime.launch_enter_hook(metadata)
            bare()
            knobs.runtime.launch_exit_hook(metadata)

        return launch


class Steps(Workload):
    """Training steps; each step's scope has a number where ``numbers`` is set."""

    units = 4
    shape = EAGER
    numbers = False

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.shape = self.shape if kind == "cuda" else DRY
        self.options = self._options()
        self._trainer: Trainer | None = None

    def prepare(self, scope: Scope | None) -> None:
        """Build the model; capture its graphs anew where it has some."""
        if self._trainer is None or self.recaptures:
            self._trainer = Trainer(self.shape, self.device, self.options)
        super().prepare(scope)

    def run(self, units: int, scope: Scope | None) -> None:
        """Run training steps."""
        assert self._trainer is not None
        for number in range(units):
            self._trainer.step(scope, f"step_{number}" if self.numbers else "step")

    def _options(self) -> dict[str, Any] | None:
        return None


class Compiled(Steps):
    """The same with torch.compile, whose kernels go through the static launcher."""

    units = 8
    shape = COMPILED

    def _options(self) -> dict[str, Any]:
        return {} if self.kind == "cuda" else {"backend": "aot_eager"}


class CompiledGraphs(Compiled):
    """The same with the CUDA graphs of torch.compile."""

    recaptures = True
    units = 16

    def prepare(self, scope: Scope | None) -> None:
        """Compile anew, which captures anew."""
        self._trainer = None
        torch._dynamo.reset()
        super().prepare(scope)

    def _options(self) -> dict[str, Any]:
        return {"mode": "reduce-overhead"} if self.kind == "cuda" else super()._options()


class Graph(Workload):
    """Replays of a captured forward pass."""

    units = 40
    recaptures = True
    shape = REPLAYED

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        torch.manual_seed(0)
        shape = self.shape if kind == "cuda" else DRY
        self._model = LanguageModel(shape).to(self.device, torch.bfloat16)
        size = (shape.batch, shape.length)
        self._tokens = torch.randint(shape.vocabulary, size, device=self.device)
        self._replay: Callable[[], object] = lambda: None

    def prepare(self, scope: Scope | None) -> None:
        """Capture the pass."""
        self._model.scope = scope
        if self.kind == "cuda":
            self._replay = self._capture(scope or no_scope)
        elif self.kind == "double":
            self._replay = self._capture_double(scope or no_scope)
        else:
            self._replay = lambda: self._model(self._tokens)
        super().prepare(scope)

    def run(self, units: int, scope: Scope | None) -> None:
        """Replay."""
        scope = scope or no_scope
        for _ in range(units):
            with scope("replay"):
                self._replay()

    def _capture(self, scope: Scope) -> Callable[[], object]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self._model(self._tokens)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph), scope("capture"):
            self._model(self._tokens)

        def replay() -> None:
            graph.replay()

        return replay

    def _capture_double(self, scope: Scope) -> Callable[[], object]:
        from fakes.doubles import Cupti

        cupti = Cupti()
        cupti.capture_begin(7)
        with scope("capture"):
            cupti.launch("captured", 7)
        graph = cupti.graph_instantiate(cupti.capture_end(7))
        return lambda: cupti.graph_launch(graph, 7)


class SmallGraph(Graph):
    """The same for one short sequence: kernels of microseconds, which is what graphs are for."""

    units = 200
    shape = SMALL


class Products(Workload):
    """Products of matrices of 4096 x 4096 in bf16."""

    units = 100

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        size = 4096 if kind == "cuda" else 16
        a, b = torch.randn(2, size, size, device=self.device, dtype=torch.bfloat16)
        self._product: Callable[[], object] = lambda: torch.mm(a, b)

    def run(self, units: int, scope: Scope | None) -> None:
        """Multiply."""
        scope = scope or no_scope
        for _ in range(units):
            with scope("product"):
                self._product()


class Streams(Workload):
    """Three streams of small kernels that do not fill the GPU, so that they keep their times."""

    units = 60

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self._data = [torch.randn(256, 256, device=self.device) for _ in range(3)]
        self._streams = [torch.cuda.Stream() for _ in range(3)] if kind == "cuda" else []

    def run(self, units: int, scope: Scope | None) -> None:
        """Launch on every stream in turn."""
        scope = scope or no_scope
        for unit in range(3 * units):
            number = unit % 3
            with scope(f"stream_{number}"):
                self._launch(number)

    def _launch(self, number: int) -> None:
        data = self._data[number]
        if not self._streams:
            torch.mm(data, data).relu_()
            return
        with torch.cuda.stream(self._streams[number]):
            torch.cuda._sleep(20_000)
            torch.mm(data, data).relu_()


class Threads(Workload):
    """Four threads that launch at the same time."""

    units = 100

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self._data = [torch.randn(512, 512, device=self.device) for _ in range(4)]

    def run(self, units: int, scope: Scope | None) -> None:
        """Launch from every thread."""
        scope = scope or no_scope

        def work(number: int) -> None:
            for _ in range(units):
                with scope(f"thread_{number}"):
                    torch.mm(self._data[number], self._data[number]).relu_()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class NumberedSteps(Steps):
    """Training steps whose scopes have numbers."""

    numbers = True


class NumberedCompiled(Compiled):
    """The same compiled."""

    numbers = True


MAKERS: dict[str, type[Workload]] = {
    "tiny": Tiny,
    "metadata": Metadata,
    "eager": Steps,
    "compiled": Compiled,
    "compiled_graphs": CompiledGraphs,
    "graph": Graph,
    "small_graph": SmallGraph,
    "matmul": Products,
    "eager_steps": NumberedSteps,
    "compiled_steps": NumberedCompiled,
    "streams": Streams,
    "threads": Threads,
}


def make(name: str, kind: str) -> Workload:
    """Return a workload.

    Args:
        name: One of ``MAKERS``.
        kind: "cuda", "double" or "cpu".
    """
    return MAKERS[name](kind)
