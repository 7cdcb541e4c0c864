"""The metric ``code_bytes``: what the loads and stores of a launched kernel ask for.

It is computed from the kernel's TTIR, once for each grid and each set of the integer arguments that
its loops and branches depend on.
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
from proton_bench_plugins.triton.asked_bytes import asked_bytes
from proton_bench_plugins.triton.integers import GRID_AXES, evaluate, used_arguments

CODE_BYTES = "code_bytes"
# Launches that are remembered for a kernel; arguments that never repeat must not fill the memory.
_MOST_KNOWN = 4096

# Number of an argument; of a descriptor also the field and the axis.
_Place = int | tuple[int, str, int]


class KernelBytes:
    """What launches of a kernel ask for.

    Args:
        kernel: Triton's ``CompiledKernel``.

    Attributes:
        names: Arguments of its source.
        read: Reads the arguments that matter at a launch; None if none does.
        known: Bytes by grid, or by grid and these arguments; None where the code does not say.

    Raises:
        MetricError: Its code does not say.
    """

    def __init__(self, kernel: Any) -> None:
        text = kernel.asm.get("ttir")
        if text is None:
            raise MetricError("the kernel has no TTIR")
        self._asked, types = asked_bytes(text)
        used = used_arguments(self._asked)
        places = list(_places(kernel.src.signature)) if used else []
        if used and len(places) != len(types):
            raise MetricError("the kernel's arguments are not those of its source")
        self._used = {at: places[at] for at in used}
        self.read = _reader(list(self._used.values())) if used else None
        self.known: dict[Any, int | None] = {}
        self.names = tuple(kernel.src.fn.arg_names)

    def of_launch(self, grid: tuple[int, ...], arguments: Sequence[Any]) -> int | None:
        """Return the bytes of a launch, None if they cannot be computed.

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

    def _computed(self, grid: tuple[int, ...], arguments: Sequence[Any]) -> int | None:
        if self._used and len(arguments) != len(self.names):
            return None
        sizes = [*map(int, grid), *(1,) * (GRID_AXES - len(grid))]
        values = {at: _read(arguments, place) for at, place in self._used.items()}
        integers = {at: int(value) for at, value in values.items() if isinstance(value, int)}
        try:
            each = evaluate(self._asked, integers, sizes)
        except MetricError:
            return None
        if isinstance(each, int):
            return each * math.prod(sizes)
        # Programs that differ only along an axis which does not matter ask for the same.
        alike = math.prod(sizes) // math.prod(each.shape)
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


class CodeBytes:
    """Adds the metric to the metadata of launches, while it watches Triton."""

    def __init__(self) -> None:
        self._is_on = False
        self._kernels: dict[weakref.ref[Any], KernelBytes | None] = {}

    def watch(self, module: ModuleType) -> Callable[[], None]:
        """Add the metric until the returned function is called.

        Args:
            module: ``triton.compiler.compiler``.
        """
        owner, original = module.CompiledKernel, module.CompiledKernel.launch_metadata
        replacement = _native.code_bytes(original, self._kernels, flags, self._add_new)
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
        """Add the metric to a launch that the native part does not know, and let it know it."""
        if not self._is_on:
            return
        kernels, key = self._kernels, weakref.ref(kernel)
        try:
            if key not in kernels:
                for gone in [each for each in kernels if each() is None]:
                    del kernels[gone]
                kernels[key] = KernelBytes(kernel)
            asked = kernels[key]
            size = asked and asked.of_launch(tuple(grid), arguments)
            if size is not None:
                found.data[CODE_BYTES] = size
        except Exception:  # noqa: BLE001 - the target's launch must not fail because of us
            kernels[key] = None
