# ruff: noqa: N803, T201
"""Kernels whose loads and stores are counted, and three programs about them.

python memory_kernels.py compile      prints what Triton makes of them, as one JSON object
python memory_kernels.py interpret    reads launches from lines, and prints what each moved
"""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from typing import Any

if __name__ == "__main__" and sys.argv[1] == "interpret":
    os.environ["TRITON_INTERPRET"] = "1"

import triton
import triton.language as tl

# Constants of each kernel; its other arguments are pointers (lower case) and integers (upper case).
CONSTANTS: dict[str, dict[str, int]] = {
    "elementwise": {"BLOCK": 64},
    "softmax": {"BLOCK": 8},
    "layer_norm": {"BLOCK": 8},
    "matmul": {"BM": 16, "BN": 32, "BK": 16, "GROUP": 2},
    "persistent": {"BLOCK": 16, "PROGRAMS": 3},
    "causal": {"BLOCK": 16},
    "triangle": {"BLOCK": 16},
    "last_pass": {"BLOCK": 16},
    "early": {"BLOCK": 16},
    "branches": {"BLOCK": 16},
    "unrolled": {"BLOCK": 16},
    "called": {"BLOCK": 16},
    "atomics": {"BLOCK": 16},
    "descriptors": {"BLOCK": 16},
    "blocks": {"BLOCK": 16},
    "tail_grid": {"BLOCK": 16},
}
# Nothing is known before a launch of what these move.
UNKNOWN = {
    "loaded_bound": {"BLOCK": 16},
    "while_loop": {"BLOCK": 16},
    "loaded_branch": {"BLOCK": 16},
    "assembly": {"BLOCK": 16},
}


@triton.jit
def elementwise(x, y, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < N) + 1.0, mask=at < N)


@triton.jit
def softmax(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
        larger = tl.maximum(largest, values)
        total = total * tl.exp(largest - larger) + tl.exp(values - larger)
        largest = larger
    top = tl.max(largest)
    scale = tl.sum(total * tl.exp(largest - top))
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
        tl.store(y + row * N + at, tl.exp(values - top) / scale, mask=at < N)


@triton.jit
def layer_norm(x, w, y, mean, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * N + at, mask=at < N, other=0.0)
    middle = tl.sum(total) / N
    tl.store(mean + row, middle)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        weight = tl.load(w + at, mask=at < N)
        values = tl.load(x + row * N + at, mask=at < N)
        tl.store(y + row * N + at, (values - middle) * weight, mask=at < N)


@triton.jit
def matmul(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    pid = tl.program_id(0)
    across = tl.cdiv(N, BN)
    first = pid // (GROUP * across) * GROUP
    rows = min(tl.cdiv(M, BM) - first, GROUP)
    m = first + pid % (GROUP * across) % rows
    n = pid % (GROUP * across) // rows
    rm, rn, rk = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = tl.load(a + rm[:, None] * K + rk[None, :], mask=rk[None, :] < K - k * BK, other=0.0)
        right = tl.load(b + rk[:, None] * N + rn[None, :], mask=rk[:, None] < K - k * BK, other=0.0)
        total += tl.dot(left, right)
        a += BK
        b += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], total, mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def persistent(x, y, N, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(N, BLOCK), PROGRAMS):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at, mask=at < N), mask=at < N)


@triton.jit
def causal(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, min((row + 1) * BLOCK, N), BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK))
    tl.store(y + tl.program_id(1) * N + row * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def triangle(x, y, N, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), N):
        for column in range(row, N, 2):
            tl.store(y + row * N + column, tl.load(x + column))
        tl.store(y + row, 0.0)


