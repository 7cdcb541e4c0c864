"""Compiles kernels with records, without a GPU, and prints the results.

    python instrumented_compile.py JSON

takes a list of cases, ``[kernel, target, mode or null]`` each with an optional object of options,
and prints one JSON object. A program of its own, so that tests can run it on several Tritons.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import triton
from fakes.scoped_kernels import SOURCES
from triton.backends.compiler import GPUTarget

import proton_bench.language as pl
from proton_bench.plugin.backend import parse_mode
from proton_bench_plugins.instrumentation.compiler.activation import Compilation
from proton_bench_plugins.instrumentation.compiler.scope_table import read_scopes
from proton_bench_plugins.instrumentation.settings import read_settings

TARGETS = {
    "cuda:80": GPUTarget("cuda", 80, 32),
    "cuda:90": GPUTarget("cuda", 90, 32),
    "cuda:100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
    "gfx950": GPUTarget("hip", "gfx950", 64),
}
_CLOCK = re.compile(r"%clock\b|%clock_hi\b|s_memtime\b")
_INSTRUCTION = re.compile(r"^\s+([a-z]\w+)", re.MULTILINE)
_HARDWARE_REGISTER = re.compile(r"s_getreg_b32 \S+ hwreg\((\w+)")
_SASS_CLOCK = re.compile(r"SR_CLOCK(?:LO|HI)?\b")


def compile_case(kernel: str, target: str, mode: str | None, options: dict[str, Any]) -> Any:
    """Compile a kernel, with records where a mode is given."""
    constants = options.pop("constants", {})
    source = SOURCES[kernel].ast(TARGETS[target].warp_size, **constants)
    arguments = {"target": TARGETS[target], "options": {"num_warps": 4, **options}}
    if mode is None:
        return triton.compile(source, **arguments)
    compilation = Compilation(read_settings(parse_mode(mode)))
    compilation.attach()
    try:
        return triton.compile(source, **arguments)
    finally:
        compilation.detach()


def describe(kernel: Any) -> dict[str, Any]:
    """Return the facts that tests check."""
    paths = {Path(path).suffix: path for path in kernel.metadata_group.values()}
    scopes = read_scopes(paths[".ttgir"], paths[".json"])
    machine = kernel.asm.get("ptx") or kernel.asm.get("amdgcn")
    return {
        "hash": kernel.hash,
        "records": kernel.asm["ttgir"].count("proton.record"),
        "events": len(re.findall(r"proton\.event", kernel.asm["ttgir"])),
        "ttir": kernel.asm["ttir"].count("proton.") if "ttir" in kernel.asm else 0,
        "clock_reads": len(_CLOCK.findall(machine)),
        "sass_clock_reads": sass_clock_reads(paths.get(".cubin")),
        "shared": kernel.metadata.shared,
        "scratch": kernel.metadata.profile_scratch_size,
        "maxnreg": getattr(kernel.metadata, "maxnreg", None),
        "mode": kernel.metadata.instrumentation_mode,
        "names": scopes.names,
        "parents": scopes.parents,
        "warps": scopes.num_warps,
        "registers": scopes.registers,
        "machine": machine if len(machine) < 20000 else "",
        **(describe_amd(kernel) if "amdgcn" in kernel.asm else {}),
    }


def describe_amd(kernel: Any) -> dict[str, Any]:
    """Return facts about the machine code for AMD's GPUs."""
    text, binary = kernel.asm["amdgcn"], kernel.asm["hsaco"]
    return {
        "instructions": Counter(_INSTRUCTION.findall(text)),
        "hardware_registers": sorted(set(_HARDWARE_REGISTER.findall(text))),
        "elf_machine": int.from_bytes(binary[18:20], "little"),
        "elf_flags": int.from_bytes(binary[48:52], "little"),
    }


def sass_clock_reads(cubin: str | None) -> int | None:
    """Count the clock reads of a binary; None where nothing disassembles it."""
    tool = Path(triton.__path__[0], "backends", "nvidia", "bin", "nvdisasm")
    if cubin is None or not tool.exists():
        return None
    done = subprocess.run([tool, "-c", cubin], capture_output=True, text=True, check=False)
    return len(_SASS_CLOCK.findall(done.stdout)) if done.returncode == 0 else None


def main(cases: list[list[Any]]) -> None:
    pl.enable_semantic("triton")
    found = []
    for kernel, target, mode, *options in cases:
        try:
            compiled = compile_case(kernel, target, mode, dict(options[0]) if options else {})
            found.append(describe(compiled))
        except Exception as error:  # noqa: BLE001 - whatever it is, a test looks at it
            chain = [error]
            while chain[-1].__cause__ is not None:
                chain.append(chain[-1].__cause__)
            found.append({"error": " | ".join(f"{type(e).__name__}: {e}" for e in chain)})
    sys.stdout.write(json.dumps({"triton": triton.__version__, "found": found}) + "\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
