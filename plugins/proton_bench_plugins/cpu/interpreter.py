"""Observes Triton's interpreter: every launch passes through its ``GridExecutor``."""

from __future__ import annotations

import functools
import hashlib
import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from proton_bench import _native
from proton_bench.recording.kernels import interpreted_kernel
from proton_bench_plugins.patch import Patch

if TYPE_CHECKING:
    from proton_bench._native import CpuCollector


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
        kind = "*" + str(dtype).rpartition(".")[2]
        shape = getattr(value, "shape", ()) if _native.are_inputs_read() else ()
        return f"{kind}[{','.join(map(str, shape))}]" if shape else kind
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


class InterpreterObserver:
    """Reports interpreted launches to the native collector and to Triton's launch hooks.

    The interpreter copies every argument to the host and back with torch operators; these are not
    the target's and not in the profile.

    Args:
        collector: Receives the kernels.
        module: ``triton.runtime.interpreter``.

    Attributes:
        kernels: Names of the kernels that ran, in order.
    """

    def __init__(self, collector: CpuCollector, module: ModuleType) -> None:
        self.kernels: dict[str, None] = {}
        self._collector = collector
        self._running = threading.local()
        executor = module.GridExecutor
        self._patches = [
            Patch(executor, "__call__", self._call),
            Patch(executor, "_init_args_hst", self._muted),
            Patch(executor, "_restore_args_dev", self._muted),
            Patch(module.InterpretedFunction, "run", self._run),
            Patch(module.InterpreterBuilder, "set_grid_idx", self._begin_program),
        ]

    def remove(self) -> None:
        """Put Triton's own methods back."""
        for patch in self._patches:
            patch.remove()

    def _run(self, original: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        # The executor knows only the rewritten function; this one has launch_metadata.
        outer = getattr(self._running, "function", None)
        self._running.function = function
        try:
            return original(function, *args, **kwargs)
        finally:
            self._running.function = outer

    def _call(self, original: Any, executor: Any, *args: Any, **kwargs: Any) -> Any:
        function = getattr(self._running, "function", None)
        launch = describe_launch(executor, args, kwargs, function=function)
        enter_hook, exit_hook = _launch_hooks()
        if not (enter_hook.calls or exit_hook.calls):
            return self._record(launch, original, executor, *args, **kwargs)
        metadata = _lazy_metadata(launch)
        enter_hook(metadata)
        try:
            return self._record(launch, original, executor, *args, **kwargs)
        finally:
            exit_hook(metadata)

    def _record(
        self, launch: Launch, original: Any, executor: Any, *args: Any, **kwargs: Any
    ) -> Any:
        self.kernels[launch.name] = None
        self._collector.enter_kernel(launch.name, launch.variant())
        try:
            with interpreted_kernel.interpreting(launch.name):
                return original(executor, *args, **kwargs)
        finally:
            self._collector.exit_kernel()

    def _begin_program(self, original: Any, *args: Any) -> Any:
        interpreted_kernel.end_program()  # of the one before
        return original(*args)

    def _muted(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self._collector.mute()
        try:
            return original(*args, **kwargs)
        finally:
            self._collector.unmute()


def _launch_hooks() -> tuple[Any, Any]:
    # Looked up at each launch, because a scope of Triton's knobs may replace the chains.
    from triton import knobs

    return knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook


def _lazy_metadata(launch: Launch) -> Any:
    from triton.compiler.compiler import LazyDict

    metadata = LazyDict({"name": launch.name, "function": id(launch.function), "stream": 0})
    describe = launch.launch_metadata()
    if describe is not None:
        metadata.add(describe, (launch.grid, launch.metadata(), dict(launch.arguments)))
    return metadata
