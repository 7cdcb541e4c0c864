"""Compiles kernels in the mode of the example package ``kernel_values``, without a GPU.

    python kernel_values_program.py

prints one JSON object: the result by kernel and target.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import triton
from fakes.instrumented_compile import TARGETS
from fakes.scoped_kernels import SOURCES

import proton_bench.language as pl
from proton_bench.plugin import Mode
from proton_bench_plugins.instrumentation.compiler.activation import Compilation
from proton_bench_plugins.instrumentation.settings import read_settings

PACKAGE = Path(__file__).parents[1] / "data" / "plugin_packages" / "kernel_values"
CASES = [("add", target) for target in TARGETS]
CASES += [("tile", "cuda:90"), ("gluon_copy", "cuda:90"), ("matmul", "cuda:90")]
_MAXIMUM = re.compile(r"\b(?:atom|red)\.\S*max\.s32|global_atomic_smax")


def compile_in_mode(kernel: str, target: str, options: dict[str, str]) -> dict[str, Any]:
    from kernel_values import MODE

    settings = read_settings(Mode("largest", options, "largest"), {"largest": MODE})
    compilation = Compilation(settings)
    compilation.attach()
    try:
        source = SOURCES[kernel].ast(TARGETS[target].warp_size)
        compiled = triton.compile(source, target=TARGETS[target], options={"num_warps": 4})
    finally:
        compilation.detach()
    machine = compiled.asm.get("ptx") or compiled.asm["amdgcn"]
    return {
        "hash": compiled.hash,
        "mode": compiled.metadata.instrumentation_mode,
        "scratch": compiled.metadata.profile_scratch_size,
        "maxima": len(_MAXIMUM.findall(machine)),
        "records": compiled.asm["ttgir"].count("proton.record"),
        "clocks": machine.count("%clock") + machine.count("s_memtime"),
    }


def main() -> None:
    sys.path.insert(0, str(PACKAGE))
    pl.enable_semantic("triton")
    found = {f"{kernel} {target}": compile_in_mode(kernel, target, {}) for kernel, target in CASES}
    found["none watched"] = compile_in_mode("add", "cuda:90", {"stores": "0"})
    sys.stdout.write(json.dumps({"triton": triton.__version__, "found": found}) + "\n")


if __name__ == "__main__":
    main()
