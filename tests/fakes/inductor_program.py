"""Program that has torch's Inductor generate code with its switch for Proton, without a GPU.

    python inductor_program.py FOLDER TRACE

runs the profiler's part of the generated code twice, with ours under upstream's name, then compiles
the generated kernel for a GPU, has torch process a trace of scopes inside kernels, and prints the
results as one JSON object.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FOLDER = Path(sys.argv[1])
os.environ["TORCHINDUCTOR_TRITON_PROTON_PROFILING"] = "1"
os.environ["TORCHINDUCTOR_TRITON_PROTON_OUTPUT_DIR"] = str(FOLDER / "traces")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(FOLDER / "inductor")

from proton_bench.recording import compat  # noqa: E402

compat.install()

import torch  # noqa: E402
import triton  # noqa: E402
from torch._inductor import config  # noqa: E402
from torch._inductor.graph import GraphLowering  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

import proton_bench  # noqa: E402
from proton_bench.recording.kernels.instrumentation_hook import InstrumentationHook  # noqa: E402
from proton_bench_plugins.instrumentation.compiler.activation import Compilation  # noqa: E402
from proton_bench_plugins.instrumentation.settings import Settings  # noqa: E402

HOPPER = GPUTarget("cuda", 90, 32)


class _GeneratedError(BaseException):
    """Carries the generated code out of the compiler, which would go on to build it."""


def generate() -> str:
    """Return the code of a softmax; the CPU stands in for the GPU, with Triton's kernels."""
    driver = SimpleNamespace(get_current_target=lambda: HOPPER, get_current_device=lambda: 0)
    triton.runtime.driver.set_active(driver)
    config.cpu_backend = "triton"

    def stop(code: str) -> None:
        raise _GeneratedError(code)

    GraphLowering.save_output_code = staticmethod(stop)
    try:
        torch.compile(lambda x: torch.softmax(x + 1, -1))(torch.rand(64, 64))
    except _GeneratedError as generated:
        return str(generated)
    raise RuntimeError("Inductor generated no code")


def run_header(code: str) -> dict[str, Any]:
    """Run the code before the first kernel twice, as for two modules."""
    header = code[: code.index("# kernel path:")]
    started: list[Any] = []
    undo: list[Any] = []

    def start(*arguments: Any, **options: Any) -> int:
        started.append([arguments, options])
        undo.append(
            InstrumentationHook.announce()
        )  # as the collector does; there is no GPU to start it for
        return 0

    proton_bench.start = start
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(header, namespace)
    exec(header, dict(namespace))
    for each in undo:
        each()
    return {"started": started, "finish": "_proton_finalize_and_postprocess" in namespace}


def compile_kernel(code: str) -> dict[str, Any]:
    """Compile the kernel with records and without; the launcher around it wants a real device."""
    source = re.search(r"async_compile\.triton\('(\w+)', '''(.*?)'''", code, re.DOTALL)
    assert source is not None
    bare = re.sub(r"@triton_heuristics.*?\n\)\n", "", source[2], flags=re.DOTALL)
    file = FOLDER / "kernel.py"
    file.write_text(bare.replace("triton_helpers.set_driver_to_cpu()", ""))
    namespace: dict[str, Any] = {"__file__": str(file), "__name__": "kernel"}
    exec(compile(file.read_text(), file, "exec"), namespace)
    function = namespace[source[1]]
    text = re.search(r"'signature': (\{.*?\})", source[2])
    assert text is not None
    signature = eval(text[1])
    constants = {name: 1 for name, kind in signature.items() if kind == "constexpr"}

    def records() -> list[str]:
        made = triton.compile(ASTSource(function, signature, constants), target=HOPPER)
        return re.findall(r'proton\.record (\w+) "(\w+)"', made.asm["ttgir"])

    plain = records()
    compilation = Compilation(Settings())
    compilation.attach()
    recorded = records()
    compilation.detach()
    return {"kernel": source[1], "plain": plain, "recorded": recorded}


def process(trace: str, **options: bool) -> dict[str, Any]:
    """Return the events that torch makes of a trace, by the name of the file they go to."""
    from torch._inductor.runtime.proton_utils import process_proton_trace

    folder = FOLDER / "-".join(options)
    written = process_proton_trace(trace, output_dir=str(folder), **options)
    return {
        Path(path).name: json.loads(gzip.decompress(Path(path).read_bytes()))["traceEvents"]
        for path in written
    }


def main() -> None:
    code = generate()
    found = {**run_header(code), **compile_kernel(code)}
    trace = FOLDER / "inductor.chrome_trace"
    trace.write_bytes(gzip.decompress(Path(sys.argv[2]).read_bytes()))
    found["per_program"] = process(str(trace))
    found["by_core"] = process(str(trace), per_cta_occupancy=False)
    found["names"] = sorted(set(re.findall(r"\b(?:proton|pl|_ProtonHookManager)\.\w+", code)))
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
