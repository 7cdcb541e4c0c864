"""Programs with models for ``model_kernels.py``."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import torch
from model_kernels import Kernels, launch
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH = 8


class Attention(nn.Module):
    """As that of GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        """Attend."""
        q, k, v = self.c_attn(x).chunk(3, -1)
        return self.c_proj((q @ k.transpose(-1, -2)).softmax(-1) @ v)


class Block(nn.Module):
    """One of a stack."""

    def __init__(self) -> None:
        super().__init__()
        self.ln = nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU())

    def forward(self, x: Any) -> Any:
        """Two residual connections."""
        x = x + self.attn(self.ln(x))
        return x + self.mlp(x)


class Model(nn.Module):
    """A small GPT-2."""

    def __init__(self, checkpointing: str = "", blocks: int = 2) -> None:
        super().__init__()
        self.h = nn.ModuleList([Block() for _ in range(blocks)])
        self.head = nn.Linear(WIDTH, WIDTH)
        self.checkpointing = checkpointing

    def forward(self, x: Any) -> Any:
        """Run the stack."""
        for block in self.h:
            if self.checkpointing:
                x = checkpoint(block, x, use_reentrant=self.checkpointing == "reentrant")
            else:
                x = block(x)
        return self.head(x)


def data() -> Any:
    """Return a batch whose gradient is wanted."""
    return torch.ones(2, 3, WIDTH, requires_grad=True)


def forward() -> None:
    """Run a forward pass without gradients."""
    with torch.no_grad(), Kernels():
        Model()(data())


def training() -> None:
    """Run two steps."""
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *_: launch("step_kernel"))
    for _ in range(2):
        with Kernels():
            model(data()).sum().backward()
        optimizer.step()


