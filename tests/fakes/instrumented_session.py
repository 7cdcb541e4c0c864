"""Launches kernels on a simulated driver, with and without the collector of instrumentation.

    python instrumented_session.py

prints one JSON object with the results. A program of its own, so that tests can run it on several
Tritons and with a cache of Triton's that earlier runs filled.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
import triton
from fakes.scoped_kernels import add, plain_add
from fakes.triton_driver import FakeDriver
from triton import knobs
from triton.runtime._allocation import _profile_allocator

import proton_bench.language as pl
from proton_bench.errors import ProtonError
from proton_bench.flags import flags
from proton_bench.plugin.backend import parse_mode
from proton_bench.recording.kernels.instrumentation_hook import InstrumentationHook
from proton_bench_plugins.instrumentation.collector import InstrumentationCollector
from proton_bench_plugins.instrumentation.settings import read_settings


class Memory:
    def data_ptr(self) -> int:
        return 4096


class Runtime:
    """Notes the collector's calls of the native runtime."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.kernels: dict[int, Any] = {}

    def start(self) -> None:
        self.seen.append("start")

    def flush(self) -> None:
        self.seen.append("flush")

    def stop(self) -> None:
        self.seen.append("stop")

    def allocator(self, size: int, alignment: int, stream: int | None) -> Memory:
        self.seen.append(["allocate", size, alignment, stream])
        return Memory()

    def launch_exit(self, metadata: Any) -> None:
        self.seen.append(["launched", self.kernels.get(metadata.data["function"])])

    def read_records(self, stream: int) -> bytes:
        return b"records"

    def add_kernel(self, function: int, kernel: Any) -> None:
        self.kernels[function] = [kernel.name, dict(kernel.names), kernel.profile_scratch_size]

    def add_plain(self, function: int) -> None:
        self.kernels.pop(function, None)

    def remove_kernel(self, function: int) -> None:
        self.kernels.pop(function, None)

    def facts(self) -> dict[str, Any]:
        return {"record_cost_cycles": 1.5}


def state() -> list[Any]:
    """Return everything that a session changes and must restore."""
    compilers = [each.compiler for each in triton.backends.backends.values()]
    register = sys.modules.get("triton._instrumentation")
    return [
        knobs.compilation.instrumentation_mode,
        repr(knobs.runtime.add_stages_inspection_hook),
        flags.instrumentation_on,
        repr(_profile_allocator.get()),
        [repr(getattr(compiler, "instrumentation", None)) for compiler in compilers],
        [compiler.parse_options.__qualname__ for compiler in compilers],
        sorted(getattr(register, "_callbacks", ())),
        len(knobs.runtime.launch_exit_hook.calls),
        len(knobs.runtime.kernel_load_end_hook.calls),
    ]


def launch() -> Any:
    return add[(2,)](torch.zeros(256), torch.zeros(256), 4, BLOCK=256)


def session(mode: str, *, count: int = 1) -> dict[str, Any]:
    """Launch in a session."""
    runtime = Runtime()
    collector = InstrumentationCollector(read_settings(parse_mode(mode)), runtime)
    collector.start()
    try:
        kernels = [launch() for _ in range(count)]
        collector.flush()
    finally:
        collector.stop()
    return {
        "seen": runtime.seen,
        "hash": kernels[-1].hash,
        "records": kernels[-1].asm["ttgir"].count("proton.record"),
        "facts": collector.facts(),
    }


def host_buffer() -> list[Any]:
    """Return what a program that wants the buffer of a launch finds, and the cost for others."""
    runtime = Runtime()
    collector = InstrumentationCollector(read_settings(parse_mode("default")), runtime)
    collector.start()
    try:
        launch()
        before = InstrumentationHook.host_buffer
        InstrumentationHook.enable_host_buffer = True
        launch()
        kept = InstrumentationHook.host_buffer.numpy().tobytes()
        plain_add[(1,)](torch.zeros(256), torch.zeros(256), 1, BLOCK=256, num_warps=2)
        without_scopes = InstrumentationHook.host_buffer.numpy().tobytes()
        InstrumentationHook.enable_host_buffer = False
        heads = knobs.runtime.launch_exit_hook.calls
        return [before, list(kept), runtime.launch_exit in heads, list(without_scopes)]
    finally:
        InstrumentationHook.enable_host_buffer = False
        collector.stop()


def refusals() -> dict[str, str]:
    """Return the errors of sessions that cannot start and kernels that cannot be compiled."""
    said: dict[str, str] = {}

    def attempt(name: str, run: Any) -> None:
        try:
            run()
        except (ProtonError, RuntimeError, triton.CompilationError) as error:
            said[name] = f"{type(error).__name__}: {error}"

    pl.disable_semantic("triton")
    attempt("language", lambda: session("default:buffer_size=2048"))
    pl.enable_semantic("triton")
    knobs.compilation.instrumentation_mode = "consan"
    attempt("sanitizer", lambda: session("default"))
    knobs.compilation.instrumentation_mode = ""
    undo = occupy()
    attempt("other", lambda: session("default"))
    undo()
    return said


def occupy() -> Any:
    """Take the place of upstream's active hook."""
    try:
        from triton import _instrumentation
    except ImportError:
        compiler = triton.backends.backends["nvidia"].compiler
        compiler.instrumentation = {"ttgpuir_to_llvmir": print}

        def undo() -> None:
            compiler.instrumentation = None

        return undo
    point = {"point": "ttgpuir-to-llvmir", "backend": "nvidia"}
    _instrumentation.register_instrumentation(**point, callback=print)
    return lambda: _instrumentation.unregister_instrumentation(**point)


def older_hook(*arguments: Any) -> Any:
    """A hook for stages that the program had set itself."""
    if not arguments:
        return "older", "digest"
    older_calls.append(sorted(arguments[1]))
    return None


older_calls: list[Any] = []


def main() -> None:
    fake = FakeDriver()
    pl.enable_semantic("triton")
    found: dict[str, Any] = {"triton": triton.__version__, "before": state()}
    plain = launch()
    found["plain"] = [plain.hash, plain.asm["ttgir"].count("proton.record")]
    found["first"] = session("default", count=2)
    found["after"] = state()
    found["variants"] = sum(len(caches[0]) for caches in add.device_caches.values())
    found["plain again"] = launch().hash
    found["other options"] = session("default:buffer_type=global")
    found["second"] = session("default")
    knobs.runtime.add_stages_inspection_hook = older_hook
    found["chained"] = session("default:buffer_size=1024")
    found["older calls"] = older_calls
    found["kept hook"] = knobs.runtime.add_stages_inspection_hook is older_hook
    knobs.runtime.add_stages_inspection_hook = None
    found["host buffer"] = host_buffer()
    found["refusals"] = refusals()
    found["after refusals"] = state()
    found["launches"] = fake.launches
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
