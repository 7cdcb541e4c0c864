"""Integers of all programs at once are those of each program by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.errors import MetricError
from proton_bench_plugins.triton.integers import (
    GRID_AXES,
    UNKNOWN,
    Value,
    constant,
    evaluate,
    used_arguments,
)

BITS = 32
Place = tuple[int, int, int]

# As the language reference of MLIR defines them, for one program and without a limit of width.
PLAIN: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: int(a / b),
    "arith.remsi": lambda a, b: a - int(a / b) * b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.floordivsi": lambda a, b: a // b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
}
PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}


def of_program(
    value: Value, arguments: Mapping[int, int], grid: Place, place: Place, passes: dict[int, int]
) -> int:
    """Compute the integer of one program, one pass of a loop after the other."""

    def number(each: Value) -> int:
        return of_program(each, arguments, grid, place, passes)

    at = int(value.detail) if isinstance(value.detail, int) else 0
    leaf = {
        "constant": lambda: at,
        "argument": lambda: arguments[at],
        "tt.get_program_id": lambda: place[at],
        "tt.get_num_programs": lambda: grid[at],
        "counter": lambda: passes[at],
    }
    if value.op in leaf:
        return leaf[value.op]()
    if value.op == "choice":
        condition, then, other = value.operands
        return number(then) if number(condition) else number(other)
    if value.op == "loop":
        first, end, step = map(number, value.operands[:3])
        return sum(
            of_program(value.operands[3], arguments, grid, place, {**passes, at: each})
            for each in range(first, end, step)
        )
    operands = [number(each) for each in value.operands]
    if value.op == "sum":
        return sum(operands)
    if value.op == "arith.cmpi":
        return int(PREDICATES[str(value.detail)](*operands))
    return PLAIN[value.op](*operands)


def _values(arguments: int) -> st.SearchStrategy[Value]:
    """Return integers of programs; arguments beyond the third stand for counters of loops."""
    leaves = st.one_of(
        st.integers(-3, 6).map(constant),
        st.sampled_from([Value("argument", detail=at, bits=BITS) for at in range(arguments)]),
        st.sampled_from([Value("tt.get_program_id", detail=at, bits=BITS) for at in range(3)]),
        st.sampled_from([Value("tt.get_num_programs", detail=at, bits=BITS) for at in range(3)]),
    )

    def larger(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
        pairs = st.tuples(inner, inner)
        condition = st.builds(
            lambda how, pair: Value("arith.cmpi", pair, how, 1),
            st.sampled_from(list(PREDICATES)),
            pairs,
        )
        return st.one_of(
            st.builds(
                lambda op, pair: Value(op, pair, bits=BITS), st.sampled_from([*PLAIN]), pairs
            ),
            st.builds(lambda *parts: Value("choice", parts, bits=BITS), condition, inner, inner),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Value("sum", tuple(parts))),
        )

    return st.recursive(leaves, larger, max_leaves=8)


# Of a program, of a pass of a loop, and of a pass of a loop inside another.
VALUES = tuple(_values(3 + depth) for depth in range(3))


def with_counters(value: Value, counters: Mapping[int, Value]) -> Value:
    """Return the value with counters of loops in place of some arguments."""
    if value.op == "argument" and value.detail in counters:
        return counters[int(value.detail)]
    parts = tuple(with_counters(each, counters) for each in value.operands)
    return replace(value, operands=parts)


@st.composite
def loops(draw: st.DrawFn, counters: Mapping[int, Value] | None = None) -> Value:
    outer = counters or {}
    depth = len(outer)
    first, end = (with_counters(draw(VALUES[depth]), outer) for _ in range(2))
    bounds = (
        Value("arith.maxsi", (first, constant(-2)), bits=BITS),
        Value("arith.minsi", (end, constant(4)), bits=BITS),
        constant(draw(st.integers(1, 3))),
    )
    axis = GRID_AXES + depth
    inside = {**outer, 3 + depth: Value("counter", bounds, axis, BITS)}
    if depth == 0 and draw(st.booleans()):
        body = draw(loops(inside))
    else:
        body = with_counters(draw(VALUES[depth + 1]), inside)
    return Value("loop", (*bounds, body), axis)


@settings(max_examples=how_many(3000, 40), deadline=None)
@given(
    st.one_of(VALUES[0], loops()),
    st.tuples(*(st.integers(1, 3) for _ in range(3))),
    st.tuples(*(st.integers(-4, 9) for _ in range(3))),
)
def test_a_value_is_that_of_each_program(value: Value, grid: Place, given_values: Place) -> None:
    arguments = dict(enumerate(given_values))
    places = list(itertools.product(*(range(size) for size in grid)))
    try:
        found = evaluate(value, arguments, grid)
    except MetricError:
        return  # a divisor is 0 somewhere, or a number too large; others are tested below
    shape = (*grid, *(1,) * max(np.ndim(found) - GRID_AXES, 0))
    whole = np.broadcast_to(found, shape).ravel().tolist()

    assert whole == [of_program(value, arguments, grid, place, {}) for place in places]


@settings(max_examples=how_many(2000, 40), deadline=None)
@given(st.sampled_from([*PLAIN]), st.integers(-(2**31), 2**31 - 1), st.integers(1, 2**31 - 1))
def test_every_operation_is_known(op: str, a: int, b: int) -> None:
    whole = Value(op, (constant(a), constant(b)))

    assert evaluate(whole, {}, (1, 1, 1)) == {
        **PLAIN,
        "arith.divsi": lambda a, b: abs(a) // b * (-1 if a < 0 else 1),
        "arith.remsi": lambda a, b: abs(a) % b * (-1 if a < 0 else 1),
    }[op](a, b)


PID = Value("tt.get_program_id", detail=0, bits=BITS)


@pytest.mark.parametrize(
    "value",
    [
        UNKNOWN,
        Value("argument", detail=7, bits=BITS),
        Value("arith.addf", (constant(1), constant(2))),
        Value("arith.divsi", (constant(1), PID), bits=BITS),
        Value("arith.addi", (constant(2**31 - 1), constant(1)), bits=BITS),
        Value("arith.muli", (constant(2**62), PID), bits=64),
        Value("arith.divui", (constant(-1), constant(2)), bits=BITS),
        Value("arith.cmpi", (constant(-1), PID), "ult", 1),
        Value("arith.shli", (constant(1), constant(64)), bits=64),
        Value("arith.trunci", (constant(300),), bits=8),
        Value("loop", (constant(0), constant(9), constant(0), constant(1)), GRID_AXES),
        Value("loop", (constant(0), constant(2**40), constant(1), PID), GRID_AXES),
    ],
)
def test_what_may_be_wrong_is_not_computed(value: Value) -> None:
    big = Value("sum", (value, constant(0)))
    sizes = (1 << 21, 1, 1) if value.op == "loop" else (3, 1, 1)

    with pytest.raises(MetricError):
        evaluate(big, {}, sizes)


def test_a_branch_that_is_not_taken_need_not_be_known() -> None:
    condition = Value("arith.cmpi", (Value("argument", detail=1), constant(0)), "eq", 1)
    choice = Value("choice", (condition, constant(4), UNKNOWN))

    assert evaluate(choice, {1: 0}, (2, 1, 1)) == 4
    assert used_arguments(choice) == (1,)
