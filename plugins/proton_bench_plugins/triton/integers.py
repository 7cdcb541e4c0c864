"""Integers that a kernel computes from its arguments and its place in the grid.

A `Value` is how an integer is computed. In a launch it has one value, a Python integer, or one for
each program and pass of a loop, an array: its first three axes are the grid's, each further axis
the passes of one loop. Nothing wraps around: where an integer may leave its type, or is not such a
function, `evaluate` raises.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton_bench.errors import MetricError
from proton_bench.model.arrays import Integers

Number = int | Integers

# Axes of arrays: the grid's, and those of loops inside each other.
GRID_AXES = 3
MOST_LOOPS = 5
_RANK = GRID_AXES + MOST_LOOPS
# A launch of more different programs is not computed: that would take milliseconds.
_MOST_ELEMENTS = 1 << 17
_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """How an integer is computed.

    Attributes:
        op: An operation of MLIR that is in `OPERATIONS`, or ``constant``, ``argument``,
            ``unknown``, ``sum``, ``choice`` (condition, then, else), ``counter`` and ``loop``.
            ``counter`` (first, end, step) is a loop's variable, and ``loop`` (first, end, step,
            body) the sum of the body over its passes.
        operands: The integers that it is computed from.
        detail: The constant, the number of the argument, the axis of the grid or of the loop, or
            the predicate of a comparison.
        bits: Width of the type, 0 for none.
    """

    op: str
    operands: tuple[Value, ...] = ()
    detail: int | str = 0
    bits: int = 0


UNKNOWN = Value("unknown")


def constant(number: int) -> Value:
    """Return an integer that is the same in all launches."""
    return Value("constant", detail=number)


def used_arguments(value: Value) -> tuple[int, ...]:
    """Return the numbers of the arguments that an integer may depend on."""
    return tuple(sorted({int(each.detail) for each in _parts(value) if each.op == "argument"}))


def _parts(value: Value) -> Iterator[Value]:
    seen, pending = {id(value)}, [value]
    while pending:
        each = pending.pop()
        yield each
        fresh = [part for part in each.operands if id(part) not in seen]
        seen.update(map(id, fresh))
        pending += fresh


def evaluate(value: Value, arguments: Mapping[int, int], grid: Sequence[int]) -> Number:
    """Return the integer in a launch.

    Args:
        value: How it is computed.
        arguments: Integer arguments by their number.
        grid: Programs along three axes.

    Raises:
        MetricError: It cannot be computed.
    """
    return _Launch(arguments, grid).number(value)


class _Launch:
    def __init__(self, arguments: Mapping[int, int], grid: Sequence[int]) -> None:
        self._arguments = arguments
        self._grid = grid
        self._known: dict[int, Number] = {}

    def number(self, value: Value) -> Number:
        found = self._known.get(id(value))
        if found is None:
            found = self._known[id(value)] = self._within(self._compute(value), value.bits)
        return found

    def _compute(self, value: Value) -> Number:
        special = getattr(self, f"_{value.op}", None)
        if special is not None:
            computed: Number = special(value)
            return computed
        if value.op.startswith("tt.get_"):
            return self._of_grid(value)
        function = OPERATIONS.get(value.op)
        if function is None:
            raise MetricError(f"{value.op} is not an integer that is known before a launch")
        operands = [self.number(each) for each in value.operands]
        _check_size(operands)
        if value.op == "arith.cmpi":
            return _compared(str(value.detail), *operands)
        return function(*operands)

    def _constant(self, value: Value) -> Number:
        return int(value.detail)

    def _argument(self, value: Value) -> Number:
        found = self._arguments.get(int(value.detail))
        if found is None:
            raise MetricError(f"argument {value.detail} is not an integer")
        return found

    def _of_grid(self, value: Value) -> Number:
        size = self._grid[int(value.detail)]
        return size if value.op == "tt.get_num_programs" else _along(int(value.detail), size)

    def _sum(self, value: Value) -> Number:
        total: Number = 0
        for each in value.operands:
            total = _plus(total, self.number(each))
        return total

    def _choice(self, value: Value) -> Number:
        condition, then, other = value.operands
        chosen = self.number(condition)
        if isinstance(chosen, int):
            return self.number(then if chosen else other)
        numbers = [chosen, self.number(then), self.number(other)]
        _check_size(numbers)
        return np.where(*numbers)

    def _passes(self, value: Value) -> tuple[Number, Number, Number]:
        """Return first value, step and number of passes of a loop."""
        first, end, step = map(self.number, value.operands[:3])
        _check_size([first, end, step])
        if _least(step) <= 0:
            raise MetricError("a loop goes backwards")
        passes = _quotient_up(_plus(end, _times(first, -1)), step)
        return first, step, np.maximum(passes, 0) if _is_array(passes) else max(passes, 0)

    def _counter(self, value: Value) -> Number:
        first, step, passes = self._passes(value)
        at = _along(int(value.detail), _most(passes))
        _check_size([first, step, at])
        return _plus(first, _times(step, at))

    def _loop(self, value: Value) -> Number:
        _, _, passes = self._passes(value)
        most = _most(passes)
        if most == 0:
            return 0
        body, axis = self.number(value.operands[3]), int(value.detail)
        if isinstance(body, int) or body.shape[axis] == 1:
            _check_size([body, passes])
            return _times(body, passes)
        at = _along(axis, most)
        _check_size([body, passes, at])
        if _most(body) * most >= _LIMIT:
            raise MetricError("a sum is too large")
        total: Number = np.where(at < passes, body, 0).sum(axis=axis, keepdims=True)
        return total

    @staticmethod
    def _within(number: Number, bits: int) -> Number:
        """Return the integer if its type can hold it."""
        if bits == 0:
            return number
        least, most = (0, 1) if bits == 1 else (-(1 << bits - 1), (1 << bits - 1) - 1)
        if _least(number) < least or _most(number) > most:
            raise MetricError(f"an integer of {bits} bits wraps around")
        return number


def _is_array(number: Number) -> bool:
    return not isinstance(number, int)


def _along(axis: int, size: int) -> Number:
    if size > _MOST_ELEMENTS:
        raise MetricError("there are too many programs or passes")
    shape = [1] * _RANK
    shape[axis] = size
    return np.arange(size, dtype=np.int64).reshape(shape)


def _check_size(numbers: Sequence[Number]) -> None:
    arrays = [each.shape for each in numbers if not isinstance(each, int)]
    if math.prod(np.broadcast_shapes(*arrays)) > _MOST_ELEMENTS:
        raise MetricError("there are too many programs or passes")


def _least(number: Number) -> int:
    return number if isinstance(number, int) else int(number.min())


def _most(number: Number) -> int:
    return number if isinstance(number, int) else int(number.max())


def _size(number: Number) -> int:
    return max(abs(_least(number)), abs(_most(number)))


def _checked(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Number]:
    """Return the function of two integers, which raises where 64 bits do not hold its result."""

    def compute(a: Number, b: Number) -> Number:
        if (_is_array(a) or _is_array(b)) and function(_size(a), _size(b)) >= _LIMIT:
            raise MetricError("an integer is too large")
        computed: Number = function(a, b)
        return computed

    return compute


_plus = _checked(operator.add)
_times = _checked(operator.mul)


def _minus(a: Number, b: Number) -> Number:
    return _plus(a, _times(b, -1))


def _signed_quotient(a: Number, b: Number) -> Number:
    _refuse_zero(b)
    if isinstance(a, int) and isinstance(b, int):
        size = abs(a) // abs(b)
        return -size if (a < 0) != (b < 0) else size
    left, right = np.asarray(a), np.asarray(b)
    sizes = np.abs(left) // np.abs(right)
    signed: Number = np.where((left < 0) != (right < 0), -sizes, sizes)
    return signed


def _quotient_down(a: Number, b: Number) -> Number:
    _refuse_zero(b)
    return a // b


def _quotient_up(a: Number, b: Number) -> Number:
    _refuse_zero(b)
    return -(-a // b)


def _signed_remainder(a: Number, b: Number) -> Number:
    return _minus(a, _times(_signed_quotient(a, b), b))


def _refuse_zero(number: Number) -> None:
    if np.any(number == 0):
        raise MetricError("an integer is divided by 0")


def _smaller(a: Number, b: Number) -> Number:
    return np.minimum(a, b) if _is_array(a) or _is_array(b) else min(a, b)


def _larger(a: Number, b: Number) -> Number:
    return np.maximum(a, b) if _is_array(a) or _is_array(b) else max(a, b)


def _shifted_left(a: Number, b: Number) -> Number:
    return _times(a, _power(b))


def _shifted_right(a: Number, b: Number) -> Number:
    return a // _power(b)


def _power(exponent: Number) -> Number:
    if not isinstance(exponent, int) or not 0 <= exponent < 63:
        raise MetricError("an integer is shifted by more than its width, or by different amounts")
    return 1 << exponent


def _same(a: Number) -> Number:
    return a


def _unsigned(function: Callable[..., Number]) -> Callable[..., Number]:
    """Return the function for operands whose signed and unsigned values are the same."""

    def compute(*numbers: Number) -> Number:
        if min(map(_least, numbers)) < 0:
            raise MetricError("an integer without a sign is very large")
        return function(*numbers)

    return compute


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "ult": operator.lt,
    "ule": operator.le,
    "ugt": operator.gt,
    "uge": operator.ge,
}


def _compared(predicate: str, a: Number, b: Number) -> Number:
    compare: Callable[..., Any] = _COMPARISONS[predicate]
    found: Any = (_unsigned(compare) if predicate.startswith("u") else compare)(a, b)
    computed: Number = found.astype(np.int64) if isinstance(found, np.ndarray) else int(found)
    return computed


OPERATIONS: dict[str, Callable[..., Number]] = {
    "arith.addi": _plus,
    "arith.subi": _minus,
    "arith.muli": _times,
    "arith.divsi": _signed_quotient,
    "arith.remsi": _signed_remainder,
    "arith.ceildivsi": _quotient_up,
    "arith.floordivsi": _quotient_down,
    "arith.minsi": _smaller,
    "arith.maxsi": _larger,
    "arith.divui": _unsigned(_signed_quotient),
    "arith.remui": _unsigned(_signed_remainder),
    "arith.ceildivui": _unsigned(_quotient_up),
    "arith.minui": _unsigned(_smaller),
    "arith.maxui": _unsigned(_larger),
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.shli": _shifted_left,
    "arith.shrsi": _shifted_right,
    "arith.shrui": _unsigned(_shifted_right),
    "arith.extsi": _same,
    "arith.extui": _unsigned(_same),
    "arith.trunci": _same,
    "arith.index_cast": _same,
    "arith.index_castui": _unsigned(_same),
    "arith.cmpi": _compared,
    "tt.get_program_id": _same,
    "tt.get_num_programs": _same,
}
