"""What flushing adds to the end of a recording: python -m benchmarks.micro.finished_files.

Each arm records in a process of its own and times `finalize`, or all phases of a run. In the other
arm of a pair a library that is loaded first answers fsync at once. Needs a C compiler.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import difference, median, print_machine, print_row, rounds

SILENT = "int fsync(int descriptor) { return descriptor < 0 ? -1 : 0; }\n"
PROGRAM = """
import sys, time
import proton_bench as proton
from proton_bench import data

name, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "phases":
    session = proton.start(name, backend="cpu", mode="periodic_flushing:format=proton")
else:
    session = proton.start(name, backend="cpu", data="trace" if kind == "trace" else "tree")
begin = time.perf_counter()
for number in range(count):
    with proton.scope(f"scope {number}" if kind == "tree" else "scope"):
        pass
    if kind == "phases":
        data.advance_phase()
if kind != "phases":
    begin = time.perf_counter()
proton.finalize(session)
print(time.perf_counter() - begin)
"""
CASES = {
    "one tree of 100 paths": ("tree", 100),
    "one tree of 100 000 paths": ("tree", 100_000),
    "a timeline of 300 000 scopes": ("trace", 300_000),
    "200 phases, a file each": ("phases", 200),
}


def seconds(folder: Path, case: tuple[str, int], preloaded: str) -> float:
    """Return how long the end of one recording took."""
    kind, count = case
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "x"), kind, str(count)],
        env={**os.environ, "LD_PRELOAD": preloaded},
        capture_output=True,
        text=True,
        check=True,
    )
    for file in folder.glob("x.*"):
        file.unlink()
    return float(done.stdout)


def main() -> None:
    """Measure in pairs and print what flushing adds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", help="on the disk to be measured; default: that of TMPDIR")
    options = parser.parse_args()
    print_machine()
    with TemporaryDirectory(dir=options.folder) as made:
        folder = Path(made)
        (folder / "silent.c").write_text(SILENT)
        library = str(folder / "silent.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "silent.c"], check=True)
        for what, case in CASES.items():
            arms = {
                "flushed": lambda case=case: seconds(folder, case, ""),
                "not": lambda case=case: seconds(folder, case, library),
            }
            costs = rounds(arms, options.rounds)
            added = median([1e3 * each for each in costs["flushed"]])
            without = median([1e3 * each for each in costs["not"]])
            print_row(what, f"{added:.1f} ms flushed, {without:.1f} ms not")
            more = difference(costs["flushed"], costs["not"])
            print_row(
                "", f"adds {1e3 * more.middle:.1f} [{1e3 * more.low:.1f}, {1e3 * more.high:.1f}] ms"
            )


if __name__ == "__main__":
    main()
