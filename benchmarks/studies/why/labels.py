"""The labels of the study's kernels: what is right by construction, and what it is made of."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """What is known of a kernel.

    Attributes:
        name: Name of its scope in the program.
        right: Kinds of verdicts that are right, the best first.
        why: How it is made.
    """

    name: str
    right: tuple[str, ...]
    why: str


SEED = 24  # of the order of kernels
LABELS = (
    Label("dram-copy", ("memory:dram",), "copy of 1 GiB"),
    Label("dram-read", ("memory:dram",), "sum of 1 GiB"),
    Label("dram-write", ("memory:dram",), "1 GiB written"),
    Label("dram-softmax", ("memory:dram",), "softmax of rows of 16 KiB, read and written once"),
    Label(
        "uncoalesced", ("memory:dram", "memory:l2", "uncoalesced"), "one value of each 128 bytes"
    ),
    Label("random-gather", ("uncoalesced", "memory:dram", "memory:l2"), "values in a random order"),
    Label("random-scatter", ("uncoalesced",), "values written in a random order"),
    Label("column-read", ("memory:l2", "uncoalesced"), "columns of a row-major matrix summed"),
    Label("column-write", ("uncoalesced", "memory:l2"), "columns of a row-major matrix written"),
    Label("strided-cache", ("memory:l1",), "one value of each line, again and again from L1"),
    Label("l2-resident", ("memory:l2",), "16 MiB read again and again past L1"),
    Label("l1-resident", ("memory:l1",), "16 KiB per program read again and again"),
    Label("shared-bandwidth", ("memory:shared", "memory:l1"), "loads without conflicts"),
    Label("shared-conflict", ("memory:shared", "memory:l1"), "loads of 32 lanes from one bank"),
    Label(
        "tensor-zeros",
        ("compute:tensor", "power-capped"),
        "product of zeros: little power, at the clock that the kernels around it left",
    ),
    Label("power-capped", ("power-capped", "compute:tensor"), "product of random fp16 matrices"),
    Label(
        "tensor-triton",
        ("compute:tensor", "memory:l2", "latency"),
        "Triton's product of tiles of 128 x 128: a third below the ceiling, many loads from L2",
    ),
    Label("fp32-fma", ("compute:fp32", "compute:issue"), "chains of fp32 FMAs in registers"),
    Label("fp64-fma", ("compute:fp64",), "chains of fp64 FMAs in registers"),
    Label("integers", ("compute:alu",), "chains of logic operations in registers"),
    Label("exponents", ("compute:xu",), "chains of exp2 in registers"),
    Label("roots", ("compute:xu",), "reciprocal square roots with an addition each"),
    Label("issue-bound", ("compute:issue", "compute:fp32"), "two pipes together"),
    Label("latency-dependency", ("latency",), "one warp per program, one chain"),
    Label("latency-scoreboard", ("latency",), "pointers through 512 MiB"),
    Label("latency-barrier", ("latency",), "1024 threads wait for one warp"),
    Label("atomics", ("contention",), "all programs add to one value"),
    Label("one-atomic", ("contention",), "one lane of each program adds to one value"),
    Label("histogram", ("contention",), "64 M values counted in 64 bins of global memory"),
    Label("tail", ("tail",), "one program has twenty times the work"),
    Label("small-grid", ("small-grid",), "8 programs"),
    Label(
        "spills",
        ("memory:l1", "memory:l2", "memory:dram", "latency"),
        "values of 1024 bytes a lane",
    ),
    Label("copy-engine", ("copy-engine",), "64 MiB from pinned memory of the host"),
    Label("field", ("uncoalesced", "memory:dram"), "one field of records of 64 bytes"),
    Label("column-softmax", ("uncoalesced", "memory:l2"), "softmax down columns"),
    Label("take", ("uncoalesced", "memory:dram", "memory:l2"), "torch.take in a random order"),
    Label("scatter-add", ("contention",), "torch's scatter_add_ of 16 M values to 16 places"),
    Label("sigmoids", ("compute:xu",), "exponentials and reciprocals in registers"),
    Label("reductions", ("memory:shared",), "sums of blocks of 32 warps: shuffles"),
    Label("meetings", ("latency",), "32 warps meet at a barrier after each FMA"),
    Label("ragged", ("tail",), "rows of which each fortieth is sixty times as long"),
)
# A run of its own: what its first finding should be.
LOADER = Label("loader", ("input-bound",), "a DataLoader that is slower than the training step")


def shuffled_labels(names: Sequence[str]) -> list[str]:
    """Return the names in the order of the program's first round."""
    names = list(names)
    random.Random(SEED).shuffle(names)
    return names
