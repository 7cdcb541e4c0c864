"""Describes a launch of an interpreted kernel, as the launcher does for a compiled one."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

__all__ = ["Launch", "describe_launch"]

_MAX_GRID_DIMENSIONS = 3
_MAX_SIZE = 2**32 - 1
_MAX_SIGNATURE = 2000


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: the kernel, its arguments by name, its grid and its compile options.

    Attributes:
        name: Name of the kernel function.
        function: The kernel as Triton's interpreter holds it, or the plain function.
        arguments: Values as the caller passed them, defaults filled in.
        grid: Programs per dimension, one to three; empty if the grid is unknown.
        options: Compile options, e.g. ``num_warps``.
        constants: Names of the compile-time parameters.
    """

    name: str
    function: Any
    arguments: Mapping[str, Any]
    grid: tuple[int, ...]
    options: Mapping[str, Any]
    constants: frozenset[str]

    def variant(self) -> dict[str, object]:
        """Return the variant of this launch among those of the same kernel."""
        parts = [
            f"{name}={_constant(value)}" if name in self.constants else f"{name}:{_type(value)}"
            for name, value in self.arguments.items()
        ]
        grid = [min(max(size, 0), _MAX_SIZE) for size in (*self.grid, 1, 1, 1)]
        return {
            "code_hash": code_hash(getattr(self.function, "fn", self.function)),
            "grid": grid[:_MAX_GRID_DIMENSIONS],
            "block": (1, 1, 1),
            "shared_bytes": 0,
            "signature": ", ".join(parts)[:_MAX_SIGNATURE],
        }

    def metadata(self) -> SimpleNamespace:
        """Return the facts of a compiled kernel that a ``launch_metadata`` function may ask for."""
        return SimpleNamespace(
            name=self.name,
            num_warps=self.options.get("num_warps", 4),
            num_stages=self.options.get("num_stages", 1),
            num_ctas=self.options.get("num_ctas", 1),
            cluster_dims=(1, 1, 1),
            shared=0,
        )

    def launch_metadata(self) -> Callable[..., Mapping[str, Any]] | None:
        """Return the function given as ``@triton.jit(launch_metadata=...)``, if any."""
        return getattr(self.function, "kwargs", {}).get("launch_metadata")


def describe_launch(
    executor: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, function: Any
) -> Launch:
    """Describe the launch that ``executor(*args, **kwargs)`` is about to run.

    Args:
        executor: Triton's ``GridExecutor``; its grid is replaced by the evaluated one, so that a
            grid function runs once per launch.
        function: The ``InterpretedFunction``, or None if other code made the executor.
        args: Positional arguments of the launch.
        kwargs: Keyword arguments, compile options among them.
    """
    plain = executor.fn
    known = set(executor.arg_names)
    passed = {name: value for name, value in kwargs.items() if name in known}
    try:
        arguments = inspect.getcallargs(plain, *args, **passed)
    except TypeError:  # a wrong call; the executor raises it to the caller
        arguments = passed
    return Launch(
        name=getattr(plain, "__name__", "kernel"),
        function=function if function is not None else plain,
        arguments=arguments,
        grid=_evaluate_grid(executor, arguments),
        options={name: value for name, value in kwargs.items() if name not in known},
        constants=frozenset(executor.constexprs),
    )


def _evaluate_grid(executor: Any, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    grid = executor.grid
    try:
        if callable(grid):
            grid = executor.grid = grid(arguments)
        sizes = tuple(int(size) for size in grid)
    except Exception:  # noqa: BLE001 - the executor meets it again and raises to the caller
        return ()
    return sizes if len(sizes) <= _MAX_GRID_DIMENSIONS else ()


@functools.lru_cache(maxsize=4096)
def code_hash(function: Callable[..., Any]) -> str:
    """Return 16 hexadecimal digits that change with the source of a kernel."""
    try:
        source = inspect.getsource(function).encode()
    except (OSError, TypeError):
        source = getattr(getattr(function, "__code__", None), "co_code", b"")
    return hashlib.sha256(source).hexdigest()[:16]


def _type(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return "*" + str(dtype).rpartition(".")[2]
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    return "fp32" if isinstance(value, float) else type(value).__name__


def _constant(value: object) -> str:
    value = getattr(value, "value", value)  # triton.language.constexpr
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    # Functions and types: their repr has an address, which differs from run to run.
    name = getattr(value, "__name__", None) or getattr(value, "name", None)
    return str(name or type(value).__name__)
