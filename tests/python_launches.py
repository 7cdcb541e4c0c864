"""Launches from Python, from C with and without the GIL, and the paths a session gives them."""

from __future__ import annotations

import ctypes
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from proton_bench import _native as native
from proton_bench.recording.session.conversion import encode_phase

INCLUDE = Path(__file__).parents[1] / "native" / "include"
# Files whose frames paths leave out, also above a test.
HIDDEN = ("<frozen runpy>", "/_pytest/", "/pluggy/", "/proton_bench/pytest_plugin.py")
# Paths start below the function of pytest that calls a test: its file and name.
CALLS_TEST = ("python.py", "pytest_pyfunc_call")
COLLECTOR = """
#include <pthread.h>
#include "proton_bench/record_sink.h"

extern void PyErr_SetString(void *, const char *);
extern void *PyExc_KeyError;
static const pb_record_sink *sink;

void use_sink(const pb_record_sink *given) { sink = given; }

uint64_t launch_here(void) { return sink->capture(sink->self, NULL); }

uint64_t launch_with_an_error_pending(void) {
  PyErr_SetString(PyExc_KeyError, "of the target");
  return sink->capture(sink->self, NULL);
}

static void *capture(void *id) {
  *(uint64_t *)id = sink->capture(sink->self, NULL);
  return NULL;
}

uint64_t launch_on_a_thread_without_python(void) {
  pthread_t worker;
  uint64_t id = 0;
  if (pthread_create(&worker, NULL, capture, &id) == 0) pthread_join(worker, NULL);
  return id;
}
"""


def compiled_collector(folder: Path) -> Path | None:
    """Return the library made of ``COLLECTOR``, or None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source, library = folder / "collector.c", folder / "collector.so"
    source.write_text(COLLECTOR, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", f"-I{INCLUDE}", str(source), "-o", str(library)]
    subprocess.run([*command, "-lpthread"], check=True)
    return library


def connect(library: ctypes.CDLL) -> None:
    """Give the library the sink of this process."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    library.use_sink.argtypes = [ctypes.c_void_p]
    library.use_sink(pointer(native.record_sink(), b"proton_bench.record_sink"))
    for name in ("here", "with_an_error_pending", "on_a_thread_without_python"):
        getattr(library, f"launch_{name}").restype = ctypes.c_uint64


def frames_of(frame: FrameType | None) -> tuple[str, ...]:
    """Return the path of a frame, outermost first."""
    found: list[str] = []
    while frame is not None:
        code = frame.f_code
        if (Path(code.co_filename).name, code.co_name) == CALLS_TEST:
            break
        if not any(part in code.co_filename for part in HIDDEN):
            found.append(f"{code.co_filename}:{frame.f_lineno}@{code.co_name}")
        frame = frame.f_back
    return tuple(reversed(found))


class PythonSession:
    """A session with Python context that knows which path each of its launches must have."""

    def __init__(self) -> None:
        self.core = native.Session("python", False)
        self.core.activate()
        self.expected: dict[str, tuple[str, ...]] = {}
        self._names = (f"kernel {number}" for number in itertools.count())

    def launch(self, emit: Callable[[], int] = native.emit_launch) -> str:
        """Launch a kernel of a new name, and note the frames that its path must show."""
        name = next(self._names)
        frame = sys._getframe()
        correlation_id, self.expected[name] = emit(), frames_of(frame)
        self.complete(correlation_id, name)
        return name

    def complete(self, correlation_id: int, name: str) -> None:
        """Emit the kernel of a launch."""
        native.emit_kernel(correlation_id, name, 0, 1, "CUDA", 0, 0)

    def paths(self) -> dict[str, tuple[str, ...]]:
        """Return the recorded path of each kernel, outermost frame first."""
        root = json.loads(encode_phase(self.core, 0, "hatchet"))[0]
        found: dict[str, tuple[str, ...]] = {}
        pending: list[tuple[dict[str, Any], tuple[str, ...]]] = [(root, ())]
        while pending:
            node, path = pending.pop()
            for child in node["children"]:
                name = child["frame"]["name"]
                if name.startswith("kernel "):
                    found[name] = path
                pending.append((child, (*path, name)))
        return found

    def close(self) -> None:
        """Drop the session and its data."""
        if self.core.is_live:
            self.core.remove()
