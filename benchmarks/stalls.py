"""The longest stall of a thread that enters scopes: python -m benchmarks.stalls [--scopes N].

Each load runs twice for the same time, with scopes and with a call that does nothing, which shows
the stalls of the machine itself. A stall is the time of one scope, metrics included.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import proton_bench as proton
import proton_bench.data  # not while a load is measured
from benchmarks.interleaved import print_machine

Enter = Callable[[int], Any]

LEAST_NS = 1_000_000_000  # what happens ten times a second happens in both halves


def plain(i: int) -> Any:
    """One name, no values."""
    return proton.scope("step")


def values(i: int) -> Any:
    """One name with a value."""
    return proton.scope("step", {"tokens": 1})


def names(i: int) -> Any:
    """A new name each time."""
    return proton.scope(f"step {i}")


def new_values(i: int) -> Any:
    """A new name with a value each time."""
    return proton.scope(f"step {i}", {"tokens": 1})


@contextmanager
def repeated(act: Callable[[], object], every_s: float) -> Iterator[None]:
    """Have another thread repeat something."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(every_s):
            act()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def fork() -> None:
    """Fork a child that ends at once."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def start_thread() -> None:
    """Have a new thread open a scope."""

    def work() -> None:
        with proton.scope("in a thread"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def beside(load: str, session: int) -> Any:
    """Return the background load."""
    acts: dict[str, tuple[Callable[[], object], float]] = {
        "get": (lambda: proton.data.get_msgpack(session, proton.data.advance_phase(session)), 0.2),
        "phases": (lambda: proton.data.clear(session, proton.data.advance_phase(session) - 1), 0.1),
        "threads": (start_thread, 0.001),
        "fork": (fork, 0.1),
    }
    return repeated(*acts[load]) if load in acts else nullcontext()


def longest_ns(enter: Enter, scopes: int, least_ns: int = 0) -> tuple[int, int]:
    """Enter so many scopes, for ``least_ns`` at least; return the ns of the longest and of all."""
    clock, longest, i = time.perf_counter_ns, 0, 0
    begin = before = clock()
    while i < scopes or before - begin < least_ns:
        with enter(i):
            pass
        now = clock()
        if now - before > longest:
            longest = now - before
        before = now
        i += 1
    return longest, before - begin


LOADS: dict[str, tuple[str, Enter]] = {
    "plain": ("", plain),
    "values": ("", values),
    "names": ("", names),
    "names, values": ("", new_values),
    "get meanwhile": ("get", values),
    "phases meanwhile": ("phases", new_values),
    "threads meanwhile": ("threads", values),
    "forks meanwhile": ("fork", values),
}


def measure(data: str, title: str, scopes: int) -> None:
    """Run one load and print its row."""
    load, enter = LOADS[title]
    nothing = nullcontext()
    with TemporaryDirectory() as folder:
        session = proton.start(Path(folder, "run"), data=data, backend="cpu")
        assert session is not None
        with beside(load, session):
            longest, all_ns = longest_ns(enter, scopes, least_ns=LEAST_NS)
            idle, _ = longest_ns(lambda _: nothing, 0, least_ns=all_ns)
        proton.finalize(session)
    print(
        f"{data:6} {title:18} longest {longest / 1e6:8.2f} ms, of nothing {idle / 1e6:8.2f} ms, "
        f"{all_ns / 1e9:.1f} s",
        flush=True,
    )


def main() -> None:
    """Print a row for each load and kind of data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scopes", type=int, default=300_000)
    options = parser.parse_args()
    print_machine()
    os.environ.setdefault("PROTON_BENCH_PARTIAL_INTERVAL_S", "1")  # partial files are written
    sys.setswitchinterval(0.0005)
    gc.disable()
    for data in ("tree", "trace"):
        for title in LOADS:
            measure(data, title, options.scopes)


if __name__ == "__main__":
    main()
