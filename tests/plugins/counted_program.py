"""Counts software events under the cpu backend; what they should be is in test_cpu_counters.py.

``python counted_program.py NAME`` touches pages in nested scopes, on several threads, and writes
NAME.proton; it prints facts as JSON.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading

import proton_bench as proton
from proton_bench_plugins.cpu import collector

SOFTWARE = 1
FAULTS = 2


def touch(pages: int) -> None:
    """Write to new pages, each of which is a fault."""
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(pages):
            memory[page * mmap.PAGESIZE] = 1


def run() -> None:
    with proton.scope("outer"):
        touch(300)
        with proton.scope("inner"):
            touch(5000)


def forked() -> int:
    """Return the code of a child that ran the same."""
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(output: str) -> None:
    """Record into a file."""
    collector.INSTRUCTION_EVENT = ("page_faults", SOFTWARE, FAULTS)
    before = len(os.listdir("/proc/self/fd"))
    session = proton.start(output, backend="cpu", mode="counters")
    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run()
    code = forked()
    proton.finalize(session, "proton")
    after = len(os.listdir("/proc/self/fd"))
    sys.stdout.write(json.dumps({"before": before, "after": after, "child": code}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
