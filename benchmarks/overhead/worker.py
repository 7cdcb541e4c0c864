"""A process of one arm: commands come and answers go as JSON lines.

Between commands it waits, so that many processes can be ready while one measures. Answers go to
what was the standard output; other output goes to the standard error.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.overhead.plan import Arm
from benchmarks.overhead.tools import TOOLS, Place, Scope
from benchmarks.overhead.workloads import Workload, make

WARM_PART = 10  # a tenth of a block is run before it is timed


class Process:
    """Carries out commands.

    Args:
        arm: The arm, with the workloads that it will be asked to run.
        place: Where it works.
    """

    def __init__(self, arm: Arm, place: Place) -> None:
        self._tool = TOOLS[arm.tool](arm, place)
        self._workloads: dict[str, Workload] = {}
        self._names = arm.workloads
        self._part = arm.part
        self._kind = place.kind
        self._scope: Scope | None = None
        self._commands: dict[str, Callable[[str], dict[str, Any]]] = {
            "prepare": self.prepare,
            "block": self.block,
            "start": self.start,
            "finish": self.finish,
        }

    def do(self, command: dict[str, str]) -> dict[str, Any]:
        """Carry out a command."""
        return self._commands[command["do"]](command.get("workload", ""))

    def prepare(self, _workload: str) -> dict[str, Any]:
        """Build everything, and run it for the first time."""
        # Backwards: compiling anew for CUDA graphs forgets what is compiled for workloads before.
        for name in reversed(self._names):
            work = self._workloads[name] = make(name, self._kind)
            work.units = max(round(work.units * self._part), 1)
            self._workloads[name].prepare(None)
        gc.collect()
        gc.freeze()
        gc.disable()  # it comes at random moments
        return {}

    def block(self, workload: str) -> dict[str, Any]:
        """Measure one block, after a part of it that counts for nothing."""
        work = self._workloads[workload]
        work.run(work.units // WARM_PART or 1, self._scope)
        work.wait()
        begin = time.perf_counter()
        units = work.block(self._scope)
        seconds = time.perf_counter() - begin
        return {"seconds": seconds / units, "thread_seconds": work.thread_s / units}

    def start(self, workload: str) -> dict[str, Any]:
        """Start the profiler."""
        self._tool.start(workload)
        self._scope = self._tool.scope
        if self._workloads[workload].recaptures:
            self._workloads[workload].prepare(self._scope)
        return {}

    def finish(self, workload: str) -> dict[str, Any]:
        """End the profiler."""
        self._workloads[workload].wait()
        self._scope = None
        return asdict(self._tool.finish())


def place_of(spec: dict[str, Any]) -> Place:
    """Return the place of a specification, with what it needs on the path."""
    place = Place(**spec["place"])
    if place.kind == "double":
        sys.path.append(str(Path(__file__).parents[2] / "tests"))
    if place.kind != "cuda":
        import torch

        torch.set_num_threads(1)
    return place


def serve(spec: dict[str, Any]) -> None:
    """Answer commands until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    process: Process | None = None
    for line in sys.stdin:
        try:
            if process is None:
                place = place_of(spec)
                process = Process(Arm(**spec["arm"]), place)
            answer = process.do(json.loads(line))
        except Exception as error:  # noqa: BLE001 - any error is sent to the runner
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # nothing at exit counts, and profilers must not wait for each other's
