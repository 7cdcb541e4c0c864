"""Whole files of every kind that a command reads, to change."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fakes import nsys
from fakes.stored import put, stored_run

from proton_bench.formats.registry import write_profile
from proton_bench.gate.baseline.entry import Acknowledgement
from proton_bench.gate.baseline.store import BaselineStore

TESTS = Path(__file__).parents[1]
DATA = TESTS / "data"
PROFILES = ("earlier/*.*", "golden/*.*", "kineto/*.json*", "upstream*/*.*")
LARGEST = 400_000
RECORDED = {".pftrace": "trace", ".chrome_trace": "trace", ".proton": "tree", ".hatchet": "tree"}

# As `ncu --csv --page raw` writes them.
COUNTERS = (
    b'"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","Device","CC",'
    b'"dram__bytes_read.sum","gpu__time_duration.sum"\n"","","","","","","","","byte","nsecond"\n'
    b'"0","1","kernel","7","(1,1,1)","(1,1,1)","0","9.0","500","30"\n'
    b'"1","1","kernel","7","(1,1,1)","(1,1,1)","0","9.0","1,500","32.5"\n'
)
POLICY = b"""
threshold = ["median:3%", "fwd/**/softmax*@p95:10%", "calls:0"]
quarantine = ["a/*"]
inconclusive = "pass"
strict = true
[tool.proton.gate]
threshold = ["median:5%"]
"""


_PROGRAM = """
import threading
import proton_bench as proton
from proton_bench import _native

def work():
    for number in range(20):
        with proton.scope(f"step {number % 3}", {"flops": 10}), proton.scope("inner"):
            launch = _native.emit_launch()
        _native.emit_kernel(launch, "gemm", 10 * number, 10 * number + 7, "CUDA", 0, 0)

thread = threading.Thread(target=work)
thread.start()
work()
thread.join()
"""


def record(file: Path, data: str) -> Path:
    """Record a small program into a file, whose suffix says the format, and return it."""
    with TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(_PROGRAM)
        options = ["-b", "cpu", "-d", data, "--quiet", "-o", str(file)]
        words = [sys.executable, "-m", "proton_bench", "run", *options, str(program)]
        subprocess.run(words, check=True)
    return file


def profiles(folder: Path) -> dict[str, bytes]:
    """Return files that hold profiles, by their names.

    Args:
        folder: Where files are made that the tests do not have.
    """
    files = [file for pattern in PROFILES for file in sorted(DATA.glob(pattern))]
    found = {
        f"{number}-{file.name}": file.read_bytes()
        for number, file in enumerate(files)
        if file.suffix != ".md" and ".bin" not in file.name and file.stat().st_size < LARGEST
    }
    for name in ("timeline.pftrace", "timeline.chrome_trace"):
        packed = gzip.compress((DATA / "golden" / name).read_bytes())
        found[f"packed-{name}.gz"] = packed
    for suffix, data in RECORDED.items():
        name = f"recorded{suffix}"
        found[name] = record(folder / name, data).read_bytes()
    export = nsys.write_export(
        folder / "nsys.sqlite",
        {
            "StringIds": nsys.texts("void gemm<int>(int*)", "gemm", "cudaLaunchKernel", "step"),
            nsys.NVTX: [nsys.push("step", 0, 100), nsys.push(None, 5, None, textId=4)],
            nsys.RUNTIME: [nsys.call(1, 10, nameId=3), nsys.call(2, 20, nameId=3)],
            nsys.KERNEL: [nsys.kernel(1, 30, 40), nsys.kernel(2, 50, 70)],
            "CUPTI_ACTIVITY_KIND_MEMCPY": [
                {"start": 71, "end": 75, "correlationId": 2, "bytes": 64, "copyKind": 1}
            ],
        },
    )
    found["nsys.sqlite"] = export.read_bytes()
    write_profile(stored_run().profile, folder / "run.proton")
    found["run.proton"] = (folder / "run.proton").read_bytes()
    return found


def settings() -> dict[str, bytes]:
    """Return files that commands read beside profiles, by their names."""
    return {
        "policy.toml": POLICY,
        "own.toml": (TESTS.parent / "benchmarks/hot_paths/policy.toml").read_bytes(),
        "counters.csv": COUNTERS,
        "counters.csv.gz": gzip.compress(COUNTERS),
    }


def runs(folder: Path) -> None:
    """Make whole runs to compare with, and a store that keeps two of them."""
    put(folder / "good", stored_run(100.0), stored_run(103.0))
    store = BaselineStore(folder / "store")
    store.promote("main", store.save("main", [stored_run(100.0)]).id)
    store.save("main", [stored_run(101.0)])
    store.acknowledge([Acknowledgement("0" * 16, ("step", "kernel"), "median", 5, "me", 7)])
