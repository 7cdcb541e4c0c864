"""The passes for Triton's interpreter: scopes of the host, with the same names.

The interpreter runs an operation by a method of its builder, which is wrapped here; loops are
Python's own, so they are wrapped when the interpreter rewrites the source of a kernel. Operations
that only a compiler makes, such as waits, do not exist here.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

from proton_bench import _native
from proton_bench.recording.kernels.interpreted_kernel import close_scopes_above
from proton_bench_plugins.instrumentation.passes.choice import (
    kinds_wanted,
    rules_that_take,
    scope_around,
)
from proton_bench_plugins.instrumentation.passes.listing import list_scopes
from proton_bench_plugins.instrumentation.passes.registry import (
    PRINT_OPS,
    Op,
    Place,
    op_kind,
    own_first,
)
from proton_bench_plugins.instrumentation.passes.rule import Rule, applying
from proton_bench_plugins.patch import Patch

_UNROLLED = "static_range"  # the compiler unrolls it


class LoopRewriter:
    """Makes the interpreter run each loop of a kernel in ``with NAME():``.

    Args:
        module: ``triton.runtime.interpreter``.
        name: Global name of the function that makes the context managers.
    """

    def __init__(self, module: ModuleType, name: str) -> None:
        self._name = name
        self.patch = Patch(module.FunctionRewriter, "_transform_ast", self._transform)

    def _transform(self, original: Callable[..., Any], rewriter: Any, source: str) -> Any:
        tree = _WithLoops(self._name).visit(original(rewriter, source))
        return ast.fix_missing_locations(tree)


class _WithLoops(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self._name = name

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        called = node.iter.func if isinstance(node.iter, ast.Call) else None
        name = getattr(called, "attr", getattr(called, "id", ""))
        return node if name == _UNROLLED else self._wrapped(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        return self._wrapped(node)

    def _wrapped(self, loop: ast.stmt) -> ast.AST:
        made = ast.Call(ast.Name(self._name, ast.Load()), [], [])
        block = ast.copy_location(ast.With([ast.withitem(made)], [loop]), loop)
        for node in (made, made.func):
            ast.copy_location(node, loop)
        return block


_EXECUTOR = "GridExecutor.__call__"
_INTERPRETER = os.path.join("triton", "runtime", "interpreter.py")
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_MOST_FRAMES = 200


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a kernel.

    Attributes:
        kernel: Name of the kernel.
        places: Lines, the closest first, as for a compiled operation.
        key: The instruction and its callers, because two loads may be on one line.
    """

    kernel: str
    places: tuple[Place, ...]
    key: tuple[Hashable, ...]


def find_spot(frame: FrameType | None) -> Spot | None:
    """Return the position of the kernel that runs in a frame, None without a kernel.

    Args:
        frame: The innermost frame.
    """
    places: list[Place] = []
    key: list[Hashable] = []
    kernel = ""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        code = frame.f_code
        if code.co_filename.endswith(_INTERPRETER):
            if code.co_qualname == _EXECUTOR:
                return Spot(kernel, own_first(places), tuple(key))
        elif not code.co_filename.startswith(_OURS):
            places.append(Place(code.co_filename, frame.f_lineno))
            key += (code, frame.f_lasti)
            kernel = code.co_name
        frame = frame.f_back
    return None


# Methods of the builders of all known Tritons, by the operation in a compiled kernel.
_METHODS = {
    "tt.load": ("create_load", "create_masked_load", "create_tensor_pointer_load"),
    "tt.store": ("create_store", "create_masked_store", "create_tensor_pointer_store"),
    "tt.descriptor_load": ("create_descriptor_load", "create_descriptor_gather"),
    "tt.descriptor_store": ("create_descriptor_store", "create_descriptor_scatter"),
    "tt.dot": ("create_dot", "create_dot_scaled"),
    "tt.atomic_rmw": ("create_atomic_rmw", "create_atomic_cas", "create_atomic_store"),
    "ttg.barrier": ("create_barrier",),
}
_LOOP = "scf.for"
_LOOP_NAME = "_proton_bench_loop"


