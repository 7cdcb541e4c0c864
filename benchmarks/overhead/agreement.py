"""Compares records with torch.profiler's: python -m benchmarks.overhead agree.

Both run the same work in processes of their own, window by window in turn: each window is a
session that starts, records and ends. Launches must be the same to the last one, in total and by
name; sums of kernel time must agree within 1 % in the median over the windows. And the kernels of
each training step's backward() must stand below the scope that called it: as many as torch.profiler
sees when it records nothing but that call, and none outside the steps.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.interleaved import Interval, median
from benchmarks.overhead.plan import Arm
from benchmarks.overhead.runner import ArmProcess, Setting, processes
from benchmarks.round_results import machine

TOLERANCE = 0.01
STEPS = ("eager_steps", "compiled_steps")
WORKLOADS = (*STEPS, "graph", "streams", "threads")
ARMS = {
    "ours": Arm("ours", "ours", WORKLOADS),
    "torch": Arm("torch", "torch", WORKLOADS),
    "torch_backward": Arm("torch_backward", "torch_backward", STEPS),
}
Times = Mapping[str, Sequence[int]]  # kernel: launches and summed ns


class UnmeasuredError(RuntimeError):
    """A process could not record a window."""


@dataclass(frozen=True, slots=True)
class Window:
    """Records of both for the same work."""

    ours: Times
    torch: Times


@dataclass(frozen=True, slots=True)
class Agreement:
    """Result over the windows of a workload.

    Attributes:
        launches: Launches in all windows, ours and torch's.
        ratio: Our sum of kernel time over theirs within a window; None without kernels.
        differences: Kernel: (ours, theirs) where launches differ.
    """

    launches: tuple[int, int]
    ratio: Interval | None
    differences: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_met(self) -> bool:
        """Same launches, and times within the tolerance."""
        is_close = self.ratio is not None and abs(self.ratio.middle - 1) <= TOLERANCE
        return is_close and not self.differences and self.launches[0] == self.launches[1]


def base_name(name: str) -> str:
    """Return a kernel's name without type, template arguments and parameters."""
    name = name.replace("(anonymous namespace)", "anonymous").removeprefix("void ")
    return name.partition("<")[0].partition("(")[0]


def judge(windows: Sequence[Window]) -> Agreement:
    """Compare launches of each window, and times over the windows."""
    differences: dict[str, tuple[int, int]] = {}
    for window in windows:
        ours, theirs = _launches(window.ours), _launches(window.torch)
        for name in ours.keys() | theirs.keys():
            if ours.get(name, 0) != theirs.get(name, 0):
                differences[name] = ours.get(name, 0), theirs.get(name, 0)
    pairs = [(_time(window.ours), _time(window.torch)) for window in windows]
    values = [one / other for one, other in pairs if other]
    launches = (
        sum(sum(_launches(window.ours).values()) for window in windows),
        sum(sum(_launches(window.torch).values()) for window in windows),
    )
    return Agreement(launches, median(values) if values else None, differences)


def _launches(times: Times) -> dict[str, int]:
    launches: dict[str, int] = {}
    for name, (count, _) in times.items():
        launches[base_name(name)] = launches.get(base_name(name), 0) + count
    return launches


def _time(times: Times) -> int:
    return sum(total for _, total in times.values())


def backward_agrees(ours: Mapping[str, int], torch: Mapping[str, int]) -> list[str]:
    """Return errors in the places of the kernels of backward().

    Args:
        ours: Launches by path of scopes.
        torch: Launches by "STEP/backward", each from a recording of that call alone.
    """
    wrong = [
        f"{count} kernels below {path or 'no scope'}"
        for path, count in ours.items()
        if not path.startswith("step_")
    ]
    for path, expected in torch.items():
        found = sum(
            count for place, count in ours.items() if place == path or place.startswith(f"{path}/")
        )
        if found != expected or not expected:
            wrong.append(f"{path}: {found} kernels, {expected} in its recording alone")
    return wrong if torch else [*wrong, "no step was recorded alone"]


def _window(process: ArmProcess, workload: str) -> dict[str, Any]:
    recorded: dict[str, Any] = {}
    for command in ("start", "block", "finish"):
        answer = process.ask(command, workload)
        if answer is None:
            raise UnmeasuredError(f"{process.name}: {process.error}\n{process.last_words()}")
        recorded = answer
    return recorded


def _windows(ours: ArmProcess, torch: ArmProcess, asked: tuple[str, int]) -> list[dict[str, Any]]:
    workload, count = asked
    windows = []
    for number in range(count + 1):  # the first one warms up
        recorded = {}
        for process in (ours, torch) if number % 2 else (torch, ours):
            recorded[process.name] = _window(process, workload)
        windows.append(recorded)
    return windows[1:]


def compare(options: argparse.Namespace, setting: Setting) -> int:
    """Record and compare; 1 if something does not agree."""
    wanted = [work for work in WORKLOADS if not options.workload or work in options.workload]
    results: dict[str, Any] = {"schema": "proton_bench.agreement", "version": 1}
    results |= {"machine": machine(), "workloads": {}, "agrees": True}
    with (
        TemporaryDirectory(prefix="agreement_") as folder,
        processes(_arms(wanted), setting=setting, folder=Path(folder)) as running,
    ):
        for workload in wanted:
            try:
                answer = _compare_workload(running, workload, options.windows)
            except UnmeasuredError as error:
                print(f"{workload:<16} FAIL  {error}", flush=True)
                answer = {"agrees": False, "wrong": [str(error)]}
            results["workloads"][workload] = answer
            results["agrees"] = results["agrees"] and answer["agrees"]
            _save(options.json, results)
    print("all agree" if results["agrees"] else "something does not agree")
    return 0 if results["agrees"] else 1


def _arms(wanted: Sequence[str]) -> dict[str, Arm]:
    arms = {}
    for name, arm in ARMS.items():
        each = tuple(work for work in arm.workloads if work in wanted)
        if each:
            arms[name] = replace(arm, workloads=each)
    return arms


def _compare_workload(
    running: Mapping[str, ArmProcess], workload: str, count: int
) -> dict[str, Any]:
    windows = _windows(running["ours"], running["torch"], (workload, count))
    agreement = judge(
        [Window(each["ours"]["times_ns"], each["torch"]["times_ns"]) for each in windows]
    )
    wrong = [f"{name}: {one} and {other}" for name, (one, other) in agreement.differences.items()]
    answer: dict[str, Any] = {"launches": agreement.launches, "agrees": agreement.is_met}
    if agreement.ratio:
        answer["ratio"] = [agreement.ratio.middle, agreement.ratio.low, agreement.ratio.high]
    if workload in STEPS:
        alone = _window(running["torch_backward"], workload)["scopes"]
        misplaced = [
            each for window in windows for each in backward_agrees(window["ours"]["scopes"], alone)
        ]
        answer["backward"] = {"alone": alone, "wrong": misplaced}
        answer["agrees"] = answer["agrees"] and not misplaced
        wrong += misplaced
    answer["wrong"] = wrong
    verdict = "PASS" if answer["agrees"] else "FAIL"
    ratio = f"{agreement.ratio:.4f}" if agreement.ratio else "-"
    print(f"{workload:<16} launches {agreement.launches}  time {ratio}  {verdict}", flush=True)
    for each in wrong[:8]:
        print(f"    {each}", flush=True)
    return answer


def _save(path: Path, results: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results), encoding="utf-8")
