"""Runs kernels in Triton's interpreter with the passes attached, then without them.

    python interpreted_passes.py FOLDER

prints one JSON object with the results and with what was left behind.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.errors import InterpreterError

import proton_bench as proton
from proton_bench import _native
from proton_bench.formats.registry import read_profile
from proton_bench_plugins.instrumentation.passes import parse_passes
from proton_bench_plugins.instrumentation.passes.interpreted import InterpretedScopes


@triton.jit
def first_above(x, y, limit, N: tl.constexpr):  # noqa: N803
    found = tl.zeros((1,), tl.int32)
    for i in range(N):
        value = tl.load(x + i)
        if value > limit:
            found += i
            break
    else:
        found -= 1
    tl.atomic_add(y + tl.arange(0, 1), found)


@triton.jit
def broken(x, N: tl.constexpr):  # noqa: N803
    for i in range(N):
        tl.load(x + i)
        undefined  # noqa: B018, F821


def methods() -> list[str]:
    builder = vars(interpreter.InterpreterBuilder)
    named = [f"{name} {value!r}" for name, value in builder.items() if name.startswith("create_")]
    return [*named, repr(interpreter.FunctionRewriter._transform_ast)]


def search(limit: float) -> int:
    y = torch.zeros(1, dtype=torch.int32)
    first_above[(1,)](torch.arange(8.0), y, limit, N=8)
    return int(y)


def scopes(folder: str, name: str, work: Any) -> list[str]:
    session = proton.start(f"{folder}/{name}", backend="cpu")
    work()
    proton.finalize(session)
    profile = read_profile(f"{folder}/{name}.hatchet")
    names = [profile.path(row)[-1] for row in range(1, len(profile))]
    return [each.partition("@")[0] for each in names if "@" in each]


def fail() -> None:
    try:
        broken[(1,)](torch.arange(8.0), N=8)
    except InterpreterError:
        return
    raise RuntimeError("the kernel did not fail")


def main(folder: str) -> None:
    before = methods()
    plain = [search(3.0), search(99.0)]
    attached = InterpretedScopes(parse_passes("loops,loads,stores"), interpreter)
    found: dict[str, Any] = {
        "computed": [search(3.0), search(99.0)] == plain == [4, -1],
        "scopes": scopes(folder, "search", lambda: search(3.0)),
        "failed": scopes(folder, "failed", fail),
        "open": len(_native.open_frames()),
    }
    attached.remove()
    found["after"] = scopes(folder, "after", lambda: search(3.0))
    found["restored"] = methods() == before
    found["globals"] = "_proton_bench_loop" in vars(interpreter)
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
