"""What TTIR says of loads and stores, in the forms of Triton 3.6 to 3.9."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.errors import MetricError
from proton_bench_plugins.triton.asked_bytes import asked_bytes
from proton_bench_plugins.triton.integers import evaluate, used_arguments

KERNEL = """#loc = loc("a {strange} \\"file\\".py":4:0)
module attributes {} {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32 \
loc("n"(#loc))) attributes {noinline = false} {
    %c0 = arith.constant 0 : i32 loc(#loc)
    %c1 = arith.constant 1 : i32 loc(#loc)
    %c3 = arith.constant 3 : i32 loc(#loc)
BODY
    tt.return loc(#loc)
  } loc(#loc)
MORE} loc(#loc)
#loc1 = loc(callsite(#loc at #loc))
"""
HELPER = """  tt.func private @"f(1,)"(%x: !tt.ptr<f32>, %m: i32) attributes {noinline = true} {
    BODY
    tt.return
  }
"""
STORE = "tt.store %x, %c : !tt.ptr<f32>"


def text_of(body: str, more: str = "") -> str:
    """Return a module with a kernel of these operations, and more functions."""
    return KERNEL.replace("BODY", body).replace("MORE", more)


def helper(body: str) -> str:
    """Return a function that kernels call."""
    return HELPER.replace("BODY", body)


def asked(body: str, more: str = "", **arguments: int) -> int:
    """Return what a program of a kernel asks for."""
    value, _ = asked_bytes(text_of(body, more))
    found = evaluate(value, {1: arguments.get("n", 5)}, (1, 1, 1))
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize(
    ("op", "size"),
    [
        ("%v = tt.load %p : !tt.ptr<f32>", 4),
        ("%v = tt.load %p, %m evictionPolicy = evict_last : tensor<8x!tt.ptr<bf16>>", 16),
        ("%v = tt.load %p {tt.contiguity = dense<4> : tensor<1xi32>} : tensor<8x!tt.ptr<i1>>", 8),
        ("%v = tt.load %p : tensor<4x2x!tt.ptr<f8E4M3FN>> loc(callsite(#loc at #loc))", 8),
        ("%v = tt.load %p : tensor<4x!tt.ptr<!tt.ptr<f32>>>", 32),
        ("%v = tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<4x8xf64>>", 256),
        ("%v = tt.load %p : !tt.ptr<i16, 1>", 2),
        ("tt.store %p, %v, %m : tensor<16x!tt.ptr<f16>>", 32),
        (
            "%v = tt.descriptor_load %d[%a, %b] : !tt.tensordesc<tensor<2x4xf16>> "
            "-> tensor<2x4xf16>",
            16,
        ),
        ("%v = tt.descriptor_load %d[%a, %b] : !tt.tensordesc<2x4xf16> -> tensor<2x4xf16>", 16),
        ("%v = tt.descriptor_load %d[%a] : !tt.tensordesc<3xf4E2M1> -> tensor<3xf4E2M1>", 2),
        ("tt.descriptor_store %d[%a, %b], %v : !tt.tensordesc<2x4xf16>, tensor<2x4xf16>", 16),
        (
            "%v = tt.descriptor_gather %d[%r, %a] : (!tt.tensordesc<1x8xf16>, tensor<4xi32>, i32) "
            "-> tensor<4x8xf16>",
            64,
        ),
        (
            "tt.descriptor_scatter %d[%r, %a], %v : !tt.tensordesc<1x8xf16>, tensor<4xi32>, i32, "
            "tensor<4x8xf16>",
            64,
        ),
        ("tt.descriptor_reduce add, %d[%a], %v : !tt.tensordesc<8xf16>, tensor<8xf16>", 32),
        (
            "%v = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %m : (tensor<8x!tt.ptr<f32>>, "
            "tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>",
            64,
        ),
        ("%v = tt.atomic_cas acq_rel, gpu, %p, %a, %b : (!tt.ptr<i64>, i64, i64) -> i64", 16),
        ('%v = tt.elementwise_inline_asm "ld.global {" {pure = true} %c1 : i32 -> i32', 0),
        ('tt.print " } : " {hex = false} : %c1 : i32', 0),
        ('proton.record start "a {"', 0),
    ],
)
def test_each_form_counts_its_block(op: str, size: int) -> None:
    assert asked(f"    {op}") == size


@pytest.mark.parametrize(
    "body",
    [
        "%v = tt.elementwise_inline_asm \"nop\" {pure = false} %c1 : i32 -> i32",
        "%v = tt.load_from_the_future %p : !tt.ptr<f32>",
        "ttg.async_copy_global_to_local %p : !tt.ptr<f32>",
        'tt.call @missing(%x) : (!tt.ptr<f32>) -> ()',
        "%v = tt.load %p : tensor<8xf32>",
        "%v = tt.load %p : tensor<8x!tt.ptr<!future.type>>",
        f"scf.for unsigned %i = %c0 to %n step %c1 : i32 {{\n{STORE}\n}}",
        f"scf.for %i = %c0 to %unknown step %c1 : i32 {{\n{STORE}\n}}",
        f"scf.while : () -> () {{\nscf.condition(%t) %i : i32\n}} do {{\n{STORE}\n}}",
        f"scf.if %unknown {{\n{STORE}\n}}",
        f"cf.br ^bb1\n^bb1:\n{STORE}\ncf.cond_br %c0, ^bb1, ^bb2\n^bb2:",
        f"cf.switch %n : i32, [\n default: ^bb1\n]\n^bb1:\n{STORE}",
        "}",
        "scf.if %c0 {",
        "not an operation",
        *(["scf.for %i = %c0 to %n step %c1 : i32 {\n" * 7 + STORE + "\n}" * 7]),
    ],
)  # fmt: skip
def test_what_the_text_does_not_say_is_not_guessed(body: str) -> None:
    with pytest.raises(MetricError):
        asked(body)


def test_names_of_one_region_are_not_those_of_the_next() -> None:
    body = f"""%t = arith.constant true
    %s:2 = scf.if %t -> (i32, i32) {{
      %2 = arith.addi %n, %c1 overflow<nsw> : i32
      scf.yield %2, %c0 : i32, i32
    }} else {{
      %2 = arith.muli %n, %c3 : i32
      scf.yield %2, %2 : i32, i32
    }}
    scf.for %i = %s#1 to %s#0 step %c3 iter_args(%a = %c0) -> (i32)  : i32 {{
      {STORE}
      scf.yield %a : i32
    }} {{tt.num_stages = 1 : i32}}"""

    assert asked(body, n=5) == 4 * 2
    assert asked(body, n=9) == 4 * 4


def test_functions_count_with_their_arguments() -> None:
    loop = f"scf.for %i = %c to %m step %c : i32 {{\n{STORE}\n}}"
    looped = helper(f"%c = arith.constant 1 : i32\n{loop}")
    call = 'tt.call @"f(1,)"(%x, {}) : (!tt.ptr<f32>, i32) -> ()'

    assert asked("\n".join(call.format(each) for each in ("%n", "%c3")), looped) == 4 * (4 + 2)
    with pytest.raises(MetricError):
        asked(call.format("%n"), helper(call.format("%m")))


def test_branches_between_blocks_count_once() -> None:
    body = f"""%early = arith.cmpi sgt, %n, %c3 : i32
    cf.cond_br %early, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    cf.br ^bb3(%c1 : i32)
  ^bb2:  // pred: ^bb0
    {STORE}
    {STORE}
    cf.br ^bb3(%c0 : i32)
  ^bb3(%0: i32 loc("b"(#loc))):  // 2 preds: ^bb1, ^bb2
    {STORE}"""

    assert [asked(body, n=each) for each in (3, 4)] == [12, 4]


@settings(max_examples=how_many(2000, 40), deadline=None)
@given(st.data())
def test_damaged_text_is_refused_or_read(data: st.DataObject) -> None:
    body = f"scf.for %i = %c0 to %n step %c1 : i32 {{\n{STORE}\n}}\ntt.call @f(%x) : (i1) -> ()"
    lines = text_of(body, helper(STORE)).splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    cut = data.draw(st.integers(0, len(lines[at])))
    lines[at] = lines[at][:cut] + data.draw(st.sampled_from(["", "{", "}", "(", '"', " : ", "%"]))

    try:
        found, types = asked_bytes("\n".join(lines))
    except MetricError:
        return

    assert all(0 <= argument < len(types) for argument in used_arguments(found))
