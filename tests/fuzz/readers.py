"""Changed files in front of every command that reads files of their kind."""

from __future__ import annotations

import contextlib
import gc
import gzip
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from fakes import nsys
from fakes.stored import put, stored_run
from fuzz.bounded import MEMORY, Ended, bounded, in_fresh_process
from fuzz.mutations import changed

from proton_bench.cli import main
from proton_bench.formats.registry import write_profile

DATA = Path(__file__).parents[1] / "data"
PATTERNS = ("earlier/*.*", "golden/*.*", "kineto/*.json*", "upstream*/*.*")
LARGEST = 400_000
RECORDED = {".pftrace": "trace", ".chrome_trace": "trace", ".proton": "tree", ".hatchet": "tree"}
SECONDS = 2
# Of a gate: a verdict. 69: an optional package is missing.
CODES = frozenset({0, 1, 2, 3, 4, 5, 69})
NOTICE = "proton: warning: "
WARNING = re.compile(r"\w*Warning: ")
FORMATS = (
    *("proton", "hatchet", "hatchet_msgpack", "json"),
    *("speedscope", "folded", "pprof", "csv"),
)
GOOD = "good.proton"
# As `ncu --csv --page raw` writes them.
COUNTERS = (
    b'"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","Device","CC",'
    b'"dram__bytes_read.sum","gpu__time_duration.sum"\n"","","","","","","","","byte","nsecond"\n'
    b'"0","1","kernel","7","(1,1,1)","(1,1,1)","0","9.0","500","30"\n'
)
POLICY = b"""
threshold = ["median:3%", "fwd/**/softmax*@p95:10%", "calls:0"]
quarantine = ["a/*"]
inconclusive = "pass"
[tool.proton.gate]
threshold = ["median:5%"]
"""
PROGRAM = """
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


def prepare(folder: Path) -> dict[str, bytes]:
    """Load what commands load, so that a fork need not; return whole files by their names."""
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    for package in ("formats", "analysis", "gate", "report", "cli"):
        room = importlib.import_module(f"proton_bench.{package}")
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    with TemporaryDirectory() as place, open(os.devnull, "w", encoding="utf-8") as nowhere:
        run = str(put(Path(place), stored_run()) / "0.proton")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            # Libraries load more on first use.
            for words in (["view", run], ["diff", run, run], ["gate", run, run], ["doctor", run]):
                main(words)
            main(["report", run, "-o", os.path.join(place, "out.html")])
    files = _whole_files(folder)
    gc.freeze()
    return files


def _whole_files(folder: Path) -> dict[str, bytes]:
    kept = [file for pattern in PATTERNS for file in sorted(DATA.glob(pattern))]
    files = {
        f"{number}-{file.name}": file.read_bytes()
        for number, file in enumerate(kept)
        if file.suffix != ".md" and ".bin" not in file.name and file.stat().st_size < LARGEST
    }
    for name in ("timeline.pftrace", "timeline.chrome_trace"):
        files[f"packed-{name}.gz"] = gzip.compress((DATA / "golden" / name).read_bytes())
    program = folder / "program.py"
    program.write_text(PROGRAM)
    for suffix, data in RECORDED.items():
        file = folder / f"recorded{suffix}"
        words = ["run", "-b", "cpu", "-d", data, "--quiet", "-o", str(file), str(program)]
        subprocess.run([sys.executable, "-m", "proton_bench", *words], check=True)
        files[file.name] = file.read_bytes()
    export = nsys.write_export(
        folder / "nsys.sqlite",
        {
            "StringIds": nsys.texts("void gemm<int>(int*)", "gemm", "cudaLaunchKernel", "step"),
            nsys.NVTX: [nsys.push("step", 0, 100), nsys.push(None, 5, None, textId=4)],
            nsys.RUNTIME: [nsys.call(1, 10, nameId=3), nsys.call(2, 20, nameId=3)],
            nsys.KERNEL: [nsys.kernel(1, 30, 40), nsys.kernel(2, 50, 70)],
        },
    )
    files["nsys.sqlite"] = export.read_bytes()
    write_profile(stored_run().profile, folder / GOOD)
    files[GOOD] = (folder / GOOD).read_bytes()
    return files | {"policy.toml": POLICY, "counters.csv": COUNTERS}


def _commands(dice: Random, file: str) -> list[list[str]]:
    """Return all command lines that read a file of its kind."""
    if file.endswith(".csv"):
        return [["view", GOOD, "--counters", file]]
    if file.endswith(".toml"):
        return [["gate", GOOD, GOOD, "--policy", file], ["ab", "--policy", file, "--", "none.py"]]
    form = dice.choice(FORMATS)
    pair = [file, GOOD] if dice.random() < 0.6 else [GOOD, file]
    return [
        ["view", file],
        ["view", file, "--json"],
        ["view", file, "--list"],
        ["view", file, "--flat", "--bars"],
        ["view", file, "--raw-names", "-f", "full", "--all"],
        ["view", file, "-m", "count,time/ms"],
        ["why", file],
        ["why", file, dice.choice(("kernel", "step/kernel", "0")), "--json"],
        ["diff", *pair],
        ["diff", *pair, "--json", "--ignore-devices"],
        ["diff", *pair, "--by", dice.choice(("kernel", "line", "scope", "test"))],
        ["report", file, "-o", "out.html"],
        ["report", GOOD, "--base", file, "-o", "out.html", "--ignore-devices"],
        ["merge", *pair, "-o", "out.proton", "--by", dice.choice(("rank", "process"))],
        ["merge", "--stragglers", *pair],
        ["export", file, "--to", form, "-o", f"out.{form}"],
        ["query", file, "SELECT * FROM nodes", "--json"],
        ["gate", *pair, "--all"],
        ["gate", *pair, "--json", "--set", "ignore-devices=true"],
        ["doctor", file, GOOD],
    ]


def attempt(dice: Random, folder: Path, files: dict[str, bytes], patience: int = 1) -> str:
    """Change a file and have some commands read it; return what is wrong, or nothing.

    Args:
        dice: Decides.
        folder: An empty folder for the files.
        files: From `prepare`.
        patience: What a command may take, as a multiple of its usual time.
    """
    name = dice.choice(list(files))
    file = f"a{name}"
    (folder / file).write_bytes(changed(dice, name, files[name]))
    (folder / GOOD).write_bytes(files[GOOD])
    commands = _commands(dice, file)
    for words in dice.sample(commands, min(4, len(commands))):
        fault = _fault(bounded(folder, words, SECONDS * patience), words)
        # Only what happens in a fresh process too: a fork shares memory with this one.
        if fault and (fault := _fault(in_fresh_process(folder, words, SECONDS * patience), words)):
            return f"proton {' '.join(words)}: {fault}"
    shutil.rmtree(folder / "out", ignore_errors=True)
    return ""


def _fault(ended: Ended, words: Sequence[str]) -> str:
    """Return what is wrong with the end of a command, or nothing."""
    last = ended.stderr[-1500:]
    if ended.code < 0:
        return f"ended by signal {-ended.code} after {ended.seconds:.1f} s; {last}"
    if "Traceback" in ended.stderr or ended.code not in CODES:
        return f"exit code {ended.code}; {last}"
    if ended.megabytes > MEMORY >> 20:
        return f"it took {ended.megabytes:.0f} MB"
    if WARNING.search(ended.stderr):
        return f"a warning of Python: {last}"
    errors = [line for line in ended.stderr.splitlines() if not line.startswith(NOTICE)]
    if ended.code == 2 and len(errors) != 1 and words[0] != "doctor":
        return f"{len(errors)} lines on stderr; {last}"
    return ""
