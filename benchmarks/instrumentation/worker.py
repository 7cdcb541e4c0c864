"""A process of one arm: commands come and answers go as JSON lines, as in benchmarks.overhead."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.instrumentation.plan import LAUNCHES, Launches
from benchmarks.overhead.plan import Arm

Answer = dict[str, Any]
KERNEL_LAUNCHES = 40


def synchronize() -> None:
    """Wait for the GPU if there is one."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


class LaunchedArm:
    """Launches with one profiler or none: a bare block, then a profiled one.

    Args:
        arm: With its works.
        folder: Where the profiler writes.
        tiny: In the interpreter.
    """

    def __init__(self, arm: Arm, folder: Path, *, tiny: bool) -> None:
        from benchmarks.instrumentation.sessions import SESSIONS
        from benchmarks.instrumentation.works import make

        self._arm, self._tiny = arm, tiny
        kind = SESSIONS.get(arm.tool)
        self._session = kind and kind[0](folder, kind[1], on_gpu=not tiny)
        self._works = {name: make(name, tiny=tiny) for name in arm.workloads}

    def prepare(self) -> Answer:
        """Compile everything, with records and without."""
        for work in self._works.values():
            work.launch()
            if self._session is not None:
                self._session.start()
                work.launch()
                synchronize()
                self._session.finish()
        synchronize()
        return {}

    def pair(self, name: str) -> Answer:
        """Measure a bare and a profiled block."""
        work = self._works[name]
        count = LAUNCHES[self._arm.tool, name] if not self._tiny else Launches(1, 1, 2)
        bare = self._block(work.launch, LAUNCHES["bare", name] if not self._tiny else count)
        plain = [each.clone() for each in work.launch()]
        answer: Answer = {"bare": bare}
        with self._recording(answer):
            answer["profiled"] = self._block(work.launch, count)
            results = work.launch()
            synchronize()
        if self._session is not None:
            launches = count.warm + count.timed + count.in_a_row + 1
            # The interpreter has no warps, so the number of times it enters a scope is unknown.
            scopes = {} if self._tiny else work.scopes
            expected = {scope: each * launches for scope, each in scopes.items()}
            answer |= {"expected": expected, "launches": launches}
        answer["matches"] = work.matches(results)
        answer["identical"] = all(map(_same, plain, results))
        return answer

    @contextmanager
    def _recording(self, answer: Answer) -> Iterator[None]:
        """Record with the profiler of this arm; always finish it."""
        if self._session is None:
            yield
            return
        self._session.start()
        try:
            yield
        finally:
            answer |= asdict(self._session.finish())

    def _block(self, launch: Callable[[], object], count: Launches) -> Answer:
        for _ in range(count.warm):
            launch()
        synchronize()
        gpu_us = [self._timed_us(launch) for _ in range(count.timed)]
        begin = time.perf_counter()
        for _ in range(count.in_a_row):
            launch()
        synchronize()
        wall_us = (time.perf_counter() - begin) / count.in_a_row * 1e6
        return {"gpu_us": median(gpu_us), "wall_us": wall_us}

    def _timed_us(self, launch: Callable[[], object]) -> float:
        """Return the time between two events around one launch."""
        if self._tiny:
            begin = time.perf_counter()
            launch()
            return (time.perf_counter() - begin) * 1e6
        import torch

        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        launch()
        after.record()
        after.synchronize()
        return float(before.elapsed_time(after)) * 1000


