"""Scopes, states and their functions in programs compiled by torch.compile.

Dynamo cannot trace native objects: it would break the graph at each scope. So it gets Python
functions to trace instead. Their effect on a graph depends on when it is compiled:

- Without a session: none. The graph is that of a program without scopes, and stays so when a
session starts later, because a start must not recompile a program.
- With a session: operators that enter and leave the range. They run in the graph's order with the
  backends ``eager`` and ``aot_eager``; ``inductor_ranges`` puts them around Inductor's kernels.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from proton_bench.flags import flags
from proton_bench.recording.context.metric import add_scope_metrics
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.native import native

# Operators of graphs, torch.ops.proton_bench. The number distinguishes uses of a range, so that no
# pass merges them.
_SCHEMAS = (
    "enter(str kind, str name, int number) -> ()",
    "exit(str kind, str name, int number) -> ()",
    "add_ints(str key, SymInt[] values, *, bool is_vector) -> ()",
    "add_floats(str key, float[] values, *, bool is_vector) -> ()",
    "add_text(str key, str value) -> ()",
    "add_tensor(str key, Tensor value) -> ()",
)
# Dynamo guards names, which are part of the graph. A frame compiled this often loses its ranges;
# otherwise it would be recompiled for each name until Dynamo gives up.
_MOST_COMPILES = 4

_Functions = dict[Callable[..., Any], Callable[..., Any]]
_Classes = dict[Any, tuple[str, Callable[..., Any]]]

_numbers = itertools.count()
# The modules that define scopes and states, by their names.
_defining: dict[str, ModuleType] = {}
# Known once Dynamo is imported: the library that keeps the operators, torch.ops.proton_bench,
# torch.Tensor, the name of metadata's state, and what makes the range of each kind.
_library: Any = None
_ops: Any = None
_tensor: Any = None
_metadata = ""
_makers: dict[str, Callable[[str], Any]] = {}


class _Open(threading.local):
    """Ranges that operators opened on this thread, innermost last."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, Any]] = []


_open = _Open()


def follow_dynamo(module: ModuleType) -> None:
    """Prepare Dynamo as soon as the program imports it.

    Args:
        module: One of the two that define scopes and states.
    """
    is_first = not _defining
    name = module.__name__.rpartition(".")[2]
    _defining[name] = module
    ImportCallback("torch._dynamo", lambda _dynamo: _prepare(name))
    if is_first:  # and where both are loaded: its ranges are operators that the other defines
        ImportCallback("torch._inductor.graph", _prepare_inductor)


def _prepare(name: str) -> None:
    # A torch with other internals breaks graphs at scopes, as at any native object.
    with contextlib.suppress(Exception):
        if _library is None:
            _define_operators()
            _wrap_ranges()
        _substitute(*(_scopes if name == "scope" else _states)(_defining[name]))


def _prepare_inductor(_graph: ModuleType) -> None:
    from proton_bench.recording.context import inductor_ranges

    with contextlib.suppress(Exception):
        inductor_ranges.install(_ops)


def _define_operators() -> None:
    global _library, _ops, _tensor
    import torch

    functions: dict[str, Callable[..., None]] = {
        "enter": _run_enter,
        "exit": _run_exit,
        "add_ints": _add_numbers,
        "add_floats": _add_numbers,
        "add_text": _add_value,
        "add_tensor": _add_value,
    }
    library = torch.library.Library("proton_bench", "DEF")
    namespace = torch.ops.proton_bench
    for schema in _SCHEMAS:
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, functions[name], "CompositeExplicitAutograd")
        library.impl(name, _do_nothing, "Meta")
        torch.fx.node.has_side_effect(getattr(namespace, name).default)
    _library, _ops, _tensor = library, namespace, torch.Tensor


def _do_nothing(*_args: object, **_kwargs: object) -> None:
    pass


def _run_enter(kind: str, name: str, number: int) -> None:
    """Enter a range of a running graph."""
    if kind == "enter_scope":
        native.enter_scope(name)
    elif kind == "enter_state":
        native.enter_state(name)
    else:
        _leave(number)  # an exception prevented an earlier run from leaving it
        entered = _makers[kind](name)
        entered.__enter__()
        _open.ranges.append((number, entered))


def _run_exit(kind: str, name: str, number: int) -> None:
    """Leave a range of a running graph."""
    if kind == "enter_scope":
        native.exit_scope(name or None)
    elif kind == "enter_state":
        native.exit_state()
    else:
        _leave(number)


