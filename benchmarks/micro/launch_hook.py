"""What the hook `triton` costs, against upstream's: python -m benchmarks.micro.launch_hook.

Both hooks are in this one process and get the same calls that Triton makes: the chain's functions
with a ``LazyDict``. Nothing is launched. Times are those of the thread on a processor, in ns per
pair of enter and exit; "floor" is the pair of empty functions and, with metadata, the evaluation.
Upstream 3.7 and later warm two kernels up at each launch with metrics, which needs a GPU: that is
left out, in its favour.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from triton.compiler import LazyDict
from triton.profiler.hooks import LaunchHook as TheirHook
from triton.profiler.hooks import launch as their_module

import proton_bench as proton
from benchmarks.interleaved import (
    EMPTY_RECORDING,
    difference,
    print_machine,
    print_row,
    ratio,
    rounds,
    timed,
)
from benchmarks.upstream import session
from proton_bench.hooks import LaunchHook as OurHook

ROUNDS = 101
CALLS = 1000
BAR = "0.4"
KERNEL = {"name": "matmul_kernel", "function": 1234, "stream": 0}


def describe(grid: tuple[int, ...], metadata: object, arguments: Mapping[str, int]) -> Any:
    """Return launch metadata of the kind that examples of Triton return."""
    size = arguments["n"]
    return {"name": "matmul_128x128", "flops32": 2.0 * size, "bytes": 8 * size}


def plain() -> LazyDict:
    """Return the metadata of a launch without launch_metadata."""
    return LazyDict(KERNEL)


def described() -> LazyDict:
    """Return the metadata of a launch with launch_metadata."""
    metadata = LazyDict(KERNEL)
    metadata.add(describe, ((1,), None, {"n": 4096}))
    return metadata


def pair(enter: Callable[[Any], object], leave: Callable[[Any], object], make: Any) -> Any:
    """Return a function that looks like one launch to the hooks."""

    def launch() -> None:
        metadata = make()
        enter(metadata)
        leave(metadata)

    return launch


def evaluate(metadata: LazyDict) -> None:
    """Do what every hook has to."""
    metadata.get()


def compare(what: str, make: Callable[[], LazyDict], floor_enter: Callable[[Any], object]) -> None:
    """Measure the three in turn and print what they add to the floor."""
    ours, theirs = OurHook(), TheirHook()
    launches = {
        "floor": pair(floor_enter, id, make),
        "ours": pair(ours.enter, ours.exit, make),
        "theirs": pair(theirs.enter, theirs.exit, make),
    }
    arms = {arm: timed(launch, CALLS, time.thread_time) for arm, launch in launches.items()}
    costs = rounds(arms, ROUNDS)
    each = "  ".join(f"{arm} {statistics.median(all_) * 1e9:5.0f}" for arm, all_ in costs.items())
    own = [one - floor for one, floor in zip(costs["ours"], costs["floor"], strict=True)]
    upstreams = [one - floor for one, floor in zip(costs["theirs"], costs["floor"], strict=True)]
    added = difference([each * 1e9 for each in costs["ours"]], [x * 1e9 for x in costs["floor"]])
    print_row(what, f"{each}  added {added:.0f}  ratio of added {ratio(own, upstreams):.3f}", BAR)


def main() -> None:
    """Print a row per kind of kernel."""
    print_machine()
    if hasattr(their_module, "set_metric_kernels"):
        their_module.set_metric_kernels = lambda: None
    with TemporaryDirectory() as name, session(Path(name)):
        Path(name, "empty").write_bytes(EMPTY_RECORDING)
        mode = f"replay:file={name}/empty"
        number = proton.start(f"{name}/ours", backend="replay", mode=mode, hook="triton")
        compare("launch without launch_metadata", plain, id)
        compare("launch with launch_metadata", described, evaluate)
        with proton.scope("layer"):
            compare("... inside a scope", described, evaluate)
        proton.finalize(number)


if __name__ == "__main__":
    main()
