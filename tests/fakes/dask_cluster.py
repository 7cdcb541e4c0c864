"""A Dask scheduler and workers, each a process of its own, on the loopback address."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DaskCluster:
    """A running cluster.

    Attributes:
        address: Of the scheduler.
        addresses: Of the workers.
        workers: Their processes, each with one thread.
    """

    address: str
    addresses: Sequence[str]
    workers: Sequence[subprocess.Popen[str]]


@contextmanager
def running(workers: int) -> Iterator[DaskCluster]:
    """Run a scheduler and so many workers, without anything that would start them again."""
    with ExitStack() as processes:
        here = "host='127.0.0.1', dashboard=False"
        address = _said(processes.enter_context(_started(f"Scheduler({here}, port=0)")))
        one = f"Worker({address!r}, {here}, nthreads=1)"
        started = [processes.enter_context(_started(one)) for _ in range(workers)]
        yield DaskCluster(address, [_said(each) for each in started], started)


@contextmanager
def _started(server: str) -> Iterator[subprocess.Popen[str]]:
    """Run a server until the block ends; it prints its address."""
    program = f"""
import asyncio
from distributed import Scheduler, Worker

async def main():
    async with {server} as server:
        print(server.address, flush=True)
        await server.finished()

asyncio.run(main())
"""
    words = [sys.executable, "-c", program]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
