"""Program that compiles kernels down to machine code with the scopes of passes, without a GPU.

    python pass_machine_program.py PASSES '[["matmul", "cuda:90"]]'

prints the list of their ``instrumented_compile.describe``.
"""

from __future__ import annotations

import json
import sys

import triton
from fakes.instrumented_compile import TARGETS, describe
from fakes.pass_kernels import SOURCES

from proton_bench_plugins.instrumentation.compiler.activation import Compilation
from proton_bench_plugins.instrumentation.passes import Inserter, parse_passes
from proton_bench_plugins.instrumentation.settings import Settings


def main(passes: str, cases: list[tuple[str, str]]) -> None:
    settings = Settings(passes=passes)
    compilation = Compilation(settings, Inserter(parse_passes(passes)))
    compilation.attach()
    found = [
        describe(triton.compile(SOURCES[kernel].ast(), target=TARGETS[target]), settings)
        for kernel, target in cases
    ]
    compilation.detach()
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