@triton.jit
def last_pass(x, y, N, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(N):
        total += tl.load(x + step * BLOCK + tl.arange(0, BLOCK))
        if step == N - 1:
            tl.store(y + tl.arange(0, BLOCK), total)


@triton.jit
def early(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if row >= N:
        return
    at = row * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def branches(x, y, N, M, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    passes = 1
    if N > 4:
        passes = M
        tl.store(y + at, 0.0)
    elif N == 2 and M != 3:
        tl.store(y + at, tl.load(x + at))
    for step in range(passes):
        tl.store(y + step, 1.0)


@triton.jit
def unrolled(x, y, N, BLOCK: tl.constexpr):
    for step in tl.range(0, N, 2, loop_unroll_factor=2):
        tl.store(y + step, tl.load(x + step))


@triton.jit(noinline=True)
def _store_some(y, N, BLOCK: tl.constexpr):
    if N < 3:
        return
    for step in range(N):
        tl.store(y + step * BLOCK + tl.arange(0, BLOCK), 0.0)


@triton.jit
def called(x, y, N, BLOCK: tl.constexpr):
    for step in range(2):
        _store_some(y, N + step, BLOCK)
    tl.store(y, tl.load(x))


@triton.jit
def atomics(x, y, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(y + at, tl.load(x + at), mask=at < N)
    tl.atomic_cas(y.to(tl.pointer_type(tl.int32), bitcast=True), 1, 2)


@triton.jit
def descriptors(x, y, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [N, 64], [64, 1], [BLOCK, 32])
    target = tl.make_tensor_descriptor(y, [N, 64], [64, 1], [BLOCK, 32])
    for row in range(0, N, BLOCK):
        target.store([row, 0], source.load([row, 32]))


@triton.jit
def blocks(x, y, N, BLOCK: tl.constexpr):
    at = tl.make_block_ptr(x, (N, 64), (64, 1), (0, 0), (BLOCK, 16), (1, 0))
    to = tl.make_block_ptr(y, (N, 64), (64, 1), (0, 0), (BLOCK, 16), (1, 0))
    for _ in range(4):
        tl.store(to, tl.load(at, boundary_check=(0,)), boundary_check=(0,))
        at = tl.advance(at, (0, 16))
        to = tl.advance(to, (0, 16))


@triton.jit
def tail_grid(x, y, N, BLOCK: tl.constexpr):
    if tl.program_id(2) == tl.num_programs(2) - 1:
        tl.store(y + tl.arange(0, BLOCK), tl.load(x + tl.program_id(1)))
    for step in range(tl.program_id(0), N - tl.program_id(1)):
        tl.store(y + step, 0.0)


@triton.jit
def loaded_bound(x, y, N, BLOCK: tl.constexpr):
    for step in range(tl.load(x.to(tl.pointer_type(tl.int32), bitcast=True))):
        tl.store(y + step, 0.0)


@triton.jit
def while_loop(x, y, N, BLOCK: tl.constexpr):
    step = 0
    while step < N:
        tl.store(y + step, 0.0)
        step += 1


@triton.jit
def loaded_branch(x, y, N, BLOCK: tl.constexpr):
    if tl.load(x) > 0.0:
        tl.store(y + tl.arange(0, BLOCK), 0.0)


@triton.jit
def assembly(x, y, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, 0.0)
    tl.inline_asm_elementwise(
        "{ griddepcontrol.wait; mov.b32 $0, $1; }",
        *("=r,r", [at]),
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def host_descriptor(source, y, N, BLOCK: tl.constexpr):
    for start in range(0, source.shape[1], BLOCK):
        tl.store(y, tl.sum(source.load([0, start]).reshape(BLOCK * BLOCK), 0))
    for step in range(N):
        tl.store(y + step, 0.0)


@triton.jit
def tupled(places, N, BLOCK: tl.constexpr):
    for step in range(N):
        tl.store(places[0] + step, 0.0)


@triton.jit
def flagged(y, F, BLOCK: tl.constexpr):
    if F:
        tl.store(y + tl.arange(0, BLOCK), 0.0)


def _compile() -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    made = {}
    for name, constants in {**CONSTANTS, **UNKNOWN}.items():
        kernel = globals()[name]
        kinds = {"x": "*fp16"} if name == "elementwise" else {}
        signature = {
            argument: "constexpr"
            if argument in constants
            else kinds.get(argument, "i32" if argument.isupper() else "*fp32")
            for argument in kernel.arg_names
        }
        compiled = triton.compile(
            ASTSource(kernel, signature=signature, constexprs=constants),
            target=GPUTarget("cuda", 90, 32),
        )
        made[name] = {"ttir": compiled.asm["ttir"], "signature": signature}
    print(json.dumps(made))


def _interpret() -> None:
    """Run launches whose loads give zeros and whose stores do nothing."""
    import numpy as np
    import torch
    from triton.runtime import interpreter

    moved = 0

    def load(pointers: Any, mask: Any, other: Any, kind: Any) -> Any:
        nonlocal moved
        moved += pointers.size * np.dtype(kind).itemsize
        return np.zeros_like(pointers, dtype=kind)

    def store(pointers: Any, values: Any, mask: Any) -> None:
        nonlocal moved
        moved += pointers.size * values.dtype.itemsize

    def change(pointers: Any, values: Any) -> Any:
        nonlocal moved
        moved += 2 * pointers.size * values.dtype.itemsize
        return np.zeros_like(values)

    interpreter._interpreter = SimpleNamespace(
        load=load,
        store=store,
        atomic_rmw=lambda how, pointers, values, mask, order: change(pointers, values),
        atomic_cas=lambda pointers, expected, values, order: change(pointers, values),
        MEM_SEMANTIC=interpreter._interpreter.MEM_SEMANTIC,
        RMW_OP=interpreter._interpreter.RMW_OP,
    )
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
    for line in sys.stdin:
        moved, launch = 0, json.loads(line)
        kernel = globals()[launch["kernel"]]
        kind = torch.float16 if launch["kernel"] == "elementwise" else torch.float32
        tensors = {"x": torch.zeros(4, dtype=kind)}
        pointers = {
            name: tensors.get(name, torch.zeros(4)) for name in kernel.arg_names if name.islower()
        }
        kernel[tuple(launch["grid"])](**pointers, **launch["integers"])
        print(moved, flush=True)


def _launch() -> None:
    """Print what the metadata of launches says."""
    import torch
    from fakes.triton_driver import FakeDriver
    from triton import knobs
    from triton.tools.tensor_descriptor import TensorDescriptor

    from proton_bench_plugins.triton.code_bytes import CodeBytes

    FakeDriver()
    found: list[int | None] = []
    knobs.runtime.launch_enter_hook.add(lambda facts: found.append(facts.data.get("code_bytes")))
    CodeBytes().watch(sys.modules["triton.compiler.compiler"])
    y = SimpleNamespace(dtype=torch.float32, data_ptr=lambda: 256)
    for inner in (1, 16, 40, 64):  # Triton compiles 1 and multiples of 16 into the code
        matmul[(4,)](y, y, y, 32, 64, inner, BM=16, BN=32, BK=16, GROUP=2)
    persistent[lambda arguments: (arguments["PROGRAMS"],)](y, y, N=100, BLOCK=16, PROGRAMS=3)
    for shape in ((8, 8), (4, 16)):
        tensor = torch.zeros(shape)
        descriptor = TensorDescriptor(tensor, list(shape), [shape[1], 1], [4, 4])
        host_descriptor[(2,)](descriptor, y, 5, BLOCK=4)
    tupled[(2,)]((y, y), 9, BLOCK=4)
    for flag in (True, False, 2**40):
        flagged[(2,)](y, flag, BLOCK=4)
    print(json.dumps(found))


if __name__ == "__main__":
    {"compile": _compile, "launch": _launch, "interpret": _interpret}[sys.argv[1]]()
