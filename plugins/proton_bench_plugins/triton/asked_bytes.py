"""How many bytes the loads and stores of a kernel's TTIR ask for, and what its dots compute.

Every load and store counts its whole block, whatever its mask, and an atomic operation counts it
twice, because it reads and writes. They count as often as the loops and branches around them run
them. Nothing is computed if an operation may touch memory in a way that its text does not say.
A dot counts two operations for each product, whatever is masked, as often as it runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from proton_bench.errors import MetricError
from proton_bench_plugins.triton.integers import (
    GRID_AXES,
    MOST_LOOPS,
    OPERATIONS,
    UNKNOWN,
    Value,
    constant,
)
from proton_bench_plugins.triton.ttir import Block, Function, Op, read_functions

# How often an operation moves its block.
_MEMORY = {
    **dict.fromkeys(("tt.load", "tt.descriptor_load", "tt.descriptor_gather"), 1),
    **dict.fromkeys(("tt.store", "tt.descriptor_store", "tt.descriptor_scatter"), 1),
    **dict.fromkeys(("tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce"), 2),
}
# Operations that move nothing which a program asks for. Others may come with later releases.
_DIALECTS_WITHOUT_MEMORY = ("arith", "math", "ub", "proton")
_PLAIN = (
    *("addptr", "advance", "assert", "bitcast", "broadcast", "cat", "clampf", "dot", "dot_scaled"),
    *("expand_dims", "fp_to_fp", "gather", "get_num_programs", "get_program_id", "histogram"),
    *("int_to_ptr", "join", "make_range", "make_tensor_descriptor", "make_tensor_ptr"),
    *("map_elementwise", "map_elementwise.return", "mulhiui", "precise_divf", "precise_sqrt"),
    *("print", "ptr_to_int", "reduce", "reduce.return", "reshape", "return", "scan"),
    *("scan.return", "splat", "split", "trans", "unsplat"),
)
_WITHOUT_MEMORY = {
    *(f"tt.{name}" for name in _PLAIN),
    *("gpu.barrier", "ttg.barrier", "ttg.local_barrier", "llvm.intr.assume"),
    *("scf.condition", "scf.yield"),
}
# They say themselves whether they only compute.
_FOREIGN = ("tt.elementwise_inline_asm", "tt.extern_elementwise")
_AXES = ("x", "y", "z")
_WIDTHS = (8, 16, 32, 64)  # of flops
_MOST_OPS = 100_000  # with those of called functions, as often as they are called

_NAME = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_FOR = re.compile(r"(%\S+) = (%\S+) to (%\S+) step (%\S+)")
_INTEGER = re.compile(r"i(\d+)|index")
_CONSTANT = re.compile(r"(-?\d+) : (i\d+|index)")
_TENSOR = re.compile(r"(?:tensor|!tt\.tensordesc)<((?:\d+x)*)(.+)>|(.+)")
_POINTER = re.compile(r"!tt\.ptr<(.+?)(?:, \d+)?>")
_ELEMENT = re.compile(r"(?:i|f|bf|tf)(\d+)(?:E\w+)?")
_LABEL = re.compile(r"\^(\w+)")
_SYMBOL = re.compile(r'@("\d+"|[\w$.\-]+)')

_DOTS = ("tt.dot", "tt.dot_scaled")

_Scope = dict[str, Value]


def asked_bytes(text: str) -> tuple[Value, tuple[str, ...]]:
    """Return what one program of a kernel asks for, and the types of the kernel's arguments.

    Args:
        text: TTIR of the kernel.

    Raises:
        MetricError: The text says too little, or is not what Triton prints.
    """
    return _amount(text, _bytes_of)


def dot_flops(text: str) -> dict[int, Value]:
    """Return the operations of the dots of one program, by the width of what they multiply.

    Args:
        text: TTIR of the kernel.

    Raises:
        MetricError: The text says too little, or is not what Triton prints.
    """
    widths: dict[int, None] = {}
    _amount(text, partial(_flops_of, width=None, seen=widths))
    return {width: _amount(text, partial(_flops_of, width=width, seen={}))[0] for width in widths}


def _amount(text: str, of_op: Callable[[Op], Value]) -> tuple[Value, tuple[str, ...]]:
    functions = read_functions(text)
    kernels = [each for each in functions.values() if each.is_kernel]
    if len(kernels) != 1:
        raise MetricError(f"TTIR: {len(kernels)} kernels instead of one")
    arguments = [
        Value("argument", detail=at, bits=_bits(kind)) if _INTEGER.fullmatch(kind) else UNKNOWN
        for at, (_, kind) in enumerate(kernels[0].parameters)
    ]
    asked = _Count(functions, of_op).call(kernels[0], arguments, depth=0)
    return asked, tuple(kind for _, kind in kernels[0].parameters)


def _bytes_of(op: Op) -> Value:
    if op.name in _MEMORY:
        return constant(_MEMORY[op.name] * _block_bytes(op))
    return constant(0) if _is_without_memory(op) or op.name == "scf.while" else UNKNOWN


def _flops_of(op: Op, *, width: int | None, seen: dict[int, None]) -> Value:
    """Return the operations of a dot of this width; 0 for other operations."""
    if op.name not in _DOTS:
        return constant(0)
    operands, _, result = op.text.rpartition(" : ")[2].rpartition(" -> ")
    left, element = _elements(operands.partition(" * ")[0].partition(", ")[0])
    is_packed = "lhs = e2m1" in op.text and "lhs_k_pack = false" not in op.text
    products = math.prod(_elements(result)[0]) * left[-1] * (2 if is_packed else 1)
    own = next((each for each in _WIDTHS if each >= _bits(element)), _WIDTHS[-1])
    seen[own] = None
    return constant(2 * products if own == width else 0)


class _Count:
    """Adds up an amount over the operations of functions, as often as they run."""

    def __init__(self, functions: Mapping[str, Function], of_op: Callable[[Op], Value]) -> None:
        self._functions = functions
        self._of_op = of_op
        self._running: list[Function] = []
        self._ops = 0

    def call(self, function: Function, arguments: Sequence[Value], depth: int) -> Value:
        if function.blocks is None:
            return UNKNOWN
        if function in self._running:
            raise MetricError("TTIR: a function calls itself")
        names = [name for name, _ in function.parameters]
        self._running.append(function)
        asked = self._region(function.blocks, dict(zip(names, arguments, strict=True)), depth)
        self._running.pop()
        return asked

    def _region(self, blocks: Sequence[Block], scope: _Scope, depth: int) -> Value:
        own = [_sum([self._op(op, scope, depth) for op in block.ops]) for block in blocks]
        return _Branches(blocks, own, scope).from_block(0) if blocks else constant(0)

    def _op(self, op: Op, scope: _Scope, depth: int) -> Value:
        self._ops += 1
        if self._ops > _MOST_OPS:
            raise MetricError("TTIR: the kernel is too large")
        if op.name == "scf.for":
            return self._for(op, scope, depth)
        if op.name == "scf.if":
            return self._if(op, scope, depth)
        if op.name == "tt.call":
            return self._called(op, scope, depth)
        for result in op.results:
            scope[result] = _integer(op, scope)
        inner = [self._region(region, dict(scope), depth) for region in op.regions]
        return self._of_op(op) if all(map(_is_zero, inner)) else UNKNOWN

    def _for(self, op: Op, scope: _Scope, depth: int) -> Value:
        found = _FOR.match(op.text)
        # No match for one that counts without a sign.
        counter, *ends = found.groups() if found is not None else ("",) * 4
        bounds = tuple(scope.get(name, UNKNOWN) for name in ends)
        axis = GRID_AXES + depth
        inner = {**scope, counter: Value("counter", bounds, axis, bounds[0].bits)}
        body = self._region(op.regions[0], inner, depth + 1)
        if _is_zero(body):
            return body
        if depth >= MOST_LOOPS:
            raise MetricError(f"TTIR: more than {MOST_LOOPS} loops inside each other")
        parts = (*bounds, body)
        return UNKNOWN if UNKNOWN in parts else Value("loop", parts, axis)

    def _if(self, op: Op, scope: _Scope, depth: int) -> Value:
        condition = _operand(op, scope)
        inner = [dict(scope) for _ in op.regions]
        asked = [
            self._region(region, names, depth)
            for region, names in zip(op.regions, inner, strict=True)
        ]
        if len(asked) == 1:
            return _choice(condition, asked[0], constant(0))
        yields = op.results and [
            [names.get(name, UNKNOWN) for name in _names_before_types(region[-1].ops[-1].text)]
            for region, names in zip(op.regions, inner, strict=True)
        ]
        for result, then, other in zip(op.results, *yields, strict=bool(yields)):
            scope[result] = Value("choice", (condition, then, other), bits=then.bits)
        return _choice(condition, asked[0], asked[1])

    def _called(self, op: Op, scope: _Scope, depth: int) -> Value:
        symbol = _SYMBOL.search(op.text)
        function = self._functions.get(symbol[1]) if symbol else None
        if function is None:
            return UNKNOWN
        arguments = [scope.get(name, UNKNOWN) for name in _names_before_types(op.text)]
        return self.call(function, arguments, depth)


class _Branches:
    """What is asked for from a block on, along the branches between the blocks of a region."""

    def __init__(self, blocks: Sequence[Block], own: Sequence[Value], scope: _Scope) -> None:
        self._blocks, self._own, self._scope = blocks, own, scope
        self._at = {block.label: at for at, block in enumerate(blocks)}
        self._known: dict[int, Value | None] = {}

    def from_block(self, at: int) -> Value:
        if at not in self._known:
            self._known[at] = None
            self._known[at] = _sum([self._own[at], self._after(self._blocks[at])])
        found = self._known[at]
        if found is None:
            raise MetricError("TTIR: branches form a loop")
        return found

    def _after(self, block: Block) -> Value:
        last = block.ops[-1] if block.ops else None
        if last is None or not last.name.startswith("cf.") or last.name == "cf.assert":
            return constant(0)
        targets = [self.from_block(self._at[label]) for label in _LABEL.findall(last.text)]
        if last.name == "cf.br":
            return targets[0]
        if last.name == "cf.cond_br":
            return _choice(_operand(last, self._scope), *targets)
        raise MetricError(f"TTIR: unknown branch {last.name}")


def _is_without_memory(op: Op) -> bool:
    if op.name in _FOREIGN:
        return "pure = true" in op.text
    # What a branch asks for is added with the blocks that it leads to.
    dialect = op.name.partition(".")[0]
    return op.name in _WITHOUT_MEMORY or dialect in (*_DIALECTS_WITHOUT_MEMORY, "cf")


def _integer(op: Op, scope: _Scope) -> Value:
    """Return the integer that an operation computes, if it is one."""
    if op.name == "arith.constant":
        return _constant(op)
    kind = _INTEGER.fullmatch(_last_type(op.text))
    if kind is None:
        return UNKNOWN
    bits = _bits(kind[0])
    if op.name.startswith("tt.get_"):
        return Value(op.name, detail=_AXES.index(op.text[0]), bits=bits)
    operands = tuple(scope.get(name, UNKNOWN) for name in _names_before_types(op.text))
    if op.name == "arith.select":
        return Value("choice", operands, bits=bits)
    if op.name == "arith.cmpi":
        return Value(op.name, operands, op.text.partition(",")[0], bits=1)
    if op.name == "arith.extsi" and operands[0].bits == 1:
        return Value("arith.subi", (constant(0), *operands), bits=bits)
    return Value(op.name, operands, bits=bits) if op.name in OPERATIONS else UNKNOWN


def _constant(op: Op) -> Value:
    if op.text in {"true", "false"}:
        return Value("constant", detail=int(op.text == "true"), bits=1)
    found = _CONSTANT.fullmatch(op.text)
    return Value("constant", detail=int(found[1]), bits=_bits(found[2])) if found else UNKNOWN


def _sum(values: Sequence[Value]) -> Value:
    known = sum(int(each.detail) for each in values if each.op == "constant")
    others = [each for each in values if each.op != "constant"]
    if UNKNOWN in others:
        return UNKNOWN
    if not others:
        return constant(known)
    return Value("sum", (constant(known), *others)) if known or len(others) > 1 else others[0]


def _choice(condition: Value, then: Value, other: Value) -> Value:
    if then.op == other.op == "constant" and then.detail == other.detail:
        return then
    if condition is UNKNOWN:
        return UNKNOWN
    return Value("choice", (condition, then, other))


def _is_zero(value: Value) -> bool:
    return value.op == "constant" and value.detail == 0


def _operand(op: Op, scope: _Scope) -> Value:
    found = _NAME.search(op.text)
    return scope.get(found[0], UNKNOWN) if found else UNKNOWN


def _names_before_types(text: str) -> list[str]:
    return _NAME.findall(text.partition(" : ")[0])


def _last_type(text: str) -> str:
    """Return the last type of an operation: of its result, or of the block that it moves."""
    types = text.rpartition(" : ")[2].rpartition(" -> ")[2].rpartition(" to ")[2]
    depth, start = 0, 0
    for at, letter in enumerate(types):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            start = at + 1
    return types[start:].strip()


def _block_bytes(op: Op) -> int:
    """Return the size of the block that a load, a store or an atomic operation moves."""
    sizes, element = _elements(_last_type(op.text))
    if op.name in ("tt.load", "tt.store"):  # their type is that of the pointers
        pointer = _POINTER.fullmatch(element)
        if pointer is None:
            raise MetricError(f"TTIR: {op.name} has no pointers: {op.text}")
        more, element = _elements(pointer[1])  # a pointer to a block
        sizes += more
    bits = _bits(element)
    return math.prod(sizes) if bits == 1 else -(-math.prod(sizes) * bits // 8)


def _elements(kind: str) -> tuple[list[int], str]:
    found = _TENSOR.fullmatch(kind)
    if found is None:
        raise MetricError(f"TTIR: unknown type {kind}")
    return [int(size) for size in (found[1] or "").split("x") if size], found[2] or found[3]


def _bits(kind: str) -> int:
    """Return the width of an integer, a number or a pointer."""
    if kind == "index" or kind.startswith("!tt.ptr"):
        return 64
    found = _ELEMENT.fullmatch(kind)
    if found is None:
        raise MetricError(f"TTIR: unknown type {kind}")
    return int(found[1])
