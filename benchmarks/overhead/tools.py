"""Starts and ends the profilers in a process of one arm."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.overhead.floor import Floor
from benchmarks.overhead.plan import Arm

Scope = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Place:
    """Folder and device of a process of an arm.

    Attributes:
        kind: "cuda"; "double" for the doubles of the vendor's libraries; "cpu".
        folder: Where the tool writes.
        floor: The compiled floor, or "".
        cupti: libcupti for all tools but torch's own, or "".
    """

    kind: str
    folder: str
    floor: str = ""
    cupti: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Results of a tool at its end.

    Attributes:
        finalize_s: Seconds from the last launch's end until files were written.
        bytes: Size of the files; of all records for the floor.
        kernels: Launches found in the files; None if not counted.
        times_ns: Launches and their summed time, by name of the kernel.
        scopes: Launches by path of scopes, joined by "/".
        sampling: Facts about samples of program counters, by name; empty without samples.
    """

    finalize_s: float
    bytes: int
    kernels: int | None = None
    times_ns: dict[str, tuple[int, int]] = field(default_factory=dict)
    scopes: dict[str, int] = field(default_factory=dict)
    sampling: dict[str, int] = field(default_factory=dict)


class Tool(Protocol):
    """A profiler; ``scope`` is None if it has none."""

    scope: Scope | None

    def start(self, workload: str) -> None:
        """Begin to record; with metadata where that is the workload."""

    def finish(self) -> Recorded:
        """End, write files, and return their contents."""


class NoTool:
    """No profiler."""

    scope: Scope | None = None

    def __init__(self, _arm: Arm, _place: Place) -> None:
        pass

    def start(self, _workload: str) -> None:
        """Do nothing."""

    def finish(self) -> Recorded:
        """Return zeros."""
        return Recorded(0.0, 0)


def evaluate(metadata: Any) -> None:
    """Evaluate metadata, as every launch hook does."""
    metadata.get()


class FloorTool:
    """CUPTI with an empty callback; the metadata of a launch is evaluated and forgotten."""

    scope: Scope | None = None

    def __init__(self, _arm: Arm, place: Place) -> None:
        self._floor = Floor(place.floor, place.cupti)
        self._cleanup = ExitStack()

    def start(self, workload: str) -> None:
        """Subscribe."""
        self._floor.start()
        if workload == "metadata":
            from triton import knobs

            knobs.runtime.launch_enter_hook.add(evaluate)
            self._cleanup.callback(knobs.runtime.launch_enter_hook.remove, evaluate)

    def finish(self) -> Recorded:
        """Unsubscribe."""
        begin = time.perf_counter()
        size = self._floor.stop()
        seconds = time.perf_counter() - begin
        self._cleanup.close()
        return Recorded(seconds, size)


class Proton:
    """Ours or upstream's profiler: the same functions with the same arguments."""

    def __init__(self, arm: Arm, place: Place, module: Any) -> None:
        self._arm, self._place, self._module = arm, place, module
        self.scope: Scope | None = module.scope
        self._folder = Path(place.folder)
        self._session: Any = None
        self._number = 0

    def start(self, workload: str) -> None:
        """Start a session."""
        self._number += 1
        self._session = self._module.start(
            str(self._folder / f"profile_{self._number}"),
            backend=self._backend(),
            context=self._arm.context,
            mode=self._arm.mode or None,
            data=self._arm.data,
            hook="triton" if workload == "metadata" else None,
        )

    def finish(self) -> Recorded:
        """Write the tree or the timeline, and read it."""
        begin = time.perf_counter()
        self._module.finalize(self._session)
        seconds = time.perf_counter() - begin
        files = list(self._folder.glob(f"profile_{self._number}.*"))
        size = sum(path.stat().st_size for path in files)
        times, scopes = self._read(files)
        kernels = sum(count for count, _ in times.values())
        sampling = self._sampling(files) if self._arm.samples else {}
        return Recorded(seconds, size, kernels, times, scopes, sampling)

    def _sampling(self, files: list[Path]) -> dict[str, int]:
        """Return how many samples the tree has; no file of upstream says more."""
        path = next(path for path in files if path.suffix == ".hatchet")
        return {"samples": _sampled(json.loads(path.read_bytes())[0])}

    def _read(self, files: Sequence[Path]) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
        suffix = ".chrome_trace" if self._arm.data == "trace" else ".hatchet"
        path = next(path for path in files if path.suffix == suffix)
        return (read_trace(path), {}) if self._arm.data == "trace" else read_tree(path)

    def _backend(self) -> str:
        return "cupti"


class Ours(Proton):
    """proton_bench."""

    def __init__(self, arm: Arm, place: Place) -> None:
        import proton_bench

        super().__init__(arm, place, proton_bench)
        if arm.samples:  # for its provenance
            os.environ["PROTON_BENCH_NATIVE"] = "1"

    def _backend(self) -> str:
        return "cpu" if self._place.kind == "cpu" else "cupti"

    def _sampling(self, files: list[Path]) -> dict[str, int]:
        """Return the backend's whole numbers about it."""
        from proton_bench.formats.registry import read_profile

        profile = read_profile(next(path for path in files if path.suffix == ".proton"))
        kind = "counters" if self._arm.mode.startswith("counters") else "pc_sampling"
        facts = profile.provenance["collectors"]["cupti"][kind]
        return {name: value for name, value in facts.items() if isinstance(value, int)}


