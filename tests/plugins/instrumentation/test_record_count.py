"""Buffers fit the records of a kernel if its code shows how many there are."""

from __future__ import annotations

import pytest

from proton_bench_plugins.instrumentation.compiler.stages import most_records, needed_bytes
from proton_bench_plugins.instrumentation.settings import Settings

HEAD = """#blocked = #ttg.blocked<{sizePerThread = [1], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%n: i32) {
    %c0 = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %c9_i32 = arith.constant 9 : i32
"""
TAIL = "    tt.return\n  }\n}\n"
PAIR = '    proton.record start "{a"\n    proton.record end "{a"\n'


def kernel(*lines: str) -> str:
    return HEAD + "\n".join(lines) + "\n" + TAIL


def inside(opening: str, body: str = PAIR, closing: str = "}") -> str:
    return f"    {opening}\n{body}    {closing}"


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ((), 0),
        ((PAIR,), 2),
        ((PAIR, inside("scf.if %p {")), 4),
        ((inside("scf.if %p {", PAIR, f"}} else {{\n{PAIR}    }}"),), 4),
        ((inside("scf.for %i = %c0 to %c9_i32 step %c2  : i32 {"),), 10),
        ((inside("%r:2 = scf.for %i = %c9_i32 to %c0 step %c2 iter_args(%x = %y) -> (f32) {"),), 0),
        (
            (
                inside(
                    "scf.for %i = %c0 to %c2 step %c2 {",
                    inside("scf.for %j = %c0 to %c9_i32 step %c9_i32 {") + "\n",
                ),
                PAIR,
            ),
            4,
        ),
    ],
)
def test_records_are_counted_where_the_code_shows_their_number(
    lines: tuple[str, ...], count: int
) -> None:
    assert most_records(kernel(*lines)) == count


@pytest.mark.parametrize(
    "lines",
    [
        (inside("scf.for %i = %c0 to %n step %c2 {"),),
        (inside("scf.for %i = %c0 to %c9_i32 step %c0 {"),),
        ("    scf.while : () -> () {\n    } do {", PAIR, "    }"),
        ("    cf.br ^bb1", "  ^bb1:", PAIR),
        (PAIR, "  }", "  tt.func private @f() {", PAIR),
        (inside("scf.for %i = %c0 to %big step %c2 {"), "    %big = arith.constant 99999999 : i32"),
    ],
    ids=["argument", "no-step", "while", "branches", "functions", "too-many"],
)
def test_they_are_unknown_where_only_the_device_knows(lines: tuple[str, ...]) -> None:
    assert most_records(kernel(*lines)) is None


def test_each_warp_that_records_has_room_for_a_power_of_two() -> None:
    five = kernel(inside("scf.for %i = %c0 to %c9_i32 step %c2 {"))

    assert needed_bytes(five, Settings()) == 4 * 128
    assert needed_bytes(five, Settings(warp_ids=(1,))) == 128
    assert needed_bytes(kernel(PAIR), Settings()) == 4 * 32


def test_a_named_size_and_an_unknown_number_leave_it_to_the_compiler() -> None:
    assert needed_bytes(kernel(PAIR), Settings(buffer_size=4096)) is None
    assert needed_bytes(kernel(PAIR).replace("num-warps", "x"), Settings()) is None
    assert needed_bytes(kernel(inside("scf.for %i = %c0 to %n step %c2 {")), Settings()) is None
