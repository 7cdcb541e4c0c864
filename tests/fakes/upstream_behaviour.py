"""What calls of ``triton.profiler`` return and raise where there is no GPU, upstream's or ours.

    python tests/fakes/upstream_behaviour.py theirs|ours

prints one JSON object: for each function below its result, or the classes and the text of its
error. Upstream records with a simulated driver; ours on the CPU.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakes import upstream_facts

CALLS: dict[str, Callable[[], Any]] = {}
_is_ours = sys.argv[1:] == ["ours"]
_folder = Path(tempfile.mkdtemp())
proton: Any = None


def call(function: Callable[[], Any]) -> Callable[[], Any]:
    """Note a function by its name."""
    CALLS[function.__name__] = function
    return function


def begin(name: str = "run", **options: Any) -> Any:
    backend = "cpu" if _is_ours else "instrumentation"
    return proton.start(str(_folder / name), **{"backend": backend, **options})


def tree(name: str = "run") -> Any:
    """Finalize all, and return names and metrics of the file."""
    proton.finalize()

    def shown(node: Any) -> Any:
        metrics = {k: v for k, v in node["metrics"].items() if not k.startswith(("wall", "cpu_"))}
        return [node["frame"]["name"], metrics, [shown(child) for child in node["children"]]]

    return [
        shown(each) for each in json.loads((_folder / f"{name}.hatchet").read_text())[0]["children"]
    ]


@call
def numbers_of_sessions() -> Any:
    first, second = begin("a"), begin("b")
    again = begin("a")
    proton.finalize(first)
    proton.finalize()
    return [second - first, again - first, (_folder / "a.hatchet").exists()]


@call
def what_functions_return() -> Any:
    session = begin()
    found = [
        proton.activate(session),
        proton.deactivate(session),
        proton.activate(),
        proton.deactivate(),
    ]
    return [*found, proton.finalize(session), proton.finalize(session), proton.finalize()]


@call
def finalize_a_session_that_never_was() -> Any:
    return proton.finalize(4711)


@call
def activate_a_session_that_never_was() -> Any:
    return proton.activate(4711)


@call
def deactivate_a_session_that_never_was() -> Any:
    return proton.deactivate(4711)


@call
def unknown_context() -> Any:
    return begin(context="shade")


@call
def unknown_data() -> Any:
    return begin(data="list")


@call
def unknown_backend() -> Any:
    return begin(backend="tpu")


@call
def unknown_hook() -> Any:
    return begin(hook="torch")


@call
def unknown_format() -> Any:
    begin()
    return proton.finalize(None, "yaml")


@call
def profiling_is_on_while_a_session_lives() -> Any:
    before = proton.flags.flags.profiling_on
    begin()
    during = proton.flags.flags.profiling_on
    proton.deactivate()
    paused = proton.flags.flags.profiling_on
    proton.finalize()
    return [before, during, paused, proton.flags.flags.profiling_on]


@call
def scopes_of_all_forms() -> Any:
    begin()
    with proton.scope("a", {"x": 1}) as held:
        kinds = [type(held.id).__name__, held.name, held.metrics]

        @proton.scope("b", {"x": 2.5})
        def decorated(value: int) -> int:
            return value + 1

        kinds.append(decorated(1))
        entered = proton.enter_scope("c", metrics={"y": [1, 2]})
        kinds.append(proton.exit_scope("c") == entered)
    with proton.cpu_timed_scope("d", {"z": 3}) as timed:
        kinds.append(isinstance(timed, proton.scope))
    return [kinds, tree()]


@call
def scopes_while_nothing_records() -> Any:
    with proton.scope("a", {"x": 1}) as held:
        entered = proton.enter_scope("b")
    return [held.id, entered, proton.exit_scope()]


@call
def scopes_while_all_sessions_pause() -> Any:
    session = begin()
    proton.deactivate(session)
    entered = proton.enter_scope("a")
    left = proton.exit_scope()
    return [isinstance(entered, int), entered == left, tree()]


@call
def scopes_to_be_exited() -> Any:
    begin()
    first = proton.enter_scope("a")
    second = proton.enter_scope("b")
    listed = sys.modules["triton.profiler.scope"].thread_local_scopes.scopes
    found = [
        list(each) == [number, name]
        for each, number, name in zip(listed, (first, second), ("a", "b"), strict=True)
    ]
    proton.exit_scope()
    proton.exit_scope()
    proton.finalize()
    return found


@call
def exit_of_another_scope() -> Any:
    begin()
    proton.enter_scope("a")
    return proton.exit_scope("b")


@call
def reserved_metric() -> Any:
    return proton.cpu_timed_scope("a", {"cpu_time": 1})


@call
def metric_suffixes() -> Any:
    begin()
    for value in (1.0, 2.0):
        with proton.scope("a", {"own (exc)": value, "fact (pty)": value, "sum": value}):
            pass
    return tree()


@call
def types_of_rooflines() -> Any:
    begin()
    with proton.scope("a", {"flops": 3, "flops8": True, "bytes": 4.0, "other": 2}):
        pass
    return tree()


@call
def tensors_of_one_element() -> Any:
    import torch

    metrics = {"flops": torch.tensor([8.0]), "bytes": torch.tensor([[7]])}
    begin()
    with proton.scope("a", metrics):
        pass
    return tree()


@call
def tensors_of_several_elements() -> Any:
    import torch

    metrics = {"flops": torch.tensor([8.0, 2.0]), "bytes": [1, 2]}
    begin()
    with proton.scope("a", metrics):
        pass
    return tree()


@call
def transformed_metrics() -> Any:
    import torch

    given = {"flops": 3, "bytes": torch.tensor([8.0]), "x": [1], "flops8": torch.tensor([1, 2])}
    return list(proton.metric.transform_tensor_metrics(given))


@call
def states() -> Any:
    begin()
    with proton.scope("a"), proton.state("s"), proton.scope("b", {"x": 1}):
        pass
    with proton.metadata_state("k"), proton.scope("c", {"x": 1}):
        pass
    return tree()


@call
def names_of_states() -> Any:
    module = sys.modules["triton.profiler.state"]
    return [
        module.COMPUTE_METADATA_SCOPE_NAME,
        module.COMPUTE_METADATA_SCOPE_PREFIX,
        module.get_metadata_state_name(),
        module.get_metadata_state_name("k"),
        proton.metadata_state("k").name,
    ]


@call
def depth_of_the_context() -> Any:
    off = proton.context.depth()
    session = begin()
    proton.enter_scope("a")
    inside = proton.context.depth(session)
    proton.exit_scope()
    outside = proton.context.depth(session)
    proton.finalize()
    return [off, inside, outside]


@call
def depth_of_a_session_that_never_was() -> Any:
    begin()
    return proton.context.depth(4711)


@call
def data_while_recording() -> Any:
    session = begin()
    with proton.scope("a", {"x": 1}):
        pass
    first = proton.data.get(session)[0]["children"][0]
    phase = proton.data.advance_phase(session)
    packed = proton.data.get_msgpack(session, 0)
    complete = proton.data.is_phase_complete(session, 1)
    proton.data.clear(session, 0)
    proton.finalize()
    return [first["frame"]["name"], first["metrics"]["x"], phase, type(packed).__name__, complete]


@call
def data_of_no_session() -> Any:
    names = ("get", "get_msgpack", "advance_phase", "is_phase_complete", "clear")
    return [getattr(proton.data, name)(None) for name in names]


@call
def data_of_a_session_that_never_was() -> Any:
    return proton.data.get(4711)


@call
def data_of_a_phase_that_never_was() -> Any:
    return proton.data.get(begin(), 5)


@call
def decorated_functions() -> Any:
    options = {"backend": "cpu" if _is_ours else "instrumentation"}

    @proton.profile(name=str(_folder / "decorated"), **options)
    def add(a: int, b: int = 2) -> int:
        """Add."""
        with proton.scope("a", {"x": 1}):
            return a + b

    results = [add(1), add.__name__, add.__doc__, str(inspect.signature(add))]
    return [results, tree("decorated")]


@call
def option_that_profile_lacks() -> Any:
    return proton.profile(nam="a")


def _without_a_gpu() -> None:
    """Have upstream record without a device and without compiling for one."""
    from fakes.triton_driver import FakeDriver

    FakeDriver()
    hooks = sys.modules["triton.profiler.hooks.hook"]
    silent = dict.fromkeys(("activate", "deactivate"), lambda self: None)
    nothing = type("Nothing", (hooks.Hook,), silent)
    sys.modules["triton.profiler.profile"].InstrumentationHook = lambda mode: nothing()
    for name in ("scope", "hooks.launch"):
        module = sys.modules[f"triton.profiler.{name}"]
        if hasattr(module, "set_metric_kernels"):
            module.set_metric_kernels = lambda: None


def outcome(function: Callable[[], Any]) -> Any:
    """Return the result of a call, and leave no session behind."""
    try:
        return {"returned": json.loads(json.dumps(function()))}
    except Exception as error:  # noqa: BLE001 - any error is a result
        classes = [each.__name__ for each in type(error).__mro__]
        return {"raised": classes[: classes.index("Exception")], "text": str(error)}
    finally:
        sys.modules["triton.profiler.hooks.hook"].HookManager.unregister()
        proton.finalize()


def main() -> None:
    global proton
    if _is_ours:
        from proton_bench.recording import compat

        compat.install()
    import importlib

    proton = importlib.import_module("triton.profiler")
    for name in (
        "hooks.hook",
        "hooks.launch",
        "hooks.instrumentation",
        "scope",
        "state",
        "flags",
        "viewer",
        "proton",
        "metric",
        "language",
    ):
        with contextlib.suppress(ModuleNotFoundError):  # of a later version
            importlib.import_module(f"triton.profiler.{name}")
    if not _is_ours:
        _without_a_gpu()
    CALLS.update(upstream_facts.CALLS)
    sys.stdout.write(json.dumps({name: outcome(each) for name, each in CALLS.items()}) + "\n")


if __name__ == "__main__":
    main()
