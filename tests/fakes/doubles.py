"""Build and drive the doubles of libcupti and libcuda.

``doubles(folder)`` compiles them once and returns a folder that holds ``libcupti.so`` and
``libcuda.so.1``; run a process with ``environment(...)`` of it and every profiler that opens these
names gets the doubles. ``Cupti`` is the control of fake_cupti/control.h for that process.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "native" / "src"
_FLAGS = ("-std=c++20", "-O1", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden")
MARK = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class NoCompilerError(RuntimeError):
    """There is no C++ compiler, so there are no doubles."""


@dataclass(frozen=True)
class Doubles:
    """A folder with the doubles."""

    folder: Path

    @property
    def cupti(self) -> Path:
        """The double of libcupti."""
        return self.folder / "libcupti.so"

    @property
    def nvtx_tool(self) -> Path:
        """A tool that receives NVTX calls; see fake_nvtx.cpp."""
        return self.folder / "libnvtx_tool.so"

    def environment(self, **variables: str) -> dict[str, str]:
        """Return this process's environment with the doubles in the place of the libraries."""
        paths = [str(self.folder), os.environ.get("LD_LIBRARY_PATH", "")]
        return {
            **os.environ,
            "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
            "TRITON_CUPTI_LIB_PATH": str(self.folder),
            "PROTON_BENCH_CUPTI_LIB": str(self.cupti),
            "FAKE_CUPTI_LIB": str(self.cupti),
            **variables,
        }


def compile_library(sources: Sequence[Path], target: Path, options: Sequence[str]) -> None:
    """Compile a double as one file, which reads headers once; it appears complete.

    Raises:
        NoCompilerError: No compiler was found.
    """
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise NoCompilerError("no C++ compiler was found")
    partial = target.with_suffix(".partial")
    includes = [f"-I{SOURCES}", f"-I{HERE}", f"-I{HERE / 'fake_cupti'}"]
    command = [compiler, *_FLAGS, *includes, "-x", "c++", "-", "-x", "none", "-o", str(partial)]
    text = "".join(f'#include "{source}"\n' for source in sources)
    subprocess.run([*command, *options, "-lpthread", "-ldl"], check=True, input=text, text=True)
    partial.replace(target)


def newest_source(folder: Path) -> float:
    """Return when a C++ source of a folder was changed last."""
    files = [path for path in folder.rglob("*") if path.suffix in {".h", ".cpp"}]
    return max(path.stat().st_mtime for path in files)


def doubles(folder: Path, *, with_subscribe_v2: bool = False) -> Doubles:
    """Return the doubles in ``folder``, compiled if they are missing or older than their sources.

    Several processes may ask at the same time. ``with_subscribe_v2`` adds the entry points that
    libcupti has from 13.0 on.

    Raises:
        NoCompilerError: No compiler was found.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        device = SOURCES / "collector" / "instrumentation" / "device"
        newest = max(newest_source(HERE), newest_source(SOURCES / "driver"), newest_source(device))
        made = folder / "cupti-13" / "libcupti.so"
        if not made.exists() or made.stat().st_mtime < newest:
            _compile_all(folder)
    return Doubles(folder / ("cupti-13" if with_subscribe_v2 else "cupti-12"))


def _compile_all(folder: Path) -> None:
    older, newer = folder / "cupti-12", folder / "cupti-13"
    for place in (older, newer):
        place.mkdir(exist_ok=True)
    compile_library([HERE / "fake_nvtx.cpp"], older / "libnvtx_tool.so", [])
    soname = "-Wl,-soname,libcuda.so.1"
    compile_library([HERE / "fake_cuda.cpp"], older / "libcuda.so.1", [soname])
    for name in ("libnvtx_tool.so", "libcuda.so.1"):
        shutil.copy2(older / name, newer / name)
    differs = HERE / "fake_cupti" / "entry_points.cpp"
    same = folder / "cupti.o"
    sources = sorted({*differs.parent.glob("*.cpp")} - {differs})
    compile_library(sources, same, ["-c"])
    compile_library([differs], older / "libcupti.so", [str(same)])
    compile_library([differs], newer / "libcupti.so", [str(same), "-DFAKE_CUPTI_13"])


def torch_allocator(folder: Path) -> Path:
    """Return the double of libc10_cuda.so, compiled into ``folder`` beside that of libc10.so.

    Raises:
        NoCompilerError: No compiler was found.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sources = HERE / "fake_c10"
    compile_library([sources / "c10.cpp"], folder / "libc10.so", ["-Wl,-soname,libc10.so"])
    target = folder / "libc10_cuda.so"
    options = ["-Wl,-soname,libc10_cuda.so", str(folder / "libc10.so"), f"-Wl,-rpath,{folder}"]
    compile_library([sources / "c10_cuda.cpp"], target, options)
    return target