def _leave(number: int) -> None:
    """Leave a range if it is open, after those inside it that an exception left open."""
    ranges = _open.ranges
    if any(opened == number for opened, _ in ranges):
        opened = -1
        while opened != number:
            opened, left = ranges.pop()
            left.__exit__(None, None, None)


def _add_numbers(key: str, values: list[int] | list[float], *, is_vector: bool) -> None:
    _add_value(key, values if is_vector else values[0])


def _add_value(key: str, value: object) -> None:
    add_scope_metrics({key: value})


def _keeps_ranges() -> bool:
    """Return whether the graph that is being traced gets ranges."""
    import torch

    if not flags.profiling_on or getattr(torch.compiler, "is_exporting", bool)():
        return False  # an exported program runs without our operators
    compiling = torch._guards.CompileContext.current_compile_id()
    compiled = getattr(compiling, "frame_compile_id", 0) or 0
    return compiled < _MOST_COMPILES


def _next_number() -> int:
    return next(_numbers)


def _scopes(scope: Any) -> tuple[_Functions, _Classes]:
    """Return the replacements of scopes and their functions for tracing."""
    _makers.update(scope=scope.scope, cpu_timed_scope=scope.cpu_timed_scope)
    functions: _Functions = {
        scope.enter_scope: _trace_enter_scope,
        scope.exit_scope: _trace_exit_scope,
        scope.scope.__new__: _trace_new,
    }
    classes: _Classes = {
        scope.scope: ("scope", _trace_scope),
        scope.cpu_timed_scope: ("cpu_timed_scope", _trace_cpu_timed_scope),
    }
    return functions, classes


def _states(state: Any) -> tuple[_Functions, _Classes]:
    """Return the replacements of states and their functions for tracing."""
    global _metadata
    _metadata = state.METADATA_STATE
    _makers.update(state=state.state)
    functions: _Functions = {
        state.enter_state: _trace_enter_state,
        state.exit_state: _trace_exit_state,
    }
    classes: _Classes = {
        state.state: ("state", _trace_state),
        state.metadata_state: ("state", _trace_metadata_state),
    }
    return functions, classes


def _substitute(functions: _Functions, classes: _Classes) -> None:
    """Register with Dynamo what to trace instead of our functions and classes."""
    from torch._dynamo.decorators import substitute_in_graph

    for original, traced in functions.items():
        substitute_in_graph(original, skip_signature_check=True)(traced)
    for made, (_, traced) in classes.items():
        substitute_in_graph(made, skip_signature_check=True, is_embedded_type=True)(traced)
    _wrap_objects({made: kind for made, (kind, _) in classes.items()})


def _wrap_objects(kinds: dict[type, str]) -> None:
    """Make Dynamo treat an object created outside the graph as a new one of its name."""
    from torch._dynamo.guards import GuardBuilder
    from torch._dynamo.source import AttrSource
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.builder import VariableBuilder

    def wrap(builder: Any, value: Any) -> Any:
        builder.install_guards(GuardBuilder.TYPE_MATCH)
        fields = [VariableTracker.build(builder.tx, kinds[type(value)])]
        for name in ("name", "metrics"):
            if hasattr(value, name):
                source = AttrSource(builder.source, name)
                fields.append(VariableTracker.build(builder.tx, getattr(value, name), source))
        trace = VariableTracker.build(builder.tx, _trace_range)
        return trace.call_function(builder.tx, fields, {})

    VariableBuilder._type_dispatch().update(dict.fromkeys(kinds, wrap))


