"""What a launch's bookkeeping costs on the double: python -m benchmarks.micro.cupti_bookkeeping.

Fresh processes launch on the double of libcupti, whose own cost is negligible: bare, with the
floor (kernel activity and a callback that does nothing), with the `cupti` backend, and with
upstream's profiler, both with a tree and a timeline. Wall time per launch until everything is
recorded and the session has ended, and processor time of the thread that launches. A timeline is
encoded on another thread meanwhile, which on a machine of few cores is part of the first.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import Arm, added_ratio, median, print_machine, print_row, ratio, rounds
from benchmarks.overhead.floor import build

ROOT = Path(__file__).parents[2]
ROUNDS = 11
LAUNCHES = 2_000_000
FEWER = {"upstream_trace": 200_000}  # it takes a minute to write two million, and gigabytes
# The double would run faster than the reader of its records, unlike a GPU.
AT_ONCE = 20_000
NAMES = ("bare", "floor", "ours", "ours_trace", "upstream", "upstream_trace")

_CHILD = """
import sys, time
sys.path[:0] = [{root!r}, {tests!r}]
from fakes.doubles import Cupti
gpu, arm, out = Cupti(), sys.argv[1], sys.argv[2]
end = lambda: None
if arm == "floor":
    from benchmarks.overhead.floor import Floor
    floor = Floor(sys.argv[3], sys.argv[4]); floor.start(); end = floor.stop
elif arm in ("ours", "ours_trace"):
    import proton_bench as proton
    proton.start(out, backend="cupti", data=sys.argv[5]); end = proton.finalize
elif arm in ("upstream", "upstream_trace"):
    from triton._C.libproton import proton
    session = proton.start(out, "shadow", sys.argv[5], "cupti", "")
    end = lambda: proton.finalize(session, "hatchet" if sys.argv[5] == "tree" else "chrome_trace")
thread, begin = 0.0, time.perf_counter()
for _ in range({launches} // {at_once}):
    before = time.thread_time()
    gpu.bench({at_once})
    thread += time.thread_time() - before
    gpu.drain()
end()
print(thread / {launches}, (time.perf_counter() - begin) / {launches})
"""


def arm_of(name: str, folder: Path, *, floor: Path, launching: list[float]) -> Arm:
    """Return an arm: seconds per launch in a process of its own.

    Args:
        name: What records; ``_trace`` at the end means a timeline.
        folder: Where it writes.
        floor: The compiled floor.
        launching: Gets the seconds of processor time of each launch's thread.
    """
    from fakes.doubles import doubles

    fakes = doubles(ROOT / "build" / "doubles")
    program = _CHILD.format(
        root=str(ROOT),
        tests=str(ROOT / "tests"),
        launches=FEWER.get(name, LAUNCHES),
        at_once=AT_ONCE,
    )
    command = [sys.executable, "-c", program, name, str(folder / name), str(floor)]
    data = "trace" if name.endswith("_trace") else "tree"

    def arm() -> float:
        done = subprocess.run(
            [*command, str(fakes.cupti), data],
            env=fakes.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"{name}: {done.stderr}")
        on_thread, until_end = (float(word) for word in done.stdout.split()[-2:])
        launching.append(on_thread)
        return until_end

    return arm


def print_costs(kind: str, costs: Mapping[str, Sequence[float]]) -> None:
    """Print the cost that each adds to a launch, and their ratios."""
    added = {
        name: [one - base for one, base in zip(each, costs["bare"], strict=True)]
        for name, each in costs.items()
    }
    print(f"\n{kind}")
    print_row("a launch on the double", f"{median([each * 1e9 for each in costs['bare']]):.0f} ns")
    for name in NAMES[1:]:
        figures = median([each * 1e9 for each in added[name]])
        print_row(f"{name} adds", f"{figures:.0f} ns")
    for suffix in ("", "_trace"):
        one, other = f"ours{suffix}", f"upstream{suffix}"
        print_row(f"{one} : {other}", f"{added_ratio(added[one], added[other]):.3f}")
    print_row("ours_trace : ours", f"{added_ratio(added['ours_trace'], added['ours']):.2f}")


def main() -> None:
    """Print what each adds to a launch."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    print_machine()
    sys.path.append(str(ROOT / "tests"))
    launching: dict[str, list[float]] = {name: [] for name in NAMES}
    with TemporaryDirectory() as folder:
        floor = build(Path(folder))
        arms = {
            name: arm_of(name, Path(folder), floor=floor, launching=launching[name])
            for name in NAMES
        }
        costs = rounds(arms, options.rounds)
    print_costs("on the clock, until the session has ended", costs)
    print_row("with ours : with the floor", f"{ratio(costs['ours'], costs['floor']):.2f}", "4")
    # The first round warmed up.
    print_costs("the launching thread", {name: each[1:] for name, each in launching.items()})


if __name__ == "__main__":
    main()
