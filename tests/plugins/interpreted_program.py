"""Program that the tests of the cpu backend record: everything the interpreter can do."""

from __future__ import annotations

import json
import sys

import proton_bench as proton

session = proton.start(f"{sys.argv[1]}/plain", backend="cpu")

# After the start on purpose: the backend attaches to what is imported later.
import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime.errors import InterpreterError  # noqa: E402
from triton.runtime.interpreter import GridExecutor  # noqa: E402

FACTS: dict[str, object] = {}
patched_call = GridExecutor.__call__
patched_trial = triton.runtime.autotuner.Autotuner._bench


def describe(grid, metadata, args):
    FACTS["metadata"] = [list(grid), metadata.name, metadata.num_warps, args["BLOCK"]]
    # A kernel of its own while the metadata is evaluated: filed apart, not hooked again.
    args["x"].sum()
    return {"name": f"double_{args['n']}", "flops32": float(args["n"]), "bytes": 8 * args["n"]}


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@triton.jit(launch_metadata=describe)
def double(x, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def add_rows(x, n, BLOCK: tl.constexpr):  # noqa: N803
    for start in range(tl.program_id(0), n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@triton.jit
def broken(x, BLOCK: tl.constexpr):  # noqa: N803
    tl.store(x + tl.arange(0, BLOCK), missing_name)  # noqa: F821


@triton.autotune(
    [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"], reset_to_zero=["x"]
)
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, gradient):
        add_one[(1,)](gradient.contiguous(), 4, BLOCK=4)
        return gradient * 3


def grid(meta):
    return (triton.cdiv(20, meta["BLOCK"]),)


x = torch.zeros(20)
with proton.scope("plain"):
    for _ in range(3):
        add_one[(2,)](x, 20, BLOCK=16)
FACTS["plain"] = x[:2].tolist()
with proton.scope("variants"):
    add_one[(5,)](x, 20, BLOCK=4)
    add_one[(2,)](x, 20, BLOCK=16)
with proton.scope("looped"):
    before_loop = x.clone()
    add_rows[(1,)](x, 20, BLOCK=8)
FACTS["looped"] = (x - before_loop).tolist()
with proton.scope("tuned"):
    tuned[grid](x, 20)
with proton.scope("benchmarked"):
    FACTS["do_bench"] = triton.testing.do_bench(lambda: add_one[(2,)](x, 20, BLOCK=16), rep=1)
with proton.scope("broken"):
    try:
        broken[(1,)](x, BLOCK=4)
    except InterpreterError as error:
        FACTS["broken"] = type(error).__name__
with proton.scope("after_broken"):
    add_one[(2,)](x, 20, BLOCK=16)
with proton.scope("backward"):
    parameter = torch.ones(4, requires_grad=True)
    Scaled.apply(parameter).sum().backward()
with proton.scope("operators"):
    torch.nn.functional.linear(torch.ones(2, 8), torch.ones(4, 8)).softmax(-1)
proton.deactivate(session)
with proton.scope("inactive"):
    add_one[(2,)](x, 20, BLOCK=16)
    x + 1
proton.finalize(session)
FACTS["restored"] = GridExecutor.__call__ is not patched_call
FACTS["trials_restored"] = triton.runtime.autotuner.Autotuner._bench is not patched_trial
FACTS["target"] = triton.runtime.driver.active.get_current_target().backend
FACTS["device"] = str(triton.runtime.driver.active.get_active_torch_device())
tuned[grid](x, 20)

hooked = proton.start(f"{sys.argv[1]}/hooked", backend="cpu", hook="triton")
with proton.scope("described"):
    double[grid](x, 20, BLOCK=4, num_warps=8)
with proton.scope("undescribed"):
    add_one[(2,)](x, 20, BLOCK=16)
proton.finalize(hooked)
sys.stdout.write(json.dumps(FACTS))
