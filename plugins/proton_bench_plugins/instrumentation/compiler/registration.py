"""Puts passes into the pipelines of Triton's backends, in the way that each Triton offers.

3.9 has a register of callbacks; before it each backend class has a place for one object. The code
checks which of the two exists, not the version.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, Protocol

from proton_bench.errors import UsageError

# Triton's compiler backends with a dialect of records, and the kind of target each compiles for.
BACKENDS = {"nvidia": "cuda", "amd": "hip"}
_REGISTER = "triton._instrumentation"
_TAKEN = (
    "another profiler instruments Triton's kernels in this process, such as triton.profiler with "
    "backend='instrumentation': finalize it first"
)


class Callbacks(Protocol):
    """The callbacks of each compile."""

    def load_dialects(self, context: Any) -> None:
        """Make the dialects of records known to a context."""

    def lower_ttgir(self, pm: Any, backend: str) -> None:
        """Add passes before TTGIR becomes LLVM's dialect."""

    def lower_llvm(self, pm: Any, backend: str) -> None:
        """Add passes after it."""


def register(callbacks: Callbacks) -> Callable[[], None]:
    """Register the callbacks with every backend of this Triton.

    Args:
        callbacks: The callbacks.

    Returns:
        A function that undoes it.

    Raises:
        UsageError: Other callbacks are already there.
    """
    if importlib.util.find_spec(_REGISTER) is not None:
        return _register_points(importlib.import_module(_REGISTER), callbacks)
    return _place_objects(importlib.import_module("triton.backends").backends, callbacks)


def _register_points(module: Any, callbacks: Callbacks) -> Callable[[], None]:
    added: list[dict[str, str]] = []

    def remove() -> None:
        while added:
            module.unregister_instrumentation(**added.pop())

    for backend in BACKENDS:
        for point, callback in _points(callbacks, backend).items():
            try:
                module.register_instrumentation(point=point, backend=backend, callback=callback)
            except RuntimeError as error:
                remove()
                raise UsageError(f"{_TAKEN} ({error})") from None
            added.append({"point": point, "backend": backend})
    return remove


def _points(callbacks: Callbacks, backend: str) -> dict[str, Callable[[Any], None]]:
    return {
        "load-dialects": callbacks.load_dialects,
        "ttgpuir-to-llvmir": lambda pm: callbacks.lower_ttgir(pm, backend),
        "llvmir-to-llvm": lambda pm: callbacks.lower_llvm(pm, backend),
    }


class _Placed:
    """The object that a backend class of Triton before 3.9 calls."""

    def __init__(self, callbacks: Callbacks, backend: str) -> None:
        self._callbacks = callbacks
        self._points = {
            "ttgpuir_to_llvmir": callbacks.lower_ttgir,
            "llvmir_to_llvm": callbacks.lower_llvm,
        }
        self._backend = backend

    def load_dialects(self, context: Any) -> None:
        self._callbacks.load_dialects(context)

    def patch(self, ir: str, pm: Any, context: Any) -> None:
        self._callbacks.load_dialects(context)
        if ir in self._points:
            self._points[ir](pm, self._backend)


def _place_objects(backends: Any, callbacks: Callbacks) -> Callable[[], None]:
    placed: list[tuple[Any, Any, _Placed]] = []
    compilers = {name: backends[name].compiler for name in BACKENDS if name in backends}
    compilers = {name: each for name, each in compilers.items() if hasattr(each, "instrumentation")}
    if any(compiler.instrumentation for compiler in compilers.values()):
        raise UsageError(_TAKEN)

    def remove() -> None:
        while placed:
            compiler, before, ours = placed.pop()
            if compiler.instrumentation is ours:
                compiler.instrumentation = before

    for name, compiler in compilers.items():
        ours = _Placed(callbacks, name)
        placed.append((compiler, compiler.instrumentation, ours))
        compiler.instrumentation = ours
    return remove
