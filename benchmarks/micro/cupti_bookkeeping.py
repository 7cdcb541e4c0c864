"""What a launch's bookkeeping costs on the double: python -m benchmarks.micro.cupti_bookkeeping.

Fresh processes launch on the double of libcupti, which costs next to nothing itself: bare, with the
floor (kernel activity and a callback that does nothing), with the `cupti` backend, and with
upstream's profiler. Wall time per launch until everything is recorded and the session has ended.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import Arm, added_ratio, median, print_machine, print_row, ratio, rounds
from benchmarks.overhead.floor import build

ROOT = Path(__file__).parents[2]
ROUNDS = 11
LAUNCHES = 2_000_000
# The double would run ahead of whoever reads its records, as no GPU does.
AT_ONCE = 20_000

_CHILD = """
import sys, time
sys.path[:0] = [{root!r}, {tests!r}]
from fakes.doubles import Cupti
gpu, arm, out = Cupti(), sys.argv[1], sys.argv[2]
end = lambda: None
if arm == "floor":
    from benchmarks.overhead.floor import Floor
    floor = Floor(sys.argv[3], sys.argv[4]); floor.start(); end = floor.stop
elif arm == "ours":
    import proton_bench as proton
    proton.start(out, backend="cupti"); end = proton.finalize
elif arm == "upstream":
    from triton._C.libproton import proton
    session = proton.start(out, "shadow", "tree", "cupti", "")
    end = lambda: proton.finalize(session, "hatchet")
begin = time.perf_counter()
for _ in range({launches} // {at_once}):
    gpu.bench({at_once})
    gpu.drain()
end()
print((time.perf_counter() - begin) / {launches})
"""


def arm_of(name: str, folder: Path, *, floor: Path) -> Arm:
    """Return an arm: seconds per launch in a process of its own."""
    from fakes.doubles import doubles

    fakes = doubles(ROOT / "build" / "doubles")
    program = _CHILD.format(
        root=str(ROOT), tests=str(ROOT / "tests"), launches=LAUNCHES, at_once=AT_ONCE
    )
    command = [sys.executable, "-c", program, name, str(folder / name), str(floor)]

    def arm() -> float:
        done = subprocess.run(
            [*command, str(fakes.cupti)],
            env=fakes.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"{name}: {done.stderr}")
        return float(done.stdout.split()[-1])

    return arm


def main() -> None:
    """Print what each adds to a launch."""
    print_machine()
    sys.path.append(str(ROOT / "tests"))
    with TemporaryDirectory() as folder:
        floor = build(Path(folder))
        names = ("bare", "floor", "ours", "upstream")
        arms = {name: arm_of(name, Path(folder), floor=floor) for name in names}
        costs = rounds(arms, ROUNDS)
    added = {
        name: [one - base for one, base in zip(each, costs["bare"], strict=True)]
        for name, each in costs.items()
    }
    print_row("a launch on the double", f"{median([each * 1e9 for each in costs['bare']]):.0f} ns")
    for name in names[1:]:
        figures = median([each * 1e9 for each in added[name]])
        print_row(f"{name} adds", f"{figures:.0f} ns")
    print_row("ours : upstream", f"{added_ratio(added['ours'], added['upstream']):.3f}")
    print_row("with ours : with the floor", f"{ratio(costs['ours'], costs['floor']):.2f}", "4")


if __name__ == "__main__":
    main()