class Upstream(Proton):
    """triton.profiler, in a process that never imports ours."""

    def __init__(self, arm: Arm, place: Place) -> None:
        import triton.profiler
        from triton.profiler.hooks import launch

        if place.kind != "cuda" and hasattr(launch, "set_metric_kernels"):
            launch.set_metric_kernels = lambda: None  # it warms kernels up on a GPU

        super().__init__(arm, place, triton.profiler)


class TorchProfiler:
    """torch.profiler: activities of the GPU, and on request of the CPU."""

    scope: Scope | None = None

    def __init__(self, arm: Arm, place: Place) -> None:
        self._with_cpu = arm.tool == "torch_cpu" or place.kind != "cuda"
        self._on_gpu = place.kind == "cuda"
        self._trace = Path(place.folder) / "trace.json"
        self._profiler: Any = None

    def start(self, _workload: str) -> None:
        """Begin to record."""
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CUDA] if self._on_gpu else []
        if self._with_cpu:
            activities.append(ProfilerActivity.CPU)
        self._profiler = profile(activities=activities)
        self._profiler.start()

    def finish(self) -> Recorded:
        """Write a trace and read it."""
        begin = time.perf_counter()
        self._profiler.stop()
        self._profiler.export_chrome_trace(str(self._trace))
        seconds = time.perf_counter() - begin
        self._profiler = None
        times = read_trace(self._trace)
        kernels = sum(count for count, _ in times.values())
        return Recorded(seconds, self._trace.stat().st_size, kernels, times)


class TorchBackward:
    """torch.profiler around nothing but scopes called "backward", one after the other."""

    def __init__(self, arm: Arm, place: Place) -> None:
        self._inner = TorchProfiler(arm, place)
        self._scopes: list[str] = []
        self._counts: dict[str, int] = {}
        self.scope: Scope | None = lambda name: _Window(self, name)

    def start(self, _workload: str) -> None:
        """Forget earlier steps."""
        self._counts = {}

    def finish(self) -> Recorded:
        """Return the kernels of each step's backward()."""
        return Recorded(0.0, 0, sum(self._counts.values()), scopes=dict(self._counts))

    def enter(self, name: str) -> None:
        """Begin to record if the scope is a backward()."""
        self._scopes.append(name)
        if name == "backward":
            _synchronize()
            self._inner.start("")

    def leave(self) -> None:
        """End, and count."""
        path = "/".join(self._scopes)
        if self._scopes.pop() == "backward":
            _synchronize()
            kernels = self._inner.finish().kernels or 0
            self._counts[path] = self._counts.get(path, 0) + kernels


class _Window:
    """A scope of TorchBackward."""

    def __init__(self, tool: TorchBackward, name: str) -> None:
        self._tool, self._name = tool, name

    def __enter__(self) -> None:
        self._tool.enter(self._name)

    def __exit__(self, *_error: object) -> None:
        self._tool.leave()


def _synchronize() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def read_trace(path: Path) -> dict[str, tuple[int, int]]:
    """Return count and summed ns of the kernels in a Chrome trace, by name."""
    times: dict[str, tuple[int, int]] = {}
    for event in _events(path):
        if event.get("cat") == "kernel":
            count, total = times.get(event["name"], (0, 0))
            times[event["name"]] = count + 1, total + round(event["dur"] * 1000)
    return times


def _events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of one document, or of several in a row: upstream's had one per stream."""
    text, decoder, at = path.read_text().strip(), json.JSONDecoder(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield from document["traceEvents"]
        while text[at : at + 1].isspace():
            at += 1


def _sampled(root: dict[str, Any]) -> int:
    samples, nodes = 0, [root]
    while nodes:
        node = nodes.pop()
        samples += node.get("metrics", {}).get("num_stalled_samples", 0)
        nodes += node["children"]
    return samples


def read_tree(path: Path) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Return count and summed ns by kernel, and counts by path of scopes, of a hatchet file."""
    times: dict[str, tuple[int, int]] = {}
    scopes: dict[str, int] = {}

    def visit(node: dict[str, Any], above: tuple[str, ...]) -> None:
        name, metrics = node["frame"]["name"], node.get("metrics", {})
        launches = metrics.get("count", 0)
        if launches and "device_type" in metrics:
            count, total = times.get(name, (0, 0))
            times[name] = count + launches, total + metrics.get("time (ns)", 0)
            scope = "/".join(above)
            scopes[scope] = scopes.get(scope, 0) + launches
        for child in node["children"]:
            visit(child, (*above, name))

    for child in json.loads(path.read_bytes())[0]["children"]:
        visit(child, ())
    return times, scopes


TOOLS: dict[str, Callable[[Arm, Place], Tool]] = {
    "none": NoTool,
    "floor": FloorTool,
    "upstream": Upstream,
    "ours": Ours,
    "torch": TorchProfiler,
    "torch_cpu": TorchProfiler,
    "torch_backward": TorchBackward,
}
