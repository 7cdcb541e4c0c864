"""Memory of timelines of millions of kernels: python -m benchmarks.micro.trace_memory.

A fresh process per size launches on the double of libcupti, four launches to a scope, with
``data="trace"``. Each launch makes two events, its call and its kernel, and each scope one. The
double is faster than any GPU, so the writer is always behind. Printed are the peak memory of the
process, how often and how long the thread that delivers records waited for room, and how many
events were dropped. Bytes go to a folder of --folder, or of the system's for temporary files.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.interleaved import print_machine

ROOT = Path(__file__).parents[2]
MILLIONS = (1.0, 3.0, 10.0)
FORMATS = ("perfetto", "chrome_trace")
PER_SCOPE = 4

CHILD = """
import json, resource, sys, time
from pathlib import Path
out, kernels, pause, root = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
sys.path.append(root + "/tests")
from fakes.doubles import Cupti
import proton_bench as proton
from proton_bench.recording.session.recording import known_session

def resident_kb(field="VmRSS"):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))

gpu = Cupti()
bench, drain = gpu._functions["bench"], gpu._functions["drain"]
before_kb, levels = resident_kb(), []
begin = time.perf_counter()
session = proton.start(out, backend="cupti", data="trace")
core = known_session(session).core
for number in range(0, kernels, 4):
    with proton.scope("layer"):
        bench(4)
    if number % 20_000 == 0:
        drain()
        if pause:
            core.settle()
    if number % max(kernels // 10 // 4 * 4, 4) == 0:
        levels.append(resident_kb())
drain()
proton.deactivate(session)  # delivers buffers that are not full
launched = time.perf_counter()
core.settle()
counts = core.timeline_counts()
proton.finalize(session)
end = time.perf_counter()
path, = Path(out).parent.glob(Path(out).name + ".*")
print(json.dumps({**counts, "size": path.stat().st_size, "before_kb": before_kb,
                  "peak_kb": resident_kb("VmHWM"), "levels_kb": levels,
                  "record_s": launched - begin, "finalize_s": end - launched,
                  "cpu_s": time.process_time()}))
"""


def record(
    kernels: int, *, format_name: str, environment: Mapping[str, str], folder: str, pauses: bool
) -> dict[str, Any]:
    """Record so many kernels in a process of its own and return its figures.

    Args:
        kernels: How many, a multiple of ``PER_SCOPE``.
        format_name: Format of the timeline.
        environment: With the doubles in place of the libraries.
        folder: Where the file is written; it is removed.
        pauses: Wait now and then until everything is written.

    Raises:
        SystemExit: It failed.
    """
    with TemporaryDirectory(prefix="trace_memory_", dir=folder or None) as place:
        words = [f"{place}/trace", str(kernels), str(int(pauses)), str(ROOT)]
        done = subprocess.run(
            [sys.executable, "-c", CHILD, *words],
            cwd=place,
            env={**environment, "PROTON_BENCH_TRACE_FORMATS": format_name},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def events_of(kernels: int) -> int:
    """Return how many events so many kernels make."""
    return 2 * kernels + kernels // PER_SCOPE


def print_line(kernels: int, figures: Mapping[str, Any]) -> None:
    """Print the figures of one process."""
    per_event = figures["cpu_s"] / events_of(kernels) * 1e9
    grown = (figures["peak_kb"] - figures["before_kb"]) / 1e3
    print(
        f"{kernels / 1e6:>9.2f} M {figures['events'] / 1e6:>9.3f} M {figures['size'] / 1e6:>9.1f} "
        f"{figures['peak_kb'] / 1e3:>8.1f} {grown:>8.1f} "
        f"{figures['record_s']:>8.2f} {figures['finalize_s']:>8.2f} {per_event:>8.0f} "
        f"{figures['waits']:>6} {figures['wait_ns'] / 1e9:>7.2f} {figures['lost']:>8}"
    )
    levels = " ".join(f"{level / 1e3:.0f}" for level in figures["levels_kb"])
    print(f"{'':>12} MB at each tenth: {levels}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Record every size and print a line of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--millions", type=float, nargs="+", default=MILLIONS, help="of kernels")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0])
    parser.add_argument("--folder", default="", help="where there is room for the file")
    parser.add_argument("--pauses", action="store_true", help="let the writer catch up meanwhile")
    options = parser.parse_args(arguments)
    sys.path.append(str(ROOT / "tests"))
    from fakes.doubles import doubles

    environment = doubles(ROOT / "build" / "doubles").environment(
        PYTHONPATH=os.environ.get("PYTHONPATH", "")
    )
    print_machine()
    print(
        f"{'kernels':>11} {'events':>11} {'MB file':>9} {'MB peak':>8} {'grown':>8} "
        f"{'record s':>8} {'final. s':>8} {'ns/event':>8} {'waits':>6} {'s':>7} {'lost':>8}"
    )
    for millions in options.millions:
        kernels = int(millions * 1e6) // PER_SCOPE * PER_SCOPE
        figures = record(
            kernels,
            format_name=options.format,
            environment=environment,
            folder=options.folder,
            pauses=options.pauses,
        )
        print_line(kernels, figures)


if __name__ == "__main__":
    main()
