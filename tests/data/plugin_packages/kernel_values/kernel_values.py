"""A mode of ``instrumentation`` as a third party would write it: values rather than cycles.

For each store of 32-bit floats the kernel keeps the largest magnitude that a program stores, as the
bits of a float: magnitudes sort like their bits, and other values sort above all numbers. The
block of a program is one 32-bit word per store. Tensors have one or two dimensions.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping

from proton_bench.plugin import hookimpl
from proton_bench.plugin.kernel_ir import TextPasses, allocate_block
from proton_bench.plugin.kernel_mode import KernelBuffer, KernelMetric, KernelMode

INFINITY = 0x7F800000
_MOST_STORES = 32
_STORE = re.compile(
    r"^( *)tt\.store %\S+, (%[\w#]+)[^\n:]*: tensor<(\d+)(?:x(\d+))?x!tt\.ptr<f32>, (#\w+)>.*$",
    re.MULTILINE,
)
_BODY = re.compile(r"^ *tt\.func public .*\{(?: loc\(.*\))?$", re.MULTILINE)


class LargestPasses(TextPasses):
    """Puts a reduction and an atomic maximum before each store."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._most = int(options.get("stores", _MOST_STORES))
        self._count = 0

    def edit(self, text: str, kernel: str) -> str:
        edited = _STORE.sub(self._before_store, text)
        if not self._count:
            return text
        block = allocate_block("%kernel_values", 4 * self._count)
        yes = "%kernel_values_yes = arith.constant true"
        return _BODY.sub(lambda body: f"{body[0]}\n    {block}\n    {yes}", edited, count=1)

    def _before_store(self, store: re.Match[str]) -> str:
        if self._count == self._most:
            return store[0]
        indent, value, rows, columns, layout = store.groups()
        number, self._count = self._count, self._count + 1
        name = f"%kernel_values_{number}"
        shape = f"{rows}x{columns}" if columns else rows
        floats, bits = f"tensor<{shape}xf32, {layout}>", f"tensor<{shape}xi32, {layout}>"
        lines = [
            f"{name}_m = math.absf {value} : {floats}",
            f"{name}_b = tt.bitcast {name}_m : {floats} -> {bits}",
        ]
        if columns:
            sliced = f"tensor<{rows}xi32, #ttg.slice<{{dim = 1, parent = {layout}}}>>"
            lines += [_largest(f"{name}_r", f"{name}_b", 1, f"({bits}) -> {sliced}")]
            lines += [_largest(f"{name}_l", f"{name}_r", 0, f"({sliced}) -> i32")]
        else:
            lines += [_largest(f"{name}_l", f"{name}_b", 0, f"({bits}) -> i32")]
        lines += [
            f"{name}_i = arith.constant {number} : i32",
            f"{name}_p = tt.addptr %kernel_values, {name}_i : !tt.ptr<i32>, i32",
            f"{name}_o = tt.atomic_rmw max, relaxed, gpu, {name}_p, {name}_l, %kernel_values_yes : "
            "(!tt.ptr<i32>, i32, i1) -> i32",
        ]
        return "\n".join([*(indent + line for line in lines), store[0]])


def _largest(result: str, operand: str, axis: int, types: str) -> str:
    return (
        f'{result} = "tt.reduce"({operand}) <{{axis = {axis} : i32}}> ({{ '
        "^bb0(%one: i32, %other: i32): %most = arith.maxsi %one, %other : i32 "
        f"tt.reduce.return %most : i32 }}) : {types}"
    )


def read_largest(buffer: KernelBuffer) -> Iterable[tuple[str, float]]:
    """Return the largest finite magnitude, and how many stores of programs were not finite."""
    words = buffer.data.cast("B").cast("I")
    finite = [word for word in words if 0 < word < INFINITY]
    largest = max(finite, default=0)
    yield "largest stored", struct.unpack("<f", struct.pack("<I", largest))[0]
    yield "stores not finite", float(sum(word >= INFINITY for word in words))


MODE = KernelMode(
    name="largest",
    summary="largest magnitude that each kernel stores, and what is not finite",
    version="0.4.0",
    options={"stores": f"stores of a kernel to watch, in program order; {_MOST_STORES}"},
    passes=LargestPasses,
    reader=read_largest,
    metrics=(KernelMetric("largest stored", "pty"), KernelMetric("stores not finite")),
)


@hookimpl
def proton_instrumentation_modes() -> list[KernelMode]:
    return [MODE]
