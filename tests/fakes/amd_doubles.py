"""Build and drive the doubles of AMD's libraries.

``amd_doubles(folder)`` compiles them once; run a process with ``environment(...)`` of them and
every profiler that opens these libraries gets the doubles. ``Amd`` is the control of
fake_amd/control.h for that process; its functions have the names of ``doubles.Cupti``'s, so
that one program drives either.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

if __package__:
    from fakes.doubles import HERE, SOURCES, Controls, Signatures, compile_library, newest_source
else:  # a program of a test, with this folder in its path
    from doubles import HERE, SOURCES, Controls, Signatures, compile_library, newest_source

_LIBRARIES = {  # file: sources; the others need the first
    "libamdhip64.so": ("device", "graphs", "hip", "work"),
    "libhsa-runtime64.so.1": ("hsa",),
    "libroctracer64.so": ("roctracer",),
    "librocprofiler-sdk.so": ("rocprofiler", "sdk"),
    "libroctx64.so": ("roctx",),
}
_VARIABLES = {
    "PROTON_BENCH_HIP_LIB": "libamdhip64.so",
    "PROTON_BENCH_HSA_LIB": "libhsa-runtime64.so.1",
    "PROTON_BENCH_ROCTRACER_LIB": "libroctracer64.so",
    "PROTON_BENCH_ROCPROFILER_LIB": "librocprofiler-sdk.so",
    "PROTON_BENCH_ROCTX_LIB": "libroctx64.so",
}


@dataclass(frozen=True)
class AmdDoubles:
    """A folder with the doubles."""

    folder: Path

    @property
    def hip(self) -> Path:
        """The double of libamdhip64, which has the controls."""
        return self.folder / "libamdhip64.so"

    def environment(self, **variables: str) -> dict[str, str]:
        """Return this process's environment with the doubles in the place of the libraries."""
        paths = [str(self.folder), os.environ.get("LD_LIBRARY_PATH", "")]
        return {
            **os.environ,
            "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
            **{name: str(self.folder / file) for name, file in _VARIABLES.items()},
            "FAKE_AMD_LIB": str(self.hip),
            **variables,
        }


def amd_doubles(folder: Path) -> AmdDoubles:
    """Return the doubles in ``folder``, compiled if they are missing or older than their sources.

    Several processes may ask at the same time.

    Raises:
        NoCompilerError: There is no compiler.
    """
    place = folder / "amd"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(newest_source(HERE), newest_source(SOURCES / "driver"))
        made = place / next(reversed(_LIBRARIES))
        if not made.exists() or made.stat().st_mtime < newest:
            _compile_all(place)
    return AmdDoubles(place)


def _compile_all(place: Path) -> None:
    for file, names in _LIBRARIES.items():
        sources = [HERE / "fake_amd" / f"{name}.cpp" for name in names]
        options = [f"-Wl,-soname,{file}"]
        if file != "libamdhip64.so":
            options += [f"-L{place}", "-lamdhip64", "-Wl,-rpath,$ORIGIN"]
        compile_library(sources, place / file, options)
    hsa = place / "libhsa-runtime64.so"  # as older Tritons open it
    hsa.unlink(missing_ok=True)
    hsa.symlink_to("libhsa-runtime64.so.1")


class Launch(ctypes.Structure):
    """FakeAmdLaunch of fake_amd/control.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("duration_ns", ctypes.c_uint64),
        ("device", ctypes.c_uint32),
        ("stream", ctypes.c_uint32),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("call", ctypes.c_uint32),
        ("missing_items", ctypes.c_uint32),
    ]


_NUMBER, _LONG, _TEXT = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p
_SIGNATURES: Signatures = {
    "launch": (_LONG, (_TEXT, _NUMBER)),
    "launch_as": (_LONG, (ctypes.POINTER(Launch),)),
    "failing_launch": (_LONG, (_TEXT, ctypes.c_int)),
    "copy": (_LONG, (ctypes.c_int, _LONG, _NUMBER)),
    "set": (_LONG, (_LONG, _NUMBER)),
    "bench": (ctypes.c_double, (_LONG,)),
    "range_push": (None, (_TEXT,)),
    "range_pop": (None, ()),
    "mark": (None, (_TEXT,)),
    "capture_begin": (None, (_NUMBER,)),
    "capture_end": (_NUMBER, (_NUMBER,)),
    "capture_join": (None, (_NUMBER, _NUMBER)),
    "graph_create": (_NUMBER, ()),
    "graph_add_kernel": (None, (_NUMBER, _TEXT)),
    "graph_add_child": (None, (_NUMBER, _NUMBER)),
    "graph_clone": (_NUMBER, (_NUMBER,)),
    "graph_instantiate": (_NUMBER, (_NUMBER,)),
    "graph_update": (None, (_NUMBER, _NUMBER)),
    "graph_launch": (_LONG, (_NUMBER, _NUMBER)),
    "graph_destroy": (None, (_NUMBER,)),
    "graph_exec_destroy": (None, (_NUMBER,)),
    "graph_order": (None, (ctypes.c_int,)),
    "hold": (None, (_NUMBER,)),
    "release": (None, (_NUMBER,)),
    "drop": (None, (_LONG,)),
    "shuffle": (None, (ctypes.c_int,)),
    "hide_kernels": (None, (ctypes.c_int,)),
    "set_correlation": (None, (_LONG,)),
    "set_clock": (None, (_LONG,)),
    "fail": (None, (_TEXT,)),
    "calls": (_LONG, (_TEXT,)),
    "drain": (None, ()),
    "start_runtime": (None, ()),
    "records_waiting": (_LONG, ()),
    "is_traced": (ctypes.c_int, (_TEXT,)),
}


class Amd(Controls):
    """The doubles of AMD's libraries in this process."""

    def __init__(self, path: str | None = None) -> None:
        super().__init__(path or os.environ["FAKE_AMD_LIB"], "fake_amd_", _SIGNATURES)

    def launch_with(self, name: str, **fields: object) -> int:
        """Launch one kernel; ``fields`` are those of Launch, grid and block as three numbers."""
        launch = Launch(name.encode(), 1000, 0, 7, (1, 1, 1), (64, 1, 1), 0, 0, 0)
        for key, value in fields.items():
            if key != "context":  # what NVIDIA's devices have
                setattr(launch, key, value)
        return int(str(self._functions["launch_as"](ctypes.byref(launch))))

    def nvtx_push(self, name: str) -> None:
        """Open a ROCTX range."""
        self._functions["range_push"](name.encode())

    def nvtx_pop(self) -> None:
        """Close a ROCTX range."""
        self._functions["range_pop"]()
