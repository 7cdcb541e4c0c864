"""A program with scopes in what torch.compile compiles; prints the result of each of its cases.

``python compiled_program.py <profile> <recording|idle> <case>...``
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounter, EagerAndRecordGraphs
from torch.utils.checkpoint import checkpoint

import proton_bench as proton

X = torch.ones(4, 4)


@proton.scope("decorated")
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x.exp()


@proton.cpu_timed_scope("decorated timed")
def decorated_timed(x: torch.Tensor) -> torch.Tensor:
    return x.cos()


@proton.state("decorated state")
def decorated_state(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def generated(x: torch.Tensor) -> Any:
    with proton.scope("generator"):
        for i in range(2):
            yield x + i


BUILT = proton.scope("built", {"built": 1})
BUILT_STATE = proton.state("built state")


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, 4)
        self.scope = proton.scope("attribute")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with proton.scope("outer", {"rows": x.shape[0], "half": 0.5, "pair": [1, 2]}):
            x = self.layer(x)
            for i in range(2):
                with proton.scope(f"step {i}", {"mean (pty)": x.mean()}):
                    x = self.layer(x).relu()
        proton.enter_scope("function", metrics={"text (pty)": "a"})
        x = x * 2
        proton.exit_scope("function")
        with proton.cpu_timed_scope("timed"):
            x = x + 1
        with proton.state("state"), proton.metadata_state("kernel"):
            x = x.cos()
        proton.enter_state("function state")
        x = x + 2
        proton.exit_state()
        with BUILT, BUILT_STATE, self.scope:
            x = x * 3
        x = decorated(decorated_timed(decorated_state(x)))
        for each in generated(x):
            x = x + each
        return x.sum()


class Plain(Model):
    """The same without a scope."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[0]
        x = self.layer(x)
        for _ in range(2):
            x.mean()
            x = self.layer(x).relu()
        x = x * 2
        x = x + 1
        x = x.cos()
        x = x + 2
        x = x * 3
        x = x.sin().cos().exp()
        start = x
        for i in range(2):
            each = start + i
            x = x + each
        return x.sum()


def graphs(model: torch.nn.Module) -> list[str]:
    backend = EagerAndRecordGraphs()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    for _ in range(3):
        compiled(X)
    return [str(graph.code) for graph in backend.graphs]


def all_forms(backend: str) -> Callable[[], bool]:
    def run() -> bool:
        model = Model()
        compiled = torch.compile(model, backend=backend, fullgraph=True)
        for rows in (4, 5, 6):
            x = torch.ones(rows, 4)
            compiled(x).backward()
            if not torch.allclose(compiled(x), model(x)):
                return False
        return True

    return run


def inductor() -> bool:
    """Run all forms forwards: each kernel is a call of the C++ compiler."""
    model = Model()
    with torch.no_grad():
        return torch.allclose(torch.compile(model, fullgraph=True)(X), model(X))


def names_of_layers() -> int:
    class Layer(torch.nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with proton.scope(self.name):
                return x + 1

    counter = CompileCounter()
    for i in range(20):
        torch.compile(Layer(f"layer {i}"), backend=counter, fullgraph=True)(X)
    return counter.frame_count


def sizes() -> int:
    counter = CompileCounter()

    @torch.compile(backend=counter, fullgraph=True, dynamic=True)
    def run(x: torch.Tensor) -> torch.Tensor:
        with proton.scope("rows", {"rows": x.shape[0]}):
            return x + 1

    for rows in range(3, 9):
        run(torch.ones(rows, 2))
    return counter.frame_count


def break_inside() -> list[float]:
    backend = EagerAndRecordGraphs()

    @torch.compile(backend=backend)
    def run(x: torch.Tensor) -> torch.Tensor:
        with proton.scope("broken", {"runs": 1}), proton.state("broken state"):
            x = x + 1
            torch._dynamo.graph_break()
            return x * 2

    return [run(X).sum().item(), run(X).sum().item(), len(backend.graphs)]


def subclass() -> float:
    class Mine(proton.scope):
        pass

    @torch.compile(backend="eager")
    def run(x: torch.Tensor) -> torch.Tensor:
        with Mine("mine"):
            return x + 1

    return run(X).sum().item()


def exported() -> list[bool]:
    graphs = [torch.export.export(Model(), (X,), strict=strict).graph for strict in (True, False)]
    return ["proton" in str(graph) for graph in graphs]


def traced() -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        graph = torch.jit.trace(decorated, (X,)).graph
    # Not the names of files, which may have the word in them.
    return "proton" in graph.str(print_source_ranges=False)


def checkpointed(backend: str) -> Callable[[], list[float]]:
    def run() -> list[float]:
        model = Model()

        @torch.compile(backend=backend, fullgraph=True)
        def step(x: torch.Tensor) -> torch.Tensor:
            with proton.scope("checkpointed"):
                return checkpoint(model, x, use_reentrant=False)

        x = X.clone().requires_grad_()
        step(x).backward()
        y = X.clone().requires_grad_()
        model(y).backward()
        return [x.grad.sum().item(), y.grad.sum().item()]

    return run


def raised() -> str:
    @torch.compile(backend="eager", fullgraph=True)
    def run(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        with proton.scope("failing"):
            return x[index]

    for index in (100, 0):
        try:
            run(X, torch.tensor([index]))
        except (IndexError, RuntimeError) as error:
            failure = type(error).__name__
    with proton.scope("after"):
        X.tan()
    return failure


def moved() -> bool:
    """Run two layers whose kernels a pass has moved behind their scopes."""
    from torch._inductor import config
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Move(CustomGraphPass):
        def __call__(self, graph: Any) -> None:
            for node in reversed([each for each in graph.nodes if len(each.users) == 1]):
                if node.op == "call_function":
                    next(iter(node.users)).prepend(node)

        def uuid(self) -> bytes:
            return b"move"

    layers = [torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)]

    def forward(x: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(layers):
            with proton.scope(f"layer {number}"):
                x = layer(x)
        return x.softmax(-1)

    x = torch.ones(8, 64)
    with config.patch(post_grad_custom_pre_pass=Move()), torch.no_grad():
        compiled = torch.compile(forward, fullgraph=True)
        return torch.allclose(compiled(x), forward(x), atol=1e-5)


CASES: dict[str, Callable[[], object]] = {
    "same graphs": lambda: graphs(Model()) == graphs(Plain()),
    "number of graphs": lambda: len(graphs(Model())),
    "breaks": lambda: torch._dynamo.explain(Model())(X).graph_break_count,
    "eager": all_forms("eager"),
    "aot_eager": all_forms("aot_eager"),
    "inductor": inductor,
    "names of layers": names_of_layers,
    "sizes": sizes,
    "break inside": break_inside,
    "subclass": subclass,
    "exported": exported,
    "traced": traced,
    "checkpointed": checkpointed("aot_eager"),
    "raised": raised,
    "moved": moved,
}


def main() -> None:
    profile, state, *names = sys.argv[1:]
    if state == "recording":
        proton.start(profile)
    results: dict[str, object] = {}
    for name in names:
        torch._dynamo.reset()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results[name] = CASES[name]()
        ours = [str(each.message) for each in caught if "proton" in str(each.message).lower()]
        results[f"{name}: warnings"] = ours
    if state == "recording":
        proton.finalize()
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
