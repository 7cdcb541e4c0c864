"""What is measured: the arms, the workloads, and which arm runs which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

# Workload: what one unit of it is. `metadata` is the last: its launch hooks come off afterwards.
UNITS = {
    "tiny": "launch",
    "eager": "step",
    "compiled": "step",
    "compiled_graphs": "step",
    "graph": "replay",
    "small_graph": "replay",
    "matmul": "product",
    "metadata": "launch",
}
WORKLOADS = tuple(UNITS)
# It takes seconds to capture these anew: a session has so many pairs of blocks.
PAIRS_OF_SESSION = {"compiled_graphs": 8}
# So many times as many blocks: short ones, of whose difference little is left.
REPEATS = {"tiny": 3, "metadata": 3}
_STEPS = ("eager", "compiled", "compiled_graphs")
_TRACED = ("tiny", "eager", "graph")


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run the workloads, in a process of its own.

    Attributes:
        name: By which results are kept.
        tool: Key of ``benchmarks.overhead.tools.TOOLS``.
        workloads: What it runs.
        context: ``context=`` of the profiler.
        mode: ``mode=`` of the profiler.
        data: ``data=`` of the profiler, "tree" or "trace".
        part: Part of a block that it runs; less where a unit takes a hundred times as long.
    """

    name: str
    tool: str
    workloads: tuple[str, ...]
    context: str = "shadow"
    mode: str = ""
    data: str = "tree"
    part: float = 1.0

    @property
    def samples(self) -> bool:
        """Whether it samples program counters, or hardware counters."""
        return self.mode.startswith(("pcsampling", "counters"))


SAMPLED = ("tiny", "eager", "matmul")
ARMS = {
    arm.name: arm
    for arm in (
        Arm("none", "none", WORKLOADS),
        Arm("floor", "floor", WORKLOADS),
        Arm("upstream", "upstream", WORKLOADS),
        Arm("ours", "ours", WORKLOADS),
        Arm("upstream_python", "upstream", ("tiny",), context="python"),
        Arm("ours_python", "ours", ("tiny",), context="python"),
        Arm("ours_layers", "ours", ("tiny", "eager"), context="auto"),
        Arm("ours_launch", "ours", ("graph", "small_graph"), mode="graph=launch"),
        Arm("upstream_trace", "upstream", _TRACED, data="trace"),
        Arm("ours_trace", "ours", _TRACED, data="trace"),
        Arm("torch", "torch", WORKLOADS),
        Arm("torch_cpu", "torch_cpu", _STEPS),
        Arm("ours_pcs", "ours", SAMPLED, mode="pcsampling:interval=auto"),
        Arm("ours_pcs_10", "ours", SAMPLED, mode="pcsampling:interval=1024"),
        Arm("ours_pcs_12", "ours", SAMPLED, mode="pcsampling:interval=4096"),
        Arm("ours_counters", "ours", SAMPLED, mode="counters"),
        Arm("upstream_pcs", "upstream", SAMPLED, mode="pcsampling", part=0.025),
    )
}


def chosen(
    tools: Sequence[str] | None = None, workloads: Sequence[str] | None = None
) -> dict[str, Arm]:
    """Return the chosen arms with their chosen workloads; None is all.

    Args:
        tools: Names of arms; None is all except those that sample, which have their own command.
        workloads: Names of workloads.
    """
    wanted = set(workloads or WORKLOADS)
    result = {}
    for name, arm in ARMS.items():
        each = tuple(work for work in arm.workloads if work in wanted)
        if each and (name in tools if tools is not None else not arm.samples):
            result[name] = replace(arm, workloads=each)
    return result
