"""Scopes with a metric in a timeline: python -m benchmarks.micro.timeline_metrics [--scopes N].

Fresh processes in turn enter the same scopes and write the file, with our profiler and with
upstream's on the double of libcupti. Upstream's Python class would start a GPU driver to compile
its kernels for tensors; that step is left out, in its favour. Seconds from the first scope to the
file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import median, print_machine, print_row, ratio, rounds

ROOT = Path(__file__).parents[2]
BAR = 1.2

CHILD = """
import json, sys, time
tool, out, scopes = sys.argv[1], sys.argv[2], int(sys.argv[3])
if tool == "ours":
    import proton_bench as proton
    scope = proton.scope
    session = proton.start(out, backend="cupti", data="trace")
    finalize = proton.finalize
else:
    from triton._C.libproton import proton
    from triton.profiler import scope
    from triton.profiler.flags import flags
    sys.modules["triton.profiler.scope"].set_metric_kernels = lambda *_: None
    flags.profiling_on = True
    session = proton.start(out, "shadow", "trace", "cupti", "")
    finalize = lambda session: proton.finalize(session, "chrome_trace")
begin = time.perf_counter()
for number in range(scopes):
    with scope("step", {"tokens": number}):
        pass
entered = time.perf_counter()
finalize(session)
print(json.dumps([entered - begin, time.perf_counter() - begin]))
"""


def seconds(tool: str, scopes: int, environment: Mapping[str, str]) -> tuple[float, float]:
    """Record in a process of its own; return the seconds of its scopes, and with the file.

    Raises:
        SystemExit: It failed.
    """
    with TemporaryDirectory(prefix="timeline_metrics_") as folder:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, tool, f"{folder}/trace", str(scopes)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise SystemExit(f"{tool}: {done.stderr}")
    entered, written = json.loads(done.stdout.splitlines()[-1])
    return entered, written


def main() -> None:
    """Print the pair, and ours at ten and more times the scopes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scopes", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    sys.path.append(str(ROOT / "tests"))
    from fakes.doubles import doubles

    environment = doubles(ROOT / "build" / "doubles").environment()
    print_machine()
    costs = rounds(
        {
            tool: lambda tool=tool: seconds(tool, options.scopes, environment)[1]  # type: ignore[misc]
            for tool in ("ours", "upstream")
        },
        options.rounds,
    )
    for tool, all_ in costs.items():
        print_row(f"{options.scopes} scopes, {tool}", f"{median(all_):.3f} s")
    print_row("ours : upstream", f"{ratio(costs['ours'], costs['upstream']):.2f}", f"{BAR}")
    for more in (10, 25):
        entered, written = seconds("ours", more * options.scopes, environment)
        print_row(
            f"{more * options.scopes} scopes, ours",
            f"{written:.3f} s, {written / more / options.scopes * 1e6:.2f} us per scope "
            f"({entered / more / options.scopes * 1e6:.2f} inside the program)",
        )


if __name__ == "__main__":
    main()
