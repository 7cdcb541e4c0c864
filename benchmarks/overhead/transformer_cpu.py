"""What the cpu backend adds to a training step: python -m benchmarks.overhead.transformer_cpu.

Each round starts two fresh processes, one per profiler, in alternating order. Each trains the
transformer of `examples/` (its small size) bare, profiled and bare again, as a program does that is
profiled once: what counts is the difference within the process. Both profilers record operators of
the CPU. Theirs keeps events and writes no file. Ours makes its tree meanwhile, on a thread whose
work is part of the time on the processor, and records scopes and their metrics as well. What comes
after the last step (their table of averages, our file) is measured apart.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import Interval, added_ratio, median, print_machine, print_row, rounds

BAR = "0.6"
WARM_UP = 10  # steps
STEPS = 60  # in a row: enough for our thread to have made parts of the tree
ROOT = Path(__file__).parents[2]


@contextmanager
def theirs(_folder: str) -> Iterator[Callable[[], object]]:
    """Record operators with torch.profiler; yields what makes its table."""
    from torch.profiler import ProfilerActivity, profile

    profiler = profile(activities=[ProfilerActivity.CPU])
    with profiler:
        yield profiler.key_averages


@contextmanager
def ours(folder: str) -> Iterator[Callable[[], object]]:
    """Record operators and scopes with the cpu backend; yields what writes its file."""
    import proton_bench as proton

    number = proton.start(f"{folder}/profile", backend="cpu")
    yield lambda: proton.finalize(number)
    proton.deactivate(number)


PROFILERS: dict[str, Callable[[str], AbstractContextManager[Callable[[], object]]]] = {
    "theirs": theirs,
    "ours": ours,
}


def train(arm: str, folder: str, threads: int) -> dict[str, float]:
    """Train bare, profiled and bare again; return seconds per step by clock, and of the end."""
    import torch

    sys.path.append(str(ROOT / "examples"))
    from transformer import SIZES, Trainer

    torch.set_num_threads(threads)
    trainer = Trainer(SIZES["small"], torch.device("cpu"))
    costs: dict[str, float] = {}

    def steps(what: str) -> None:
        clock, processor = time.perf_counter(), time.process_time()
        for _ in range(STEPS):
            trainer.step()
        costs[f"{what} processor"] = (time.process_time() - processor) / STEPS
        costs[f"{what} clock"] = (time.perf_counter() - clock) / STEPS

    for _ in range(WARM_UP):
        trainer.step()
    gc.freeze()
    gc.disable()  # it comes at random moments
    steps("before")
    with PROFILERS[arm](folder) as end:
        trainer.step()  # the first one fills the profiler's tables
        steps("profiled")
    steps("after")
    begin = time.perf_counter()
    end()
    costs["end"] = time.perf_counter() - begin
    return costs


def train_apart(arm: str, threads: int) -> dict[str, float]:
    """Do the same in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.overhead.transformer_cpu"]
    result = subprocess.run(
        [*command, "--arm", arm, "--threads", str(threads)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    costs: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return costs


def print_added(clock: str, costs: dict[str, list[dict[str, float]]]) -> None:
    """Print what the profilers add to a step by one clock, and how that compares."""
    bare = {
        arm: [(each[f"before {clock}"] + each[f"after {clock}"]) / 2 for each in all_]
        for arm, all_ in costs.items()
    }
    full = {arm: [each[f"profiled {clock}"] for each in all_] for arm, all_ in costs.items()}
    print_row(f"{clock}: bare", f"{micro(bare['theirs'] + bare['ours']):.0f} us")
    added = {}
    for arm, who in (("theirs", "torch.profiler"), ("ours", "the cpu backend")):
        added[arm] = [one - base for one, base in zip(full[arm], bare[arm], strict=True)]
        print_row(f"{clock}: {who} adds", f"{micro(added[arm]):.0f} us")
    print_row(
        f"{clock}: ours over theirs", f"{added_ratio(added['ours'], added['theirs']):.3f}", BAR
    )


def micro(seconds: Sequence[float]) -> Interval:
    """Return the median in microseconds."""
    return median([each * 1e6 for each in seconds])


def main() -> None:
    """Print what each profiler adds to a step, and the ratio."""
    parser = argparse.ArgumentParser(description="Added time of profilers on a training step.")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--arm", choices=PROFILERS, help="measure one in this process")
    options = parser.parse_args()
    if options.arm:
        with TemporaryDirectory() as folder:
            print(json.dumps(train(options.arm, folder, options.threads)))
        return
    costs: dict[str, list[dict[str, float]]] = {arm: [] for arm in PROFILERS}

    def measured(arm: str) -> Callable[[], float]:
        def run() -> float:
            costs[arm].append(train_apart(arm, options.threads))
            return costs[arm][-1]["profiled clock"]

        return run

    rounds({arm: measured(arm) for arm in PROFILERS}, options.rounds)
    costs = {arm: all_[1:] for arm, all_ in costs.items()}  # the first round warms up
    print_machine()
    print(f"{options.rounds} rounds, {options.threads} thread(s) of torch")
    for clock in ("processor", "clock"):
        print_added(clock, costs)
    for arm, what in (("theirs", "end of torch.profiler, with averages"), ("ours", "our finalize")):
        print_row(what, f"{median([each['end'] * 1e3 for each in costs[arm]]):.1f} ms")


if __name__ == "__main__":
    main()