def _wrap_ranges() -> None:
    """Allow a program to break the graph in a range.

    Dynamo would not compile a function that does so in a context manager whose class it traces.
    """
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.builder import VariableBuilder
    from torch._dynamo.variables.ctx_manager import ContextWrappingVariable

    class RangeVariable(ContextWrappingVariable):  # type: ignore[misc, unused-ignore]
        """A range in the graph; a part after a break has a range of its own, without metrics."""

        def __init__(self, **arguments: Any) -> None:
            super().__init__(**arguments)
            self.numbers: list[int] = []

        def enter(self, tx: Any) -> Any:
            kind, name, metrics = self.initial_values
            self.numbers.append(_next_number())
            arguments = (kind, name, self.numbers[-1])
            tx.output.create_proxy("call_function", _ops.enter.default, arguments, {})
            VariableTracker.build(tx, _trace_metrics).call_function(tx, [metrics], {})
            return VariableTracker.build(tx, None)

        def exit(self, tx: Any, *_arguments: Any) -> Any:
            kind, name, _ = self.initial_values
            arguments = (kind, name, self.numbers.pop())
            tx.output.create_proxy("call_function", _ops.exit.default, arguments, {})
            return VariableTracker.build(tx, None)

        def module_name(self) -> str:
            return _makers[self.initial_values[0]].__module__

        def fn_name(self) -> str:
            return _makers[self.initial_values[0]].__name__

    class RangeClassVariable(VariableTracker):  # type: ignore[misc, unused-ignore]
        """Makes such a range of a kind, a name and metrics."""

        def call_function(self, tx: Any, args: Any, kwargs: Any) -> Any:
            kind, name, metrics = args
            values = (kind.as_python_constant(), name.as_python_constant(), metrics)
            return RangeVariable(target_values=[values[1]], initial_values=values)

    def wrap(builder: Any, _value: Any) -> Any:
        return RangeClassVariable(source=builder.source)

    VariableBuilder._id_dispatch()[id(_Range)] = wrap


# Dynamo treats their results as constants of the graph, without guards.
_keeps_ranges._dynamo_marked_constant = True  # type: ignore[attr-defined]
_next_number._dynamo_marked_constant = True  # type: ignore[attr-defined]


# Dynamo traces the following functions; they never run.


class _Range:
    def __init__(self, kind: str, name: str, metrics: Mapping[str, object] | None) -> None:
        self.kind = kind
        self.name = name
        self.metrics = metrics
        self.number = _next_number()

    def __enter__(self) -> _Range:
        _ops.enter.default(self.kind, self.name, self.number)
        _trace_metrics(self.metrics)
        return self

    def __exit__(self, *_exception: object) -> None:
        _ops.exit.default(self.kind, self.name, self.number)

    def __call__(self, func: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object, **kwargs: object) -> object:
            with _Range(self.kind, self.name, self.metrics):
                return func(*args, **kwargs)

        return run


def _trace_range(kind: str, name: str, metrics: Mapping[str, object] | None = None) -> Any:
    return _Range(kind, name, metrics) if _keeps_ranges() else contextlib.nullcontext()


def _trace_scope(name: str, metrics: Mapping[str, object] | None = None) -> Any:
    return _trace_range("scope", name, metrics)


def _trace_cpu_timed_scope(name: str, metrics: Mapping[str, object] | None = None) -> Any:
    return _trace_range("cpu_timed_scope", name, metrics)


def _trace_new(_subclass: type, *_args: object, **_kwargs: object) -> None:
    """Break the graph at a subclass of scope; Dynamo would fail at the native constructor."""
    import torch

    torch._dynamo.graph_break()


def _trace_state(name: str) -> Any:
    return _trace_range("state", name)


def _trace_metadata_state(kernel_name: str | None = None) -> Any:
    return _trace_range("state", _metadata + f":{kernel_name}" if kernel_name else _metadata)


def _trace_enter_scope(name: str, *, metrics: Mapping[str, object] | None = None) -> None:
    if _keeps_ranges():
        _ops.enter.default("enter_scope", name, _next_number())
        _trace_metrics(metrics)


def _trace_exit_scope(
    name: str | None = None, *, metrics: Mapping[str, object] | None = None
) -> None:
    if _keeps_ranges():
        _trace_metrics(metrics)
        _ops.exit.default("enter_scope", name or "", _next_number())


def _trace_enter_state(name: str) -> None:
    if _keeps_ranges():
        _ops.enter.default("enter_state", name, _next_number())


def _trace_exit_state() -> None:
    if _keeps_ranges():
        _ops.exit.default("enter_state", "", _next_number())


def _trace_metrics(metrics: Mapping[str, Any] | None) -> None:
    for key, value in (metrics or {}).items():
        is_vector = isinstance(value, (list, tuple))
        values = list(value) if is_vector else [value]
        if all(isinstance(each, int) for each in values):
            _ops.add_ints.default(key, values, is_vector=is_vector)
        elif all(isinstance(each, (int, float)) for each in values):
            floats = [float(each) for each in values]
            _ops.add_floats.default(key, floats, is_vector=is_vector)
        elif isinstance(value, str):
            _ops.add_text.default(key, value)
        elif isinstance(value, _tensor):
            _ops.add_tensor.default(key, value.detach())
