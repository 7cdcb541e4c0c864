"""Puts loops of interpreted kernels into ``with`` blocks when the interpreter rewrites them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import ModuleType
from typing import Any

from proton_bench_plugins.patch import Patch

__all__ = ["LoopRewriter"]

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
