"""Has commands read changed files for a given time: ``python -m tests.fuzz --seconds 600``.

Seeded: attempt N is the same with the same seed. Prints what failed, and returns 1 if anything did;
the files are kept in ``build/fuzz/N``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import count, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

# Processes are forked, which libraries that start threads do not survive.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS)]

from fuzz import readers  # noqa: E402 - found by the path above

KEPT = TESTS.parent / "build" / "fuzz"


def attempts(options: argparse.Namespace, lane: int) -> list[str]:
    """Make every attempt of one process; return its number and the faults."""
    ends = time.monotonic() + options.seconds
    numbers: Iterable[int] = count(lane, options.jobs)
    if options.only is not None:
        numbers = [options.only] if lane == 0 else []
    elif options.attempts is not None:
        numbers = islice(numbers, options.attempts)
    faults, made = [], 0
    with TemporaryDirectory(prefix="fuzz-") as name:
        files = readers.prepare(Path(name))
        for number in numbers:
            if options.attempts is None and time.monotonic() > ends:
                break
            made += 1
            folder = Path(name, str(number))
            folder.mkdir()
            dice = Random(f"{options.seed} {number}")
            fault = readers.attempt(dice, folder, files, options.patience)
            if fault:
                faults.append(f"{number}: {fault}")
                shutil.copytree(folder, KEPT / str(number), dirs_exist_ok=True)
            shutil.rmtree(folder)
    print(f"process {lane}: {made} attempts, {len(faults)} failures", flush=True)
    return faults


def main() -> int:
    """Share the time out among processes."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--attempts", type=int, help="of each process, however long they take")
    parser.add_argument("--patience", type=int, default=1, help="times what a command may take")
    parser.add_argument("--only", type=int, metavar="N", help="the attempt with this number")
    options = parser.parse_args()
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        lanes = pool.map(attempts, [options] * options.jobs, range(options.jobs))
        faults = [fault for lane in lanes for fault in lane]
    for fault in faults:
        print(f"\n{fault}\nagain: python -m tests.fuzz --seed {options.seed} --only N")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
