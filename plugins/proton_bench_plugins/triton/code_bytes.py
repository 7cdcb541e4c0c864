"""The metric ``code_bytes``: what the loads and stores of a launched kernel ask for; and its flops.

Both are computed from the kernel's TTIR, once for each grid and each set of the integer arguments
that its loops and branches depend on. Flops are those of dots.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from proton_bench import _native
from proton_bench.errors import MetricError
from proton_bench.flags import flags
from proton_bench_plugins.triton.asked_bytes import asked_bytes, dot_flops
from proton_bench_plugins.triton.integers import (
    GRID_AXES,
    Value,
    evaluate,
    used_arguments,
)

CODE_BYTES = "code_bytes"
# Flops by metric; the hook gives them to the kernel, unless its launch metadata names some.
CODE_FLOPS = "code_flops"
# Launches that are remembered for a kernel; arguments that never repeat must not fill the memory.
_MOST_KNOWN = 4096

# Number of an argument; of a descriptor also the field and the axis.
_Place = int | tuple[int, str, int]


class KernelWork:
    """What launches of a kernel ask for, and compute.

    Args:
        kernel: Triton's ``CompiledKernel``.

    Attributes:
        names: Arguments of its source.
        read: Reads the arguments that matter at a launch; None if none does.
        known: Metadata by grid, or by grid and these arguments: what the code says of
            ``code_bytes`` and ``code_flops``.

    Raises:
        MetricError: Its code does not say.
    """

    def __init__(self, kernel: Any) -> None:
        text = kernel.asm.get("ttir")
        if text is None:
            raise MetricError("the kernel has no TTIR")
        self._amounts, types = _amounts(text)
        used = sorted({at for each in self._amounts.values() for at in used_arguments(each)})
        places = list(_places(kernel.src.signature)) if used else []
        if used and len(places) != len(types):
            raise MetricError("the kernel's arguments are not those of its source")
        self._used = {at: places[at] for at in used}
        self.read = _reader(list(self._used.values())) if used else None
        self.known: dict[Any, dict[str, Any]] = {}
        self.names = tuple(kernel.src.fn.arg_names)

    def of_launch(self, grid: tuple[int, ...], arguments: Sequence[Any]) -> dict[str, Any]:
        """Return the metadata of a launch, without what cannot be computed.

        Args:
            grid: Programs along up to three axes.
            arguments: All arguments of the source, constants included.
        """
        key = grid if self.read is None else (grid, self.read(arguments))
        if key not in self.known:
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            self.known[key] = self._computed(grid, arguments)
        return self.known[key]

    def _computed(self, grid: tuple[int, ...], arguments: Sequence[Any]) -> dict[str, Any]:
        if self._used and len(arguments) != len(self.names):
            return {}
        sizes = [*map(int, grid), *(1,) * (GRID_AXES - len(grid))]
        values = {at: _read(arguments, place) for at, place in self._used.items()}
        integers = {at: int(value) for at, value in values.items() if isinstance(value, int)}
        totals = {name: _total(each, integers, sizes) for name, each in self._amounts.items()}
        found: dict[str, Any] = {}
        if (asked := totals.pop(CODE_BYTES)) is not None:
            found[CODE_BYTES] = asked
        if totals and None not in totals.values():  # a part would look like the whole
            found[CODE_FLOPS] = totals
        return found


def _amounts(text: str) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Return what a program asks for and computes, and the types of the kernel's arguments."""
    asked, types = asked_bytes(text)
    flops = {f"flops{width}": each for width, each in dot_flops(text).items()}
    return {CODE_BYTES: asked, **flops}, types


def _total(amount: Value, arguments: Mapping[int, int], grid: Sequence[int]) -> int | None:
    """Return the sum over all programs of a launch, None if it cannot be computed."""
    try:
        each = evaluate(amount, arguments, grid)
    except MetricError:
        return None
    if isinstance(each, int):
        return each * math.prod(grid)
    # Programs that differ only along an axis which does not matter have the same.
    alike = math.prod(grid) // math.prod(each.shape)
    return int(each.sum(dtype=np.float64)) * alike


def _places(signature: Mapping[str, Any]) -> Iterator[_Place]:
    """Yield where each argument of the compiled function is in those of the source.

    A constant is not an argument of it. A descriptor is several: itself, its shape, its strides.
    """
    for at, kind in enumerate(signature.values()):
        if not isinstance(kind, str):
            raise MetricError("a tuple is several arguments")
        if kind.startswith("tensordesc"):
            rank = kind.partition("[")[2].partition("]")[0].count(",") + 1
            yield at
            for field in ("shape", "strides"):
                yield from ((at, field, axis) for axis in range(rank))
        elif kind != "constexpr":
            yield at


def _reader(places: Sequence[_Place]) -> Callable[[Sequence[Any]], Any]:
    """Return what reads arguments at a launch: a tuple, or the only one."""
    plain = [place for place in places if isinstance(place, int)]
    if plain and len(plain) == len(places):
        return operator.itemgetter(*plain)
    if len(places) == 1:
        return lambda arguments: _read(arguments, places[0])
    return lambda arguments: tuple(_read(arguments, place) for place in places)


def _read(arguments: Sequence[Any], place: _Place) -> Any:
    if isinstance(place, int):
        return arguments[place]
    at, field, axis = place
    return getattr(arguments[at], field)[axis]


def constants_text(kernel: Any) -> str:
    """Return the constants that a kernel was compiled for, as in ``BLOCK=64, EVEN=True``."""
    names = kernel.src.fn.arg_names
    return ", ".join(
        f"{names[place[0] if isinstance(place, tuple) else place]}={value}"
        for place, value in kernel.src.constants.items()
    )


class CodeBytes:
    """Adds this to the metadata of launches, while it watches Triton."""

    def __init__(self) -> None:
        self._is_on = False
        self._kernels: dict[weakref.ref[Any], KernelWork | None] = {}

    def watch(self, module: ModuleType) -> Callable[[], None]:
        """Add it until the returned function is called.

        Args:
            module: ``triton.compiler.compiler``.
        """
        owner, original = module.CompiledKernel, module.CompiledKernel.launch_metadata
        replacement = _native.code_bytes(
            original, self._kernels, flags, self._add_new, constants_text
        )
        owner.launch_metadata, self._is_on = replacement, True

        def restore() -> None:
            self._is_on = False  # also for one that was wrapped again, and stays
            self._kernels.clear()
            if vars(owner).get("launch_metadata") is replacement:
                owner.launch_metadata = original

        return restore

    def _add_new(  # noqa: PLR0917 - the native part's call
        self, found: Any, kernel: Any, grid: Any, arguments: Sequence[Any]
    ) -> None:
        """Add it to a launch that the native part does not know, and let it know it."""
        if not self._is_on:
            return
        kernels, key = self._kernels, weakref.ref(kernel)
        try:
            if key not in kernels:
                for gone in [each for each in kernels if each() is None]:
                    del kernels[gone]
                kernels[key] = KernelWork(kernel)
            work = kernels[key]
            if work is not None:
                found.data.update(work.of_launch(tuple(grid), arguments))
        except Exception:  # noqa: BLE001 - the target's launch must not fail because of us
            kernels[key] = None
