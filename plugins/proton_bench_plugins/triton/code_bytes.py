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

from proton_bench.errors import MetricError
from proton_bench.flags import flags
from proton_bench_plugins.patch import Patch
from proton_bench_plugins.triton.asked_bytes import asked_bytes
from proton_bench_plugins.triton.integers import GRID_AXES, evaluate, used_arguments

__all__ = ["CODE_BYTES", "CodeBytes", "KernelBytes"]

CODE_BYTES = "code_bytes"
# Launches that are remembered for a kernel; arguments that never repeat must not fill the memory.
_MOST_KNOWN = 4096

Read = Callable[[Sequence[Any]], Any]


class KernelBytes:
    """What launches of a kernel ask for.

    Args:
        kernel: Triton's ``CompiledKernel``.

    Attributes:
        names: Arguments of its source.

    Raises:
        MetricError: Its code does not say.
    """

    def __init__(self, kernel: Any) -> None:
        text = kernel.asm.get("ttir")
        if text is None:
            raise MetricError("the kernel has no TTIR")
        self._asked, types = asked_bytes(text)
        used = used_arguments(self._asked)
        reads = list(_reads(kernel.src.signature)) if used else []
        if used and len(reads) != len(types):
            raise MetricError("the kernel's arguments are not those of its source")
        self._reads: dict[int, Read] = {at: reads[at] for at in used}
        self.names = tuple(kernel.src.fn.arg_names)
        self._known: dict[Any, int | None] = {}

    def of_launch(self, grid: tuple[int, ...], arguments: Sequence[Any]) -> int | None:
        """Return the bytes of a launch, None if they cannot be computed.

        Args:
            grid: Programs along up to three axes.
            arguments: All arguments of the source, constants included.
        """
        reads = self._reads
        key: Any = (grid, *[read(arguments) for read in reads.values()]) if reads else grid
        try:
            return self._known[key]
        except KeyError:
            pass
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        found = self._known[key] = self._computed(grid, arguments)
        return found

    def _computed(self, grid: tuple[int, ...], arguments: Sequence[Any]) -> int | None:
        if self._reads and len(arguments) != len(self.names):
            return None
        sizes = [*map(int, grid), *(1,) * (GRID_AXES - len(grid))]
        values = {at: read(arguments) for at, read in self._reads.items()}
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


def _reads(signature: Mapping[str, Any]) -> Iterator[Read]:
    """Yield how to read each argument of the compiled function from those of the source.

    A constant is no argument of it, and a descriptor is several: itself, its shape, its strides.
    """
    for at, kind in enumerate(signature.values()):
        if not isinstance(kind, str):
            raise MetricError("a tuple is several arguments")
        if kind.startswith("tensordesc"):
            rank = kind.partition("[")[2].partition("]")[0].count(",") + 1
            yield operator.itemgetter(at)
            for field in ("shape", "strides"):
                yield from (_of_descriptor(at, field, axis) for axis in range(rank))
        elif kind != "constexpr":
            yield operator.itemgetter(at)


def _of_descriptor(at: int, field: str, axis: int) -> Read:
    return lambda arguments: getattr(arguments[at], field)[axis]


class CodeBytes:
    """Adds the metric to the metadata of launches, while it watches Triton."""

    def __init__(self) -> None:
        self._kernels: weakref.WeakKeyDictionary[Any, KernelBytes | None] = (
            weakref.WeakKeyDictionary()
        )

    def watch(self, module: ModuleType) -> Patch:
        """Add the metric until the patch is removed.

        Args:
            module: ``triton.compiler.compiler``.
        """
        return Patch(module.CompiledKernel, "launch_metadata", self._metadata)

    def _metadata(  # noqa: PLR0917 - Triton's signature
        self, original: Callable[..., Any], kernel: Any, grid: Any, stream: Any, *arguments: Any
    ) -> Any:
        found = original(kernel, grid, stream, *arguments)
        if found is None or flags.upstream_shape:
            return found
        try:
            asked = self._kernels[kernel]
        except KeyError:
            asked = self._new(kernel)
        try:
            size = asked.of_launch(tuple(grid), arguments) if asked is not None else None
            if size is not None:
                # The kernel's own metadata is added later, and wins.
                found.data[CODE_BYTES] = size
        except Exception:  # noqa: BLE001 - the target's launch must not fail because of us
            self._kernels[kernel] = None
        return found

    def _new(self, kernel: Any) -> KernelBytes | None:
        try:
            asked = KernelBytes(kernel)
        except Exception:  # noqa: BLE001 - as above
            asked = None
        self._kernels[kernel] = asked
        return asked
