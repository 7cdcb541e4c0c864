"""What samples of the host add to a program: python -m benchmarks.micro.host_samples.

Each arm is a process of its own under `proton run`, with samples and without in turn. It measures
the processor time of the process, in which the sampling thread's is contained, and that of its
main thread, which also waits for the interpreter's lock. Needs torch for one of the programs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import astuple
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import Interval, print_machine, print_row, ratio

CLOCKS = {"process": "process_time", "main thread": "thread_time", "wall": "perf_counter"}
PROGRAMS = {
    "a loop of pure Python": """
def work():
    total = 0
    for number in range(12_000_000):
        total += number % 7
""",
    "training steps on the CPU": """
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.randn(64, 256)
def work():
    for _ in range(250):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
""",
    "a deep recursion": """
def fall(depth):
    if depth:
        return fall(depth - 1)
    for _ in range(200_000):
        pass
def work():
    for _ in range(60):
        fall(200)
""",
}
END = """
import json, time
clocks = ["process_time", "thread_time", "perf_counter"]
begin = [getattr(time, clock)() for clock in clocks]
work()
took = [getattr(time, clock)() - before for clock, before in zip(clocks, begin)]
print(json.dumps(dict(zip(clocks, took))))
"""


def in_this_process(pairs: int = 150) -> Interval:
    """Return what samples add to processor time of the main thread, on and off in short turns."""
    from proton_bench import _native as native

    session = native.Session("shadow", True)
    session.sample_host()
    session.activate()

    def block() -> float:
        begin = time.thread_time()
        for _ in range(9000):
            sum(range(100))
        return time.thread_time() - begin

    with_samples, without = [], []
    for _ in range(pairs):
        before = [block() for _ in range(3)]
        sampler = native.HostSampler(100.0)
        sampler.start()
        with_samples.append(sum(block() for _ in range(6)))
        sampler.stop()
        without.append(sum(before) + sum(block() for _ in range(3)))
    session.remove()
    return ratio(with_samples, without)


def seconds(folder: Path, program: str, samples: str) -> dict[str, float]:
    """Return what the program took by each clock."""
    import json

    file = folder / "program.py"
    file.write_text(program + END)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "proton_bench",
            "run",
            "--quiet",
            "-n",
            str(folder / "x"),
            str(file),
        ],
        env={**os.environ, "PROTON_BENCH_HOST_SAMPLES": samples},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def in_pairs(folder: Path, program: str, count: int) -> dict[str, list[dict[str, float]]]:
    """Return what the program took with samples and without; the first pair warms up."""
    taken: dict[str, list[dict[str, float]]] = {"off": [], "100": []}
    for number in range(count + 1):
        for samples in sorted(taken, reverse=number % 2 == 1):
            taken[samples].append(seconds(folder, program, samples))
    return taken


def main() -> None:
    """Measure in pairs and print what samples add."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    options = parser.parse_args()
    print_machine()
    here = [100 * (each - 1) for each in astuple(in_this_process())]
    print_row("in turns of one process, main thread", "{:+.2f} [{:+.2f}, {:+.2f}] %".format(*here))
    with TemporaryDirectory() as made:
        for what, program in PROGRAMS.items():
            if options.only not in what:
                continue
            taken = in_pairs(Path(made), program, options.rounds)
            for name, clock in CLOCKS.items():
                on, off = ([each[clock] for each in taken[key][1:]] for key in ("100", "off"))
                more = ratio(on, off)
                added = [100 * (each - 1) for each in (more.middle, more.low, more.high)]
                print_row(f"{what}, {name}", "{:+.2f} [{:+.2f}, {:+.2f}] %".format(*added))


if __name__ == "__main__":
    main()