def backward_elsewhere() -> None:
    """Run the backward pass on another thread, as that of a GPU is."""
    model = Model()
    loss = model(data()).sum()

    def run() -> None:
        with Kernels():
            loss.backward()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def two_threads() -> None:
    """Train on two threads at once, each in a model of its own class."""

    class Other(Model):
        """Another name."""

    barrier = threading.Barrier(2)

    def train(model: nn.Module) -> None:
        barrier.wait()
        for _ in range(20):
            loss = model(data()).sum()
            with Kernels():
                loss.backward()

    threads = [threading.Thread(target=train, args=(made,)) for made in (Model(), Other())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def checkpointed() -> None:
    """Recompute blocks in the backward pass."""
    model = Model("plain")
    loss = model(data()).sum()
    with Kernels():
        loss.backward()


def checkpointed_reentrant() -> None:
    """The same in torch's older way."""
    model = Model("reentrant")
    loss = model(data()).sum()
    with Kernels():
        loss.backward()


class Doubled(torch.autograd.Function):
    """Launches in both passes."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        """Double."""
        launch("doubled_kernel")
        return x * 2

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        """Double."""
        launch("doubled_backward_kernel")
        return gradients[0] * 2


class Custom(nn.Module):
    """A layer with a function of its own."""

    def forward(self, x: Any) -> Any:
        """Double."""
        return Doubled.apply(x)


def custom_function() -> None:
    """Run a torch.autograd.Function in both passes."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), Custom())
    model(data()).sum().backward()


def double_backward() -> None:
    """Differentiate a gradient, as a penalty on it does."""
    model = Model()
    x = data()
    (gradient,) = torch.autograd.grad(model(x).tanh().sum(), x, create_graph=True)
    with Kernels():
        gradient.square().sum().backward()


def gradient_in_forward() -> None:
    """Differentiate inside of a forward pass."""

    class Penalty(nn.Module):
        """As of a GAN."""

        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            """Differentiate."""
            y = self.net(x).sum()
            with Kernels():
                return torch.autograd.grad(y, x)[0]

    Penalty()(data())


def scopes_around() -> None:
    """Name both passes."""
    from proton_bench import scope

    model = Model()
    with scope("fwd"):
        loss = model(data()).sum()
    with scope("bwd"), Kernels():
        loss.backward()


def exceptions() -> list[str]:
    """Leave layers by exceptions of every kind, and go on."""

    class Bad(nn.Module):
        """Raises."""

        def __init__(self, error: BaseException) -> None:
            super().__init__()
            self.error = error

        def forward(self, x: Any) -> Any:
            """Raise."""
            raise self.error

    caught = []
    for error in (ValueError("v"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()):
        model = nn.Sequential(nn.Linear(WIDTH, WIDTH), Bad(error))
        try:
            model(data())
        except BaseException as raised:  # noqa: BLE001 - each kind is tried
            caught.append(type(raised).__name__)
    launch("after_kernel")
    return caught


def recursion() -> None:
    """Call a module inside of itself."""

    class Nested(nn.Module):
        """Calls itself."""

        def forward(self, x: Any, depth: int) -> Any:
            """Go down."""
            if depth:
                return self(x, depth - 1)
            launch("deepest_kernel")
            return x

    Nested()(data(), 2)


def shared() -> None:
    """Call a module that has two names."""

    class Twice(nn.Module):
        """Has one module under two names."""

        def __init__(self) -> None:
            super().__init__()
            self.first = nn.ReLU()
            self.second = self.first

        def forward(self, x: Any) -> Any:
            """Call both."""
            return self.second(self.first(x))

    with torch.no_grad(), Kernels():
        Twice()(data())


def out_of_root() -> None:
    """Call parts of a model by themselves, after the model and before it."""
    known, unknown = Model(), Model()
    with torch.no_grad():
        known(data())
        with Kernels():
            known.head(data())
            known.h[1].mlp(data())
            unknown.h[0].mlp(data())


def added_later() -> None:
    """Add a module after the first call, and call one that no module has."""
    model: Any = nn.Sequential(nn.Linear(WIDTH, WIDTH))
    with torch.no_grad():
        model(data())
        model.append(nn.Tanh())

        class Hidden(nn.Module):
            """Makes its own modules as it runs."""

            def forward(self, x: Any) -> Any:
                """Call one that is new every time."""
                return nn.Softmax(dim=-1)(x)

        model.append(Hidden())
        with Kernels():
            model(data())


def wrappers() -> None:
    """Call a model through wrappers that have its place."""
    from torch.nn.parallel import DataParallel

    with torch.no_grad(), Kernels():
        DataParallel(Model())(data())


def distributed() -> None:
    """Train in DistributedDataParallel, which reduces gradients as they become ready."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    model = DistributedDataParallel(Model())

    def reduced(bucket: Any) -> Any:
        launch("reduce_kernel")
        done: Any = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    model.register_comm_hook(None, lambda _state, bucket: reduced(bucket))
    loss = model(data()).sum()
    with Kernels():
        loss.backward()
    dist.destroy_process_group()


def script() -> None:
    """Call a scripted module, alone and in a model."""
    scripted = torch.jit.trace(nn.Linear(WIDTH, WIDTH), data())
    with torch.no_grad(), Kernels():
        nn.Sequential(scripted)(data())


def modules_die() -> list[int]:
    """Make and drop models; their names go with them."""
    from proton_bench import _native

    counts = []
    for _ in range(3):
        model = Model()
        with torch.no_grad():
            model(data())
        del model
        gc.collect()
        counts.append(_native.named_module_count())
    return counts


def explicit_scopes() -> None:
    """Open a scope outside of a layer and close it inside, and the other way round."""
    from proton_bench import enter_scope, exit_scope

    class Opens(nn.Module):
        """Opens a scope."""

        def forward(self, x: Any) -> Any:
            """Open."""
            enter_scope("opened inside")
            return x

    class Closes(nn.Module):
        """Closes a scope."""

        def forward(self, x: Any) -> Any:
            """Close."""
            exit_scope("opened outside")
            launch("closed_kernel")
            return x

    enter_scope("opened outside")
    Closes()(data())
    Opens()(data())
    launch("opened_kernel")
    exit_scope("opened inside")
    launch("end_kernel")


def in_state() -> None:
    """Launch in a state inside of a layer."""
    from proton_bench.recording.context.state import state

    class Stateful(nn.Module):
        """Launches in a state."""

        def forward(self, x: Any) -> Any:
            """Launch."""
            with state("prepare"):
                launch("state_kernel")
            return x

    with state("outer"):
        Stateful()(data())


def timeline() -> list[tuple[str, str]]:
    """Return name and category of the slices of a timeline, in the order of their starts."""
    import json
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import proton_bench

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        proton_bench.start(path, backend="cpu", data="trace", context="layers")
        with torch.no_grad():
            Model()(data())
        proton_bench.finalize()
        events = json.loads(path.with_suffix(".chrome_trace").read_text())["traceEvents"]
    slices = [each for each in events if each.get("cat") in ("layer", "cpu_op")]
    return [(each["name"], each["cat"]) for each in sorted(slices, key=lambda each: each["ts"])]


def timed_operators(program: Callable[[], object]) -> list[str]:
    """Return the paths of the operators that a program runs, where they are timed.

    Torch compiles nothing where something looks at every operator from Python.
    """
    import proton_bench
    from proton_bench.recording.session.session import known_session

    number = proton_bench.start("", backend="cpu", context="layers", mode="cpu:depth=0")
    program()
    profile = known_session(number or 0).profile()
    session = known_session(number or 0)
    session.finalize(formats=())
    return [" > ".join(profile.path(row)) for row in range(profile.depths().size)]


def compiled() -> dict[str, Any]:
    """Train a compiled model twice: the second time it is not compiled again."""
    from proton_bench import _native

    model = Model(blocks=1)  # each kernel is a call of the C++ compiler
    step = torch.compile(model)
    found = timed_operators(lambda: step(data()).sum().backward())
    again = timed_operators(lambda: step(data()).sum().backward())
    frames = torch._dynamo.utils.counters["frames"]
    counts = [frames["total"], frames["ok"], _native.thread_depth()]
    return {"first": found, "again": again, "counts": counts}


def compiled_blocks() -> list[str]:
    """Compile the blocks of a model one by one: one code runs them all."""
    model = Model()
    for block in model.h:
        block.compile()

    def run() -> None:
        with torch.no_grad():
            model(data())

    timed_operators(run)
    return timed_operators(run)


def twice_attached() -> list[bool]:
    """Say whether the function that calls modules is the same object all the time."""
    before = nn.Module.__call__
    from proton_bench import _native

    _native.watch_modules(nn.Module.__call__)
    _native.watch_modules(nn.Module.__call__)
    nn.Linear(WIDTH, WIDTH)(data())
    return [nn.Module.__call__ is before]
