"""What reading samples costs a saturated GPU: python -m benchmarks.overhead.saturation.

Products of matrices follow each other for a minute, sampled every 1024 cycles, or with another
mode. Printed are memory of the process and processor time of its threads every few seconds, and the
backend's statement about samples or counters at the end. Memory must not grow from line to line.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SIZE = 4096
QUEUED = 50  # products between two looks at the clock
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and return 0, or 1 if nothing was sampled."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead.saturation",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--mode", default="pcsampling:interval=1024", help="or counters")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between lines; 5")
    options = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="saturation_") as folder:
        facts = _run(options, Path(folder))
    for name, value in facts.items():
        print(f"{name:<18} {value}")
    return 0 if facts["samples"] else 1


def _run(options: argparse.Namespace, folder: Path) -> Mapping[str, Any]:
    import torch

    from proton_bench.formats.registry import read_profile
    from proton_bench.recording.session.session import SessionOptions, open_session

    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    said = SessionOptions(name=str(folder / "x"), backend="cupti", mode=options.mode)
    session = open_session(said)
    before = dict(_threads())
    print(f"{'second':>7} {'products':>9} {'memory':>11}  processor seconds by thread", flush=True)
    begin = line = time.perf_counter()
    products = 0
    while (now := time.perf_counter()) - begin < options.seconds:
        for _ in range(QUEUED):
            torch.mm(a, b)
        torch.cuda.synchronize()
        products += QUEUED
        if now - line >= options.every:
            line = now
            _print_line(now - begin, products, before)
    _print_line(time.perf_counter() - begin, products, before)
    ending = time.perf_counter()
    [path] = session.finalize(formats=("proton",))
    print(f"finish took {time.perf_counter() - ending:.2f} s, {path.stat().st_size} bytes")
    kind = "counters" if options.mode.startswith("counters") else "pc_sampling"
    facts: Mapping[str, Any] = read_profile(path).provenance["collectors"]["cupti"][kind]
    return facts


def _print_line(second: float, products: int, before: Mapping[str, float]) -> None:
    spent = {name: time_s - before.get(name, 0.0) for name, time_s in _threads()}
    busy = [f"{name} {each:.2f}" for name, each in spent.items() if each >= 1 / _TICKS_PER_S]
    size = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    print(f"{second:>7.1f} {products:>9} {size / 1e6:>8.1f} MB  {', '.join(busy)}", flush=True)


def _threads() -> Iterator[tuple[str, float]]:
    """Yield name and number of each thread with its processor seconds."""
    for folder in sorted(Path("/proc/self/task").iterdir()):
        try:
            name = (folder / "comm").read_text().strip()
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        yield f"{name}/{folder.name}", (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


if __name__ == "__main__":
    sys.exit(main())