class Launch(ctypes.Structure):
    """FakeLaunch of fake_cupti/control.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("duration_ns", ctypes.c_uint64),
        ("device", ctypes.c_uint32),
        ("context", ctypes.c_uint32),
        ("stream", ctypes.c_uint32),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("registers", ctypes.c_uint32),
        ("local_bytes", ctypes.c_uint32),
        ("cbid", ctypes.c_uint32),
    ]


Signatures = dict[str, tuple[object, tuple[object, ...]]]
_SIGNATURES: Signatures = {
    "launch": (ctypes.c_uint32, (ctypes.c_char_p, ctypes.c_uint32)),
    "launch_as": (ctypes.c_uint32, (ctypes.POINTER(Launch),)),
    "failing_launch": (ctypes.c_uint32, (ctypes.c_char_p, ctypes.c_int)),
    "copy": (ctypes.c_uint32, (ctypes.c_int, ctypes.c_uint64, ctypes.c_uint32)),
    "set": (ctypes.c_uint32, (ctypes.c_uint64, ctypes.c_uint32)),
    "bench": (ctypes.c_double, (ctypes.c_uint64,)),
    "nvtx_push": (None, (ctypes.c_char_p,)),
    "nvtx_pop": (None, ()),
    "capture_begin": (None, (ctypes.c_uint32,)),
    "capture_begin_as": (None, (ctypes.c_uint32, ctypes.c_int)),
    "broken_captures": (ctypes.c_uint64, ()),
    "capture_end": (ctypes.c_uint32, (ctypes.c_uint32,)),
    "capture_join": (None, (ctypes.c_uint32, ctypes.c_uint32)),
    "graph_create": (ctypes.c_uint32, ()),
    "graph_add_kernel": (ctypes.c_uint64, (ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint32)),
    "graph_add_child": (None, (ctypes.c_uint32, ctypes.c_uint32)),
    "graph_clone": (ctypes.c_uint32, (ctypes.c_uint32,)),
    "graph_instantiate": (ctypes.c_uint32, (ctypes.c_uint32,)),
    "graph_update": (None, (ctypes.c_uint32, ctypes.c_uint32)),
    "graph_launch": (ctypes.c_uint32, (ctypes.c_uint32, ctypes.c_uint32)),
    "graph_destroy": (None, (ctypes.c_uint32,)),
    "graph_exec_destroy": (None, (ctypes.c_uint32,)),
    "context_created": (None, (ctypes.c_uint32,)),
    "context_destroyed": (None, (ctypes.c_uint32,)),
    "module_loaded": (None, (ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t)),
    "module_unloaded": (None, (ctypes.c_uint32,)),
    "pc_module": (None, (ctypes.c_char_p, ctypes.c_uint64)),
    "pc_drop": (None, (ctypes.c_uint32, ctypes.c_uint64)),
    "pc_overrun": (None, (ctypes.c_uint32,)),
    "pc_period": (ctypes.c_uint32, (ctypes.c_uint32,)),
    "pc_made": (ctypes.c_uint64, (ctypes.c_int,)),
    "real_clock": (None, ()),
    "pm_bursts": (ctypes.c_uint64, ()),
    "pm_buffer": (None, (ctypes.c_uint64,)),
    "hold": (None, (ctypes.c_uint32,)),
    "release": (None, (ctypes.c_uint32,)),
    "drop": (None, (ctypes.c_uint64,)),
    "set_correlation": (None, (ctypes.c_uint32,)),
    "set_clock": (None, (ctypes.c_uint64,)),
    "fail": (None, (ctypes.c_char_p,)),
    "other_subscriber": (None, (ctypes.c_char_p,)),
    "other_profiler": (None, (ctypes.c_int,)),
    "other_client": (ctypes.c_int, (ctypes.c_char_p,)),
    "other_client_records": (ctypes.c_uint64, ()),
    "other_profiler_buffers": (ctypes.c_uint64, ()),
    "other_profiler_foreign_buffers": (ctypes.c_uint64, ()),
    "drain": (None, ()),
    "period_elapsed": (None, ()),
    "calls": (ctypes.c_uint64, (ctypes.c_char_p,)),
    "is_enabled": (ctypes.c_int, (ctypes.c_int, ctypes.c_uint32)),
    "is_kind_enabled": (ctypes.c_int, (ctypes.c_int,)),
    "buffers_outstanding": (ctypes.c_uint64, ()),
    "replay": (ctypes.c_int, (ctypes.c_char_p, MARK)),
}


class Controls:
    """Control functions of a double in this process; they take text where C takes bytes."""

    def __init__(self, path: str, prefix: str, signatures: Signatures) -> None:
        library = ctypes.CDLL(path)
        self._functions: dict[str, Callable[..., object]] = {}
        for name, (result, arguments) in signatures.items():
            function = getattr(library, prefix + name)
            function.restype, function.argtypes = result, arguments
            self._functions[name] = function

    def __getattr__(self, name: str) -> Callable[..., object]:
        try:
            function = self._functions[name]
        except KeyError:
            raise AttributeError(f"the double has no control {name!r}") from None

        def call(*arguments: object) -> object:
            return function(*(a.encode() if isinstance(a, str) else a for a in arguments))

        return call


class Cupti(Controls):
    """The double of libcupti in this process."""

    def __init__(self, path: str | None = None) -> None:
        super().__init__(path or os.environ["FAKE_CUPTI_LIB"], "fake_cupti_", _SIGNATURES)

    def launch_with(self, name: str, **fields: object) -> int:
        """Launch one kernel; ``fields`` are those of Launch, grid and block as three numbers."""
        launch = Launch(name.encode(), 1000, 0, 1, 7, (1, 1, 1), (32, 1, 1), 0, 16, 0, 652)
        for key, value in fields.items():
            setattr(launch, key, value)
        return int(str(self._functions["launch_as"](ctypes.byref(launch))))

    def replay_stream(self, path: Path, on_mark: Callable[[str], None] | None = None) -> None:
        """Replay a recorded stream.

        Raises:
            ValueError: ``path`` is not a recorded stream.
        """

        def marked(text: bytes | None) -> None:
            if on_mark is not None:
                on_mark((text or b"").decode())

        if self._functions["replay"](str(path).encode(), MARK(marked)):
            raise ValueError(f"{path} is not a recorded stream")
