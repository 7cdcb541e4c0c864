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
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import print_machine, print_row, ratio, rounds

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


def main() -> None:
    """Measure in pairs and print what samples add."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    options = parser.parse_args()
    print_machine()
    with TemporaryDirectory() as made:
        for what, program in PROGRAMS.items():
            if options.only not in what:
                continue
            taken: dict[str, list[dict[str, float]]] = {"off": [], "100": []}

            def arm(samples: str, program: str = program, taken: dict = taken) -> float:
                taken[samples].append(seconds(Path(made), program, samples))
                return 0.0

            rounds({each: lambda each=each: arm(each) for each in taken}, options.rounds)
            for name, clock in CLOCKS.items():
                on, off = ([each[clock] for each in taken[key][1:]] for key in ("100", "off"))
                more = ratio(on, off)
                added = [100 * (each - 1) for each in (more.middle, more.low, more.high)]
                print_row(f"{what}, {name}", "{:+.2f} [{:+.2f}, {:+.2f}] %".format(*added))


if __name__ == "__main__":
    main()
