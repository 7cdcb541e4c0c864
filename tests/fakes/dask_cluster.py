"""Dask clusters of processes, on loopback addresses or as if each were on a machine of its own.

As machines, servers are in network namespaces. Their interfaces are joined by a bridge in another
namespace, from which clients reach them, and all of that ends with the processes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

# A worker that stops itself has begun a task that it never ends.
_SERVER = """
import asyncio, os, signal
from distributed import Scheduler, Worker, WorkerPlugin

class Stop(WorkerPlugin):
    def transition(self, key, start, finish, **ignored):
        if finish == "executing":
            os.kill(os.getpid(), signal.SIGSTOP)

async def main():
    print("started", flush=True)
    host = input()
    async with {server} as server:
        print(server.address, flush=True)
        await server.finished()

asyncio.run(main())
"""
_SCHEDULER = "Scheduler(host=host, port=0, dashboard=False)"
_WORKER = "Worker({address!r}, host=host, nthreads=1, dashboard=False, plugins=[{plugins}])"
_BRIDGE = "hub"
_IN_BRIDGE = (
    ("link", "add", _BRIDGE, "type", "bridge"),
    ("address", "add", "10.213.0.254/24", "dev", _BRIDGE),
    ("link", "set", _BRIDGE, "up"),
)


def has_namespaces() -> bool:
    """Return whether this process may make network namespaces, and has the tools."""
    tools = all(shutil.which(tool) for tool in ("unshare", "nsenter", "ip"))
    words = ["unshare", "--net", "ip", *_IN_BRIDGE[0]]
    return tools and subprocess.run(words, capture_output=True).returncode == 0


@contextmanager
def running(*, machines: bool) -> Iterator[DaskCluster]:
    """Run a scheduler without workers.

    Args:
        machines: Whether each server has a network namespace, rather than a loopback address.
    """
    with ExitStack() as processes:
        yield DaskCluster(processes, machines=machines)


class DaskCluster:
    """A running cluster; nothing starts a worker again.

    Args:
        processes: Ends the processes.
        machines: Whether each server has a network namespace.

    Attributes:
        enter: Words before a command, which make it run where the scheduler is reached.
        address: Address of the scheduler.
    """

    def __init__(self, processes: ExitStack, *, machines: bool) -> None:
        self._processes = processes
        self._servers = 0
        self.enter: Sequence[str] = ()
        if machines:
            bridge = self._started(["unshare", "--net", "sh", "-c", "echo started; read wait"])
            self.enter = _in_namespace_of(bridge)
            for words in _IN_BRIDGE:
                subprocess.run([*self.enter, "ip", *words], check=True)
        self.address = self._serve(_SCHEDULER)[1]

    def add_worker(self, *, stops: bool = False) -> subprocess.Popen[str]:
        """Start a worker with one thread.

        Args:
            stops: Whether it stops, as by SIGSTOP, when it begins its first task.
        """
        plugins = "Stop()" if stops else ""
        return self._serve(_WORKER.format(address=self.address, plugins=plugins))[0]

    def _serve(self, server: str) -> tuple[subprocess.Popen[str], str]:
        """Start a server, and return its process and address."""
        words = [sys.executable, "-c", _SERVER.format(server=server)]
        process = self._started([*(["unshare", "--net"] if self.enter else []), *words])
        self._servers += 1
        host = f"127.0.0.{self._servers}"
        if self.enter:
            host = f"10.213.0.{self._servers}"
            self._join(process, host)
        assert process.stdin is not None
        process.stdin.write(f"{host}\n")
        process.stdin.flush()
        return process, _said(process)

    def _started(self, words: Sequence[str]) -> subprocess.Popen[str]:
        """Return a process, which has said that it is in its namespace."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = self._processes.enter_context(subprocess.Popen(words, text=True, **pipes))
        self._processes.callback(process.kill)
        assert _said(process) == "started"
        return process

    def _join(self, process: subprocess.Popen[str], host: str) -> None:
        """Give the namespace of a process an interface that is a port of the bridge."""
        port, other = f"port{self._servers}", ("peer", "name", "net", "netns", str(process.pid))
        for words in (
            ("link", "add", port, "type", "veth", *other),
            ("link", "set", port, "master", _BRIDGE, "up"),
        ):
            subprocess.run([*self.enter, "ip", *words], check=True)
        for words in (("address", "add", f"{host}/24", "dev", "net"), ("link", "set", "net", "up")):
            subprocess.run([*_in_namespace_of(process), "ip", *words], check=True)


def _in_namespace_of(process: subprocess.Popen[str]) -> list[str]:
    return ["nsenter", "--net", "--target", str(process.pid)]


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
