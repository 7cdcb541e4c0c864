"""Scopes inside kernels, under upstream's submodule name.

In a kernel that Triton's interpreter runs, and in plain Python, a scope is a host scope of the
running thread. In a compiled kernel it adds no code and costs nothing.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, TypeVar

from proton_bench.capture.native import native
from proton_bench.errors import UsageError

__all__ = ["disable_semantic", "enable_semantic", "enter_scope", "exit_scope", "scope"]

_F = TypeVar("_F")

_SEMANTICS = ("triton", "gluon")


def _builtin(function: _F) -> _F:
    """Let Triton's compiler call the function with its ``_semantic`` instead of compiling it."""
    function.__triton_builtin__ = True  # type: ignore[attr-defined]
    return function


@_builtin
def enter_scope(name: str, _semantic: Any = None) -> None:
    """Open a scope in a kernel.

    Args:
        name: Name of the frame.
    """
    if _semantic is None:
        native.enter_scope(_text(name))


@_builtin
def exit_scope(name: str, _semantic: Any = None) -> None:
    """Close a scope in a kernel.

    Args:
        name: Name of the scope.
    """
    if _semantic is None:
        native.exit_scope(_text(name))


class scope:  # noqa: N801 - upstream's name
    """Context manager around ``enter_scope`` and ``exit_scope``.

    Args:
        name: Name of the frame.
    """

    def __init__(self, name: str, _semantic: Any = None) -> None:
        self.name = name
        self._semantic = _semantic

    def __enter__(self) -> None:
        enter_scope(self.name, _semantic=self._semantic)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        exit_scope(self.name, _semantic=self._semantic)


def enable_semantic(semantic_name: str) -> None:
    """Accept scopes in kernels of a language; they add no code to compiled kernels of either.

    Args:
        semantic_name: ``triton`` or ``gluon``.

    Raises:
        UsageError: There is no such language.
    """
    _check_semantic(semantic_name)


def disable_semantic(semantic_name: str) -> None:
    """Undo ``enable_semantic``.

    Args:
        semantic_name: ``triton`` or ``gluon``.

    Raises:
        UsageError: There is no such language.
    """
    _check_semantic(semantic_name)


def _check_semantic(name: str) -> None:
    if name not in _SEMANTICS:
        raise UsageError(f"Unknown semantic: {name}; choose from: {', '.join(_SEMANTICS)}")


def _text(name: Any) -> str:
    # The interpreter hands compile-time constants over as they are; the compiler wraps them.
    return str(getattr(name, "value", name))
