"""Ranges and layers around kernels in Inductor's code.

A range as a separate node would not survive: Inductor sorts kernels by their inputs, and fuses
kernels of different ranges. So ``enter`` and ``exit`` generate no code. Each kernel knows its
nodes, and their positions among the ``enter`` and ``exit`` of the graph give their ranges; the
common ranges are entered around the kernel. Positions are noted before Inductor's passes, some of
which move nodes to their uses. The kernels are those of a program without ranges. Layers come from
the nodes themselves, and stand inside of ranges.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from proton_bench.flags import flags

LAYER = "layer"  # kind of such a range
IMPORT = (
    "from proton_bench._native import enter_layers as _proton_enter_layers, "
    "exit_layers as _proton_exit_layers"
)
# A module as Dynamo names it: L['self'].h.0, in other versions L['self'].h[0] or
# L['self']._modules['h']._modules['0'].
_MEMBER = re.compile(r"\._modules\['([^']*)'\]|\[(\d+)\]")
_OWNER = re.compile(r"^[LG]\['[^']*'\]")
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
_FORM = 1  # of the lines below: another one makes other code


def enter_line(name: str) -> str:
    """Return the line that enters a layer."""
    return f"_proton_enter_layers({name!r})"


def exit_line() -> str:
    """Return the line that leaves the newest layer."""
    return "_proton_exit_layers(1)"


def layers_of(node: Any) -> tuple[str, ...] | None:
    """Return the layers of a node of a graph, outermost first.

    Args:
        node: A node of a forward or backward graph.

    Returns:
        Names as ``enter_layers`` takes them; None where the node does not say, or no session wants
        layers.
    """
    if not _wants_layers():
        return None
    modules = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    return None if modules is None else _names(list(modules.values()))


def common_layers(paths: Iterable[Sequence[str] | None]) -> tuple[str, ...]:
    """Return the layers that all paths share; those that are not known do not count."""
    shared: Sequence[str] | None = None
    for path in paths:
        if path is None:
            continue
        if shared is None:
            shared = path
        length = 0
        while length < min(len(path), len(shared)) and path[length] == shared[length]:
            length += 1
        shared = shared[:length]
    return tuple(shared or ())


def distinguish_cached_code(codecache: Any) -> None:
    """Keep code with layers apart in Inductor's caches: a program without us cannot run it.

    Args:
        codecache: ``torch._inductor.codecache``.
    """
    details = codecache.FxGraphHashDetails
    initialize = details.__init__

    @functools.wraps(initialize)
    def initialize_and_mark(self: Any, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        if _wants_layers():
            self.proton_bench_layers = _FORM

    details.__init__ = initialize_and_mark


def _wants_layers() -> bool:
    from proton_bench.recording.models.torch_context import torch_context

    return flags.profiling_on and torch_context.wants("layers")


def _names(modules: Sequence[Any]) -> tuple[str, ...]:
    names: list[str] = []
    owner = ""  # the expression that names the root, where the root is among the modules
    for expression, kind in modules:
        text = _MEMBER.sub(lambda found: f".{found[1] or found[2]}", str(expression))
        if not names and _OWNER.fullmatch(text):
            owner = text
        parts = _OWNER.sub("", text).split(".")[1:]
        qualified = ".".join(part for part in parts if part not in _WRAPPERS)
        shown = kind if isinstance(kind, str) else kind.__name__
        shown = shown.rpartition(".")[2]
        if qualified:
            dot = "" if owner and text.startswith(owner) else "."
            shown = f"{dot}{qualified} ({shown})"
        names.append(shown)
    return tuple(names)


# Of one range: kind, name and number.
_Range = tuple[str, str, int]
_Place = tuple[int, tuple[_Range, ...]]
# Kinds that are left by a function, which ends the newest of them.
_UNNUMBERED = ("enter_scope", "enter_state")
_PLACES = "_proton_bench_places"
_PLACE = "proton_bench_place"  # of a node's meta


def install(operators: Any) -> None:
    """Make Inductor's scheduler write ranges into its code.

    Args:
        operators: ``torch.ops.proton_bench``.
    """
    from torch._inductor import codecache, scheduler
    from torch._inductor.virtualized import V

    distinguish_cached_code(codecache)
    _lower_operators(operators)
    enter, leave = operators.enter.default, operators.exit.default
    _note_places_before_passes(enter, leave)
    enter_context, codegen = scheduler.Scheduler.enter_context, scheduler.Scheduler._codegen
    current: list[_Range] = []

    def switch(scheduling: Any, path: tuple[_Range, ...]) -> None:
        if list(path) == current or V.graph.cpp_wrapper:
            return
        scheduling.flush()  # the kernels before
        code = V.graph.wrapper_code
        shared = _common(path, current)
        while len(current) > shared:
            left = current.pop()
            code.writeline(exit_line() if left[0] == LAYER else f"torch.ops.{leave}{left}")
        for entered in path[shared:]:
            if entered[0] == LAYER:
                code.add_import_once(IMPORT)
                code.writeline(enter_line(entered[1]))
            else:
                code.writeline(f"torch.ops.{enter}{entered}")
            current.append(entered)

    @functools.wraps(enter_context)
    def enter_context_in_range(self: Any, node: Any) -> None:
        switch(self, _path_of_kernel(node, enter, leave))
        enter_context(self, node)

    @functools.wraps(codegen)
    def codegen_and_leave(self: Any, *args: Any, **kwargs: Any) -> Any:
        outer = current.copy()
        current.clear()
        try:
            result = codegen(self, *args, **kwargs)
            switch(self, ())
            return result
        finally:
            current[:] = outer

    scheduler.Scheduler.enter_context = enter_context_in_range
    scheduler.Scheduler._codegen = codegen_and_leave


def _lower_operators(operators: Any) -> None:
    """Have the operators that enter and leave ranges generate no code."""
    from torch._inductor import lowering
    from torch._inductor.virtualized import V

    def lower_to_nothing(*_args: object) -> None:
        pass

    def lower(operator: Any) -> Any:
        call = lowering.fallback_handler(operator, add_to_fallback_set=False)
        # C++ has no ranges, so its metrics would be added elsewhere.
        return lambda *args, **kwargs: None if V.graph.cpp_wrapper else call(*args, **kwargs)

    enter, leave = operators.enter.default, operators.exit.default
    for name in ("enter", "exit", "add_ints", "add_floats", "add_text", "add_tensor"):
        operator = getattr(operators, name).default
        lowered = lower_to_nothing if operator in (enter, leave) else lower(operator)
        lowering.register_lowering(operator, type_promotion_kind=None)(lowered)


def _note_places_before_passes(enter: Any, leave: Any) -> None:
    from torch._inductor import compile_fx

    passes = compile_fx.post_grad_passes

    @functools.wraps(passes)
    def note_places_first(module: Any, *args: Any, **kwargs: Any) -> Any:
        _note_places(module.graph, enter, leave)
        return passes(module, *args, **kwargs)

    compile_fx.post_grad_passes = note_places_first


def _path_of_kernel(kernel: Any, enter: Any, leave: Any) -> tuple[_Range, ...]:
    """Return the ranges and layers around all sources of a scheduler node, outermost first."""
    shared: tuple[_Range, ...] | None = None
    sources: list[Any] = []
    for part in kernel.get_nodes():
        origins = list(part.node.get_origins() if part.node is not None else ())
        places = [_places(each.graph, enter, leave).get(each, (0, ())) for each in origins]
        if part.is_extern() and places:  # the others prepare its inputs, such as a transposition
            newest = max(range(len(places)), key=places.__getitem__)
            origins, places = [origins[newest]], [places[newest]]
        for _, path in places:
            shared = path if shared is None else path[: _common(path, shared)]
        sources += origins
    layers = common_layers(layers_of(each) for each in sources)
    return (*(shared or ()), *((LAYER, name, 0) for name in layers))


def _note_places(graph: Any, enter: Any, leave: Any) -> dict[Any, _Place]:
    """Note the number and the ranges of each node of a graph."""
    places: dict[Any, _Place] = {}
    path: tuple[_Range, ...] = ()
    for index, node in enumerate(graph.nodes):
        if node.target is enter:
            path = (*path, node.args)
        elif node.target is leave:
            path = _without(path, *node.args)
        places[node] = node.meta.setdefault(_PLACE, (index, path))
    return places


def _places(graph: Any, enter: Any, leave: Any) -> dict[Any, _Place]:
    """Return the positions of a graph's nodes: as noted, or where a pass inserted them."""
    places: dict[Any, _Place] | None = getattr(graph, _PLACES, None)
    if places is None:
        places = _note_places(graph, enter, leave)
        setattr(graph, _PLACES, places)
    return places


def _without(path: tuple[_Range, ...], kind: str, _name: str, number: int) -> tuple[_Range, ...]:
    """Return the ranges that remain after leaving one."""
    for index in reversed(range(len(path))):
        if path[index][0] == kind and (kind in _UNNUMBERED or path[index][2] == number):
            return (*path[:index], *path[index + 1 :])
    return path


def _common(one: Any, other: Any) -> int:
    """Return how many ranges two paths share."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count