class KernelArm:
    """Ten kernels: the device time of each alone, with scopes and without."""

    def __init__(self, arm: Arm, folder: Path, *, tiny: bool) -> None:
        from benchmarks.instrumentation.works import make

        self._folder, self._tiny = folder, tiny
        self._scoped_first = dict.fromkeys(arm.workloads, False)
        self._works = {name: make(name, tiny=tiny) for name in arm.workloads}

    def prepare(self) -> Answer:
        """Compile what is not instrumented."""
        for work in self._works.values():
            work.launch()
        synchronize()
        return {}

    def pair(self, name: str) -> Answer:
        """Measure without records and with them; every other time, with them first."""
        work = self._works[name]
        results: list[Any] = []

        def launch() -> None:
            for _ in range(1 if self._tiny else KERNEL_LAUNCHES):
                results[:] = work.launch()
            synchronize()

        order = [None, work.passes]
        if self._scoped_first[name]:
            order.reverse()
        self._scoped_first[name] = not self._scoped_first[name]
        times_us: dict[str | None, float] = {}
        outputs: dict[str | None, list[Any]] = {}
        for passes in order:
            times_us[passes] = self._time_us(work.kernel, launch, passes=passes)
            outputs[passes] = [each.clone() for each in results]
        scoped = outputs[work.passes]
        return {
            "bare_us": times_us[None],
            "scoped_us": times_us[work.passes],
            "passes": work.passes,
            "matches": work.matches(tuple(scoped)),
            "identical": all(map(_same, outputs[None], scoped)),
        }

    def _time_us(self, kernel: str, launch: Callable[[], None], *, passes: str | None) -> float:
        if self._tiny:
            begin = time.perf_counter()
            launch()
            return (time.perf_counter() - begin) * 1e6
        from benchmarks.instrumentation.sessions import kernel_time_us

        return kernel_time_us(self._folder, kernel, launch, passes=passes)[0]


class CycleArm:
    """Chains of a known number of cycles, as they are measured and with the cost of records off."""

    def __init__(self, arm: Arm, folder: Path, *, tiny: bool) -> None:
        self._folder, self._tiny = folder, tiny
        del arm

    def prepare(self) -> Answer:
        """Nothing is compiled before a session asks for records."""
        return {}

    def pair(self, name: str) -> Answer:
        """Measure one chain."""
        from benchmarks.instrumentation.known_cycles import CYCLES_PER_STEP

        length = int(name.split()[1])
        if self._tiny:
            return {"expected": CYCLES_PER_STEP * length, "raw": None, "deducted": None}
        return {
            "expected": CYCLES_PER_STEP * length,
            "raw": self._least(length, ""),
            "deducted": self._least(length, "time_shift"),
        }

    def _least(self, length: int, optimizations: str) -> float:
        """Return the least cycles of a warp; the first launch has to fetch its instructions."""
        import proton_bench
        from benchmarks.instrumentation.known_cycles import chain_of
        from proton_bench.formats.registry import read_profile
        from proton_bench.recording.session.session import SessionOptions, open_session

        mode = proton_bench.mode.Default(optimizations=optimizations)
        name = str(self._folder / "chain")
        session = open_session(SessionOptions(name=name, backend="instrumentation", mode=mode))
        for _ in range(10):
            chain_of(length)
        [path] = session.finalize(formats=("proton",))
        return min(samples.minimum for _, samples in read_profile(path).distributions["cycles"])


KINDS = {"kernels": KernelArm, "cycles": CycleArm}


def _same(one: Any, other: Any) -> bool:
    import torch

    return bool(torch.equal(one, other))


def serve(spec: dict[str, Any]) -> None:
    """Answer commands until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    arm, place = Arm(**spec["arm"]), spec["place"]
    # Kernels choose their scopes, and Triton whether it interprets, when they are imported.
    os.environ["BENCHMARK_SCOPES"] = "upstream" if arm.tool.startswith("upstream") else "ours"
    measured: Any = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if measured is None:
                kind = KINDS.get(arm.tool, LaunchedArm)
                measured = kind(arm, Path(place["folder"]), tiny=place["kind"] != "cuda")
            do = command["do"]
            answer = measured.prepare() if do == "prepare" else measured.pair(command["workload"])
        except Exception as error:  # noqa: BLE001 - any error is sent to the runner
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # nothing at exit counts
