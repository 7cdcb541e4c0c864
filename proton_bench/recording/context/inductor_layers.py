"""Layers around kernels in Inductor's code, by what the nodes of its graphs say of their modules.

The code is the same for every module of a form, as for the blocks of a model that are compiled one
by one. So names in it are relative to the layer that runs it, where the compiled function is a
method of a module.
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