class InterpretedScopes:
    """Scopes around operations of interpreted kernels, until it is removed.

    Args:
        rules: Result of ``parse_passes``.
        module: ``triton.runtime.interpreter``.
    """

    def __init__(self, rules: tuple[Rule, ...], module: ModuleType) -> None:
        self._names = _Names(rules)
        self._module = module
        self._thread = _Thread()
        self._is_active = True
        builder = module.InterpreterBuilder
        self._patches = [
            Patch(builder, method, self._around(op))
            for op, methods in _METHODS.items()
            for method in methods
            if method in vars(builder) and kinds_wanted(_op(op), rules)
        ]
        if kinds_wanted(_op(_LOOP), rules):
            self._patches.append(LoopRewriter(module, _LOOP_NAME).patch)
            # The interpreter copies its own globals into the module of each kernel it rewrites.
            vars(module)[_LOOP_NAME] = self._loop
            module.InterpretedFunction.rewritten_fn.clear()

    @property
    def taken(self) -> frozenset[str]:
        """Rules, as texts, whose filters matched an operation so far."""
        return frozenset(self._names.taken)

    def remove(self) -> None:
        """Restore Triton's own methods, and rewrite kernels without scopes."""
        for patch in self._patches:
            patch.remove()
        self._is_active = False
        vars(self._module).pop(_LOOP_NAME, None)
        self._module.InterpretedFunction.rewritten_fn.clear()
        self._names.report()

    def _around(self, op: str) -> Callable[..., Any]:
        def run(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if self._thread.is_inside:  # a load without a mask is made of one with a mask
                return original(*args, **kwargs)
            name = self._names.find(op, sys._getframe(1))
            self._thread.is_inside = True
            try:
                with _scope(name):
                    return original(*args, **kwargs)
            finally:
                self._thread.is_inside = False

        return run

    def _loop(self) -> AbstractContextManager[None]:
        """Return the scope of a loop; a rewritten kernel calls this before each of its loops."""
        # Kernels running on other threads still have their loops wrapped after the removal.
        return _scope(self._names.find(_LOOP, sys._getframe(1)) if self._is_active else None)


class _Thread(threading.local):
    is_inside = False


class _Names:
    """Names of scopes by place of operations, numbered by kind in the order of first execution."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._is_listing = any(rule.name == PRINT_OPS for rule in rules)
        self._known: dict[Hashable, str | None] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._listed: dict[str, list[Any]] = {}
        self.taken: set[str] = set()

    def find(self, op: str, frame: FrameType) -> str | None:
        """Return the name for the operation at a frame, None for no scope."""
        spot = find_spot(frame)
        if spot is None:
            return None
        key = (op, *spot.key)
        if key not in self._known:
            self._known[key] = self._name(op, spot)
        return self._known[key]

    def report(self) -> None:
        """Print the result of ``print-ops``."""
        as_json = any(rule.as_json for rule in self._rules)
        for kernel, scopes in self._listed.items():
            list_scopes(kernel, scopes, as_json=as_json)

    def _name(self, op: str, spot: Spot) -> str | None:
        rules = applying(self._rules, spot.kernel)
        found = _op(op, spot.places)
        wanted = kinds_wanted(found, rules)
        self.taken.update(str(rule) for rule in rules_that_take(found, rules))
        chosen = next((kind for kind, takes in wanted.items() if takes), None)
        name = None
        if chosen is not None:
            scope = scope_around(found, chosen, self._counts[spot.kernel, chosen])
            if self._is_listing:
                self._listed.setdefault(spot.kernel, []).append(scope)
            else:
                name = scope.name
        self._counts.update((spot.kernel, kind) for kind in wanted)
        return name


def _op(name: str, places: tuple[Place, ...] = ()) -> Op:
    return Op(name, None, None, None, places, kind=op_kind(name))


@contextlib.contextmanager
def _scope(name: str | None) -> Iterator[None]:
    if name is None:
        yield
        return
    _native.enter_scope(name)
    depth = _native.thread_depth()
    try:
        yield
    finally:
        close_scopes_above(depth)  # a scope of the source that begins inside ends inside
        _native.exit_scope(name)
