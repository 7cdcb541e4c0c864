"""A program for ``proton doctor`` that records one empty kernel.

CUPTI and CUDA are started only in its process.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

__all__ = ["MARK", "main"]

MARK = "proton_bench selftest: "
# Targets that old and new drivers compile for their own GPU.
_TARGETS = ("6.4\n.target sm_52", "6.4\n.target sm_75")
_PTX = ".version {}\n.address_size 64\n.visible .entry proton_bench_selftest()\n{{\n ret;\n}}\n"


def main(candidates: list[tuple[str, str, bool]]) -> None:
    """Print one line of JSON after ``MARK``: ``error``, or ``records``, ``facts`` and ``kernel``.

    Args:
        candidates: Candidates for libcupti from ``find_candidates``.
    """
    result = json.dumps(_record(candidates))
    sys.stdout.write(f"\n{MARK}{result}\n")
    sys.stdout.flush()
    os._exit(0)  # without the exit handlers of drivers and tools


def _record(candidates: list[tuple[str, str, bool]]) -> dict[str, Any]:
    from proton_bench import _native
    from proton_bench.errors import BackendUnavailableError

    collector = _native.CuptiCollector(candidates, flush_period_ms=0)
    try:
        collector.start()
    except BackendUnavailableError as error:
        return {"error": str(error)}
    session = _native.Session("shadow", False)  # noqa: FBT003 - positional there
    session.activate()
    obstacle = _launch()
    collector.flush()
    _native.drain()
    counts = session.counts()
    session.deactivate()
    collector.stop()
    return {"records": counts["records"], "facts": collector.facts(), "kernel": obstacle}


def _launch() -> str:
    """Launch the kernel; return why it did not run, or ""."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    steps: list[tuple[str, tuple[Any, ...]]] = [
        ("cuInit", (0,)),
        ("cuDeviceGet", (ctypes.byref(device), 0)),
        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), 0)),
    ]
    for name, arguments in steps:
        code = cuda[name](*arguments)
        if code != 0:
            return _failed(cuda, name, code)
    if code := cuda.cuCtxSetCurrent(context):
        return _failed(cuda, "cuCtxSetCurrent", code)
    for target in _TARGETS:
        code = cuda.cuModuleLoadData(ctypes.byref(module), _PTX.format(target).encode())
        if code == 0:
            break
    else:
        return _failed(cuda, "cuModuleLoadData", code)
    code = cuda.cuModuleGetFunction(ctypes.byref(function), module, b"proton_bench_selftest")
    if code != 0:
        return _failed(cuda, "cuModuleGetFunction", code)
    code = cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    if code != 0:
        return _failed(cuda, "cuLaunchKernel", code)
    code = cuda.cuCtxSynchronize()
    return _failed(cuda, "cuCtxSynchronize", code) if code else ""


def _failed(cuda: ctypes.CDLL, name: str, code: int) -> str:
    text = ctypes.c_char_p()
    cuda.cuGetErrorString(code, ctypes.byref(text))
    return f"{name} failed: {(text.value or b'error').decode('utf-8', 'replace')} ({code})"


if __name__ == "__main__":
    main([(path, origin, only) for path, origin, only in json.loads(sys.argv[1])])
