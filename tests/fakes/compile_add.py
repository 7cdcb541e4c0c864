"""Compiles one kernel without a GPU, in a session's way where ``WITH_RECORDS`` is set."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

import triton
from fakes.scoped_kernels import SOURCES
from triton.backends.compiler import GPUTarget

import proton_bench as proton
from proton_bench_plugins.instrumentation.compiler.activation import Compilation
from proton_bench_plugins.instrumentation.settings import Settings


@contextlib.contextmanager
def records() -> Any:
    compilation = Compilation(Settings())
    compilation.attach()
    try:
        yield
    finally:
        compilation.detach()


def main() -> None:
    session = proton.start("unwanted", backend="cpu")
    with records() if os.environ.get("WITH_RECORDS") else contextlib.nullcontext():
        kernel = triton.compile(
            SOURCES["plain_add"].ast(32),
            target=GPUTarget("cuda", 90, 32),
            options={"num_warps": 4, **({"ir_override": sys.argv[1]} if sys.argv[1:] else {})},
        )
    proton.finalize()
    words = [kernel.asm["ttgir"].count("proton.record"), kernel.asm["ptx"].count("%clock")]
    words += [kernel.metadata.profile_scratch_size, session]
    sys.stdout.write(f"compiled {words}\n")


if __name__ == "__main__":
    main()
