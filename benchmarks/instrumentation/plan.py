"""What is measured: the arms, what each of them launches, and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.overhead.plan import Arm

LAUNCHED = ("matmul", "short")
KERNELS = (
    "softmax",
    "grouped GEMM",
    "layer norm",
    "dropout",
    "plain matmul",
    "swiglu",
    "top-k",
    "persistent matmul",
    "attention",
    "TMA matmul",
)
CHAINS = (512, 1024, 4096)  # dependent multiply-adds

# Part: its arms, and the works of each.
PARTS: Mapping[str, tuple[Arm, ...]] = {
    "launches": tuple(
        Arm(name, name, LAUNCHED)
        for name in (
            *("bare", "ours_tree", "ours_trace", "upstream_tree", "upstream_trace"),
            *("ours_tree_shared", "upstream_tree_shared"),
        )
    ),
    "kernels": (Arm("kernels", "kernels", KERNELS),),
    "cycles": (Arm("cycles", "cycles", tuple(f"chain {length}" for length in CHAINS)),),
}
ARMS = {arm.name: arm for arms in PARTS.values() for arm in arms}


@dataclass(frozen=True, slots=True)
class Launches:
    """How often one block launches.

    Attributes:
        warm: Before anything is timed.
        timed: One by one, between two events.
        in_a_row: Without waiting in between, for the time on the wall.
    """

    warm: int
    timed: int
    in_a_row: int


# Arms that write each instance of each scope, or wait for each launch, get fewer.
LAUNCHES: Mapping[tuple[str, str], Launches] = {
    ("bare", "matmul"): Launches(5, 30, 200),
    ("ours_tree", "matmul"): Launches(5, 30, 200),
    ("ours_trace", "matmul"): Launches(1, 3, 4),
    ("upstream_tree", "matmul"): Launches(1, 5, 8),
    ("upstream_trace", "matmul"): Launches(1, 1, 2),
    ("ours_tree_shared", "matmul"): Launches(5, 30, 200),
    ("upstream_tree_shared", "matmul"): Launches(1, 5, 8),
    ("bare", "short"): Launches(20, 50, 500),
    ("ours_tree", "short"): Launches(20, 50, 500),
    ("ours_trace", "short"): Launches(20, 50, 500),
    ("upstream_tree", "short"): Launches(5, 20, 50),
    ("upstream_trace", "short"): Launches(5, 20, 50),
    ("ours_tree_shared", "short"): Launches(20, 50, 500),
    ("upstream_tree_shared", "short"): Launches(5, 20, 50),
}


def chosen(
    parts: Sequence[str] | None, arms: Sequence[str] | None, works: Sequence[str] | None
) -> dict[str, Arm]:
    """Return the chosen arms with their chosen works; None is all.

    Args:
        parts: Keys of ``PARTS``.
        arms: Names of arms.
        works: Names of works.
    """
    result = {}
    for arm in (arm for part in parts or PARTS for arm in PARTS[part]):
        each = tuple(work for work in arm.workloads if works is None or work in works)
        if each and (arms is None or arm.name in arms):
            result[arm.name] = replace(arm, workloads=each)
    return result
