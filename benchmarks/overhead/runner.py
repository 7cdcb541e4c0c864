"""Runs processes of all arms that are ready at the same time; one measures at a time."""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.overhead.plan import PAIRS_OF_SESSION, REPEATS, WORKLOADS, Arm

ROOT = Path(__file__).parents[2]
_END_SECONDS = 20
LAST_LINES = 12


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings that processes get.

    Attributes:
        kind: "cuda", "double" or "cpu".
        floor: Path of the compiled floor, or "".
        cupti: Path of libcupti for all tools but torch's, or "".
        environment: Variables on top of this process's.
        blocks: Timed blocks of each workload, bare and profiled alike; some have a multiple.
        limit_s: Longest time for one answer.
        apart: Only one process at a time, instead of all in lockstep.
        worker: Module that a process runs.
    """

    kind: str
    floor: str = ""
    cupti: str = ""
    environment: Mapping[str, str] | None = None
    blocks: int = 5
    limit_s: float = 240.0
    apart: bool = False
    worker: str = "benchmarks.overhead.worker"


class ArmProcess:
    """A fresh process of an arm.

    Args:
        arm: Which, with the workloads that it will run.
        setting: How.
        folder: Its own folder.
    """

    def __init__(self, arm: Arm, *, setting: Setting, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.name, self.error, self.is_lost = arm.name, "", False
        self._limit_s = setting.limit_s
        place = {
            "kind": setting.kind,
            "folder": str(folder),
            "floor": setting.floor,
            "cupti": setting.cupti,
        }
        spec = {"arm": asdict(arm), "place": place}
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", setting.worker, json.dumps(spec)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **(setting.environment or {})},
            )
        self._pending = b""

    def send(self, do: str, workload: str = "") -> None:
        """Send a command, unless the process is lost."""
        if self.is_lost:
            return
        assert self._process.stdin is not None
        line = json.dumps({"do": do, "workload": workload}) + "\n"
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError as error:
            self._lose(f"{do} {workload}: {error}")

    def receive(self, what: str) -> dict[str, Any] | None:
        """Return the answer; None when the command failed, and ``error`` says why."""
        if self.is_lost:
            return None
        line = self._line()
        if line is None:
            self._lose(f"{what}: no answer")
            return None
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            self.error = f"{what}: {answer['error']}"
            return None
        return answer

    def ask(self, do: str, workload: str = "") -> dict[str, Any] | None:
        """Send a command and wait for its answer."""
        self.send(do, workload)
        return self.receive(f"{do} {workload}".strip())

    def last_words(self) -> str:
        """Return the end of what the process printed."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return "\n".join(f"    {line}" for line in lines[-LAST_LINES:])

    def end(self) -> None:
        """Let the process end, or kill it."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        if self.is_lost:
            self._process.kill()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _line(self) -> bytes | None:
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        deadline = time.monotonic() + self._limit_s
        while b"\n" not in self._pending:
            if not select.select([source], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            part = os.read(source, 1 << 16)
            if not part:
                return None
            self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _lose(self, text: str) -> None:
        self.error, self.is_lost = text, True


Measured = dict[str, Any]


@contextmanager
def processes(
    arms: Mapping[str, Arm], *, setting: Setting, folder: Path
) -> Iterator[dict[str, ArmProcess]]:
    """Start a process per arm and have all of them prepare at the same time.

    Args:
        arms: Arms with the workloads that they will run.
        setting: How to measure.
        folder: Where each gets a folder.
    """
    running: dict[str, ArmProcess] = {}
    try:
        for name, arm in arms.items():
            running[name] = ArmProcess(arm, setting=setting, folder=folder / name)
            running[name].send("prepare")
        for process in running.values():
            process.is_lost = process.receive("prepare") is None
        yield running
    finally:
        for process in running.values():
            process.end()


def measure_round(
    arms: Mapping[str, Arm], setting: Setting, order: random.Random
) -> dict[str, Measured]:
    """Measure every workload of every arm once, in fresh processes.

    Blocks without a profiler and with one alternate, each pair around a session of its own, so that
    the clocks and neighbours of a moment are in both. The arms take turns pair by pair, each time
    in another order. Work that takes long to capture has several pairs a session: their blocks
    without it, then those with it, and the arms take turns block by block.

    Args:
        arms: Arms with their workloads.
        setting: How to measure.
        order: Source of the order.
    """
    groups = [{name: arm} for name, arm in arms.items()] if setting.apart else [dict(arms)]
    order.shuffle(groups)
    results: dict[str, Measured] = {}
    for group in groups:
        results |= _measure_group(group, setting, order)
    return results


def _measure_group(
    arms: Mapping[str, Arm], setting: Setting, order: random.Random
) -> dict[str, Measured]:
    results: dict[str, Measured] = {
        name: {"error": None, "workloads": {work: _empty() for work in arm.workloads}}
        for name, arm in arms.items()
    }
    with (
        TemporaryDirectory(prefix="overhead_") as folder,
        processes(arms, setting=setting, folder=Path(folder)) as running,
    ):
        Lockstep(running, arms, results=results, order=order).measure(setting.blocks)
        for name, process in running.items():
            results[name]["error"] = process.error or None
            if process.error:
                print(f"{name}: {process.error}", process.last_words(), sep="\n", flush=True)
    return results


def _empty() -> Measured:
    return {
        "bare": [],
        "profiled": [],
        "bare_thread": [],
        "profiled_thread": [],
        "finalize_s": None,
        "bytes": None,
        "kernels": None,
        "sampling": None,
    }


class Lockstep:
    """Processes that measure in turn."""

    def __init__(
        self,
        running: Mapping[str, ArmProcess],
        arms: Mapping[str, Arm],
        *,
        results: dict[str, Measured],
        order: random.Random,
    ) -> None:
        self._running, self._plan, self._results = running, arms, results
        self._order = order
        self._failed: set[tuple[str, str]] = set()  # (arm, workload): it is not gone on with

    def measure(self, blocks: int) -> None:
        """Measure everything."""
        for workload in WORKLOADS:
            count = blocks * REPEATS.get(workload, 1)
            pairs = min(PAIRS_OF_SESSION.get(workload, 1), count)
            for name in self._shuffled(workload):
                self._block(name, workload)  # warms up
            for _ in range(count // pairs):
                if workload in PAIRS_OF_SESSION:
                    self._capture_and_measure(workload, pairs)
                    continue
                for name in self._shuffled(workload):
                    self._block(name, workload, "bare")
                    self._ask(name, workload, "start")
                    self._block(name, workload, "profiled")
                    self._finish(name, workload)

    def _capture_and_measure(self, workload: str, pairs: int) -> None:
        for _ in range(pairs):
            for name in self._shuffled(workload):
                self._block(name, workload, "bare")
        arms = self._shuffled(workload)
        for name in arms:  # all at the same time: it takes seconds
            self._running[name].send("start", workload)
        for name in arms:
            self._note(name, workload, self._running[name].receive(f"start {workload}"))
        for name in self._shuffled(workload):
            self._block(name, workload)
        for _ in range(pairs):
            for name in self._shuffled(workload):
                self._block(name, workload, "profiled")
        for name in self._shuffled(workload):
            self._finish(name, workload)

    def _finish(self, name: str, workload: str) -> None:
        answer = self._ask(name, workload, "finish")
        for key in ("finalize_s", "bytes", "kernels", "sampling"):
            self._measured(name, workload)[key] = answer.get(key) if answer else None

    def _block(self, name: str, workload: str, which: str = "") -> None:
        answer = self._ask(name, workload, "block")
        if which and answer:
            measured = self._measured(name, workload)
            measured[which].append(answer["seconds"])
            measured[f"{which}_thread"].append(answer["thread_seconds"])

    def _ask(self, name: str, workload: str, do: str) -> Measured | None:
        if (name, workload) in self._failed:
            return None
        answer = self._running[name].ask(do, workload)
        self._note(name, workload, answer)
        return answer

    def _shuffled(self, workload: str) -> list[str]:
        arms = self._arms(workload)
        self._order.shuffle(arms)
        return arms

    def _note(self, name: str, workload: str, answer: Measured | None) -> None:
        if answer is None:
            self._failed.add((name, workload))

    def _arms(self, workload: str) -> list[str]:
        return [
            name
            for name, arm in self._plan.items()
            if workload in arm.workloads
            and not self._running[name].is_lost
            and (name, workload) not in self._failed
        ]

    def _measured(self, name: str, workload: str) -> Measured:
        measured: Measured = self._results[name]["workloads"][workload]
        return measured
