"""Launches of instrumented kernels, simulated on the double of libcuda.

    python native_launches.py NAME

runs the function of that name and prints what it returns as JSON. A program of its own, because the
double has to be found in place of the driver's library.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from typing import Any

from proton_bench import _native
from proton_bench.errors import ProtonError
from proton_bench.recording.session.conversion import encode_phase

SCRATCH = 256
WARPS = 2
SLOTS = 8
STREAM = 16
LAYOUT: dict[str, Any] = {
    "name": "matmul",
    "scratch_bytes": SCRATCH,
    "warps": WARPS,
    "warp_ids": [],
    "names": {0: "outer", 1: "inner"},
    "parents": {1: 0},
    "programs": [],
}


class Metadata:
    """What Triton hands to launch hooks."""

    def __init__(self, function: int, stream: int = STREAM) -> None:
        self.data = {"name": "matmul", "function": function, "stream": stream}


def play(address: int, programs: int, cycles: int) -> None:
    """Write what a launch writes: ``inner`` of ``cycles`` within ``outer``, in each warp."""
    for program in range(programs):
        records = b"".join(
            struct.pack("<II", end << 31 | scope << 23, clock)
            for end, scope, clock in (
                (0, 0, 1000),
                (0, 1, 1010),
                (1, 1, 1010 + cycles),
                (1, 0, 1030 + cycles),
            )
        )
        header = struct.pack("<IIIIQQQ", 0xDEADBEEF, program, 3, WARPS * SLOTS * 8, 10, 20, 30)
        block = header + struct.pack("<II", 8, 8) + (records + bytes(SLOTS * 8 - len(records))) * 2
        ctypes.memmove(address + program * SCRATCH, block, len(block))


def launch(runtime: Any, programs: int = 4, cycles: int = 100, function: int = 5) -> None:
    """Launch once, as Triton does."""
    play(runtime.allocator(programs * SCRATCH, 128, STREAM).data_ptr(), programs, cycles)
    runtime.launch_exit(Metadata(function))


def opened(**options: Any) -> Any:
    """Return a runtime that runs and knows one kernel."""
    runtime = _native.InstrumentationRuntime(**options)
    runtime.start()
    runtime.add_kernel(5, LAYOUT)
    return runtime


def session() -> _native.Session:
    """Open an active session."""
    core = _native.Session("shadow", False)
    core.activate()
    return core


def message(call: Any) -> str:
    """Return the class and the text of the error that a call raises."""
    try:
        call()
    except ProtonError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def tree() -> Any:
    """Record launches inside a scope, and return the session's tree."""
    core = session()
    runtime = opened()
    _native.enter_scope("step")
    for cycles in (100, 200, 300):
        launch(runtime, cycles=cycles)
    _native.exit_scope("step")
    runtime.stop()
    return json.loads(encode_phase(core, 0, "hatchet"))


def open_records() -> Any:
    """Return the content of a launch's buffer before the launch ends, and with none open."""
    session()
    runtime = opened()
    play(runtime.allocator(4 * SCRATCH, 128, STREAM).data_ptr(), 4, 100)
    elsewhere = runtime.read_records(STREAM + 1)
    records = runtime.read_records(STREAM)
    runtime.launch_exit(Metadata(5))
    programs = [struct.unpack_from("<I", records, at + 4)[0] for at in range(0, 1024, SCRATCH)]
    after = runtime.read_records(STREAM)
    runtime.stop()
    return {"bytes": len(records), "programs": programs, "others": [elsewhere, after]}


def facts() -> Any:
    """Return facts while and after launches are recorded."""
    session()
    runtime = opened(trace=True)
    launch(runtime)
    runtime.launch_exit(Metadata(6))  # of a kernel without records
    runtime.flush()
    during = runtime.facts()
    runtime.stop()
    return {"during": during, "after": runtime.facts()}


def errors() -> Any:
    """Return the messages of refusals."""
    session()
    runtime = opened(byte_limit=1024, addressable_bytes=512)
    bad = {**LAYOUT, "scratch_bytes": 8}
    found = {
        "limit": message(lambda: runtime.allocator(4096, 128, STREAM)),
        "reach": message(lambda: runtime.allocator(768, 128, STREAM)),
        "layout": message(lambda: runtime.add_kernel(9, bad)),
        "arguments": message(lambda: runtime.allocator(16)),
        "again": message(runtime.start),
    }
    runtime.stop()
    found["stopped"] = message(lambda: runtime.allocator(256, 128, STREAM))
    return found


def private() -> Any:
    """Return the totals of a private kernel, and whether the session saw it."""
    core = session()
    runtime = opened()
    runtime.add_kernel(8, {**LAYOUT, "private": True})
    launch(runtime, cycles=17, function=8)
    taken = runtime.take(8, STREAM)
    runtime.stop()
    return {"taken": taken, "tree": json.loads(encode_phase(core, 0, "hatchet"))}


def after_the_runtime() -> Any:
    """Call the functions that Triton holds after the runtime is gone."""
    runtime = opened()
    allocator, launch_exit = runtime.allocator, runtime.launch_exit
    same = allocator is runtime.allocator
    runtime.stop()
    del runtime
    launch_exit(Metadata(5))
    return {"same": same, "message": message(lambda: allocator(256, 128, STREAM))}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[1]]()))
