"""Samples of counters for joins: recorded ones, and made ones whose rates are known."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from proton_bench.model.arrays import Floats
from proton_bench.recording.counters.metric_sets import ELAPSED_CYCLES

DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
_TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
METRICS = (ELAPSED_CYCLES, "sm__cycles_active.avg", _TENSOR, DRAM)
_FOLDER = Path(__file__).parents[1] / "data" / "counters"
_MULTIPROCESSORS, _SUB_PARTITIONS = 132, 4
_START_NS = 1_000_000_000


@dataclass(frozen=True)
class Kind:
    """What Nsight Compute said of a kind of kernels in the recorded mixes."""

    name: str
    duration_ns: float
    dram_pct: float
    tensor_pct: float
    sm_clock_mhz: float


def kinds() -> list[Kind]:
    """Return the kinds, in the order of the nodes of `recorded_burst`."""
    with (_FOLDER / "ncu.csv").open() as file:
        return [
            Kind(row.pop("kind"), **{name: float(text) for name, text in row.items()})
            for row in csv.DictReader(file)
        ]


def recorded_burst(interval: str) -> dict[str, Any]:
    """Return the samples and kernels of a recorded mix, as ``take_bursts`` gives them."""
    with np.load(_FOLDER / f"mix_{interval}.npz") as file:
        data = {name: file[name].astype(np.int64) for name in file.files}
    end = data["first_ns"] + np.cumsum(data["length_ns"])
    start = np.cumsum(data["kernel_start_delta_ns"])
    cycles = data["elapsed_sum"] / _MULTIPROCESSORS
    tensor = 100.0 * data["tensor_sum"] / _SUB_PARTITIONS / data["elapsed_sum"]
    active = data["active_sum"] / _MULTIPROCESSORS
    return {
        "device": 0,
        "start_ns": end - data["length_ns"],
        "end_ns": end,
        "counts": np.column_stack([cycles, active, tensor, data["dram_pct"] / 1000]),
        "nodes": data["kind"].astype(np.uint32),
        "is_own": np.ones(len(start), dtype=np.uint8),
        "kernel_start_ns": start,
        "kernel_end_ns": start + data["kernel_length_ns"],
    }


def burst_of(
    kernels: Sequence[tuple[int, int, int, float]],
    *,
    samples: int = 200,
    interval_ns: int = 10_000,
    start_ns: int = _START_NS,
    background: float = 0.0,
    noise: Floats | float = 0.0,
    device: int = 0,
) -> dict[str, Any]:
    """Return a burst of one metric, the DRAM's, with exact mixtures of what ran in each sample.

    Args:
        kernels: Node, begin and end in ns after the burst's begin, and rate (0 to 1) of each.
        samples: How many.
        interval_ns: Length of each.
        start_ns: Begin of the burst.
        background: Rate of what is not ours, also while kernels run.
        noise: Added to each sample's rate.
        device: Number of the device.
    """
    edges = start_ns + np.arange(samples + 1) * interval_ns
    amounts = np.full(samples, background * interval_ns)
    for _, begin, end, rate in kernels:
        shared = np.minimum(edges[1:], start_ns + end) - np.maximum(edges[:-1], start_ns + begin)
        amounts += rate * np.maximum(shared, 0)
    rates = np.maximum(amounts / interval_ns + noise, 0.0)
    node, begin, end = (
        np.array([kernel[place] for kernel in kernels], dtype=np.int64) for place in range(3)
    )
    return {
        "device": device,
        "start_ns": edges[:-1],
        "end_ns": edges[1:],
        "counts": 100.0 * rates[:, None],
        "nodes": node.astype(np.uint32),
        "is_own": np.ones(len(node), dtype=np.uint8),
        "kernel_start_ns": start_ns + begin,
        "kernel_end_ns": start_ns + end,
    }


def made_bursts(
    random: np.random.Generator,
    *,
    lengths_ns: Sequence[int],
    rates: Sequence[float],
    bursts: int = 12,
    samples: int = 150,
    spread: float = 0.0,
    noise: float = 0.01,
    in_order: bool = False,
) -> list[dict[str, Any]]:
    """Return bursts of kernels one after the other.

    Args:
        random: Where the order, gaps and noise come from.
        lengths_ns: Length of the kernels of each node.
        rates: Rate of each node, 0 to 1.
        bursts: How many.
        samples: Samples of each.
        spread: How much the rates of a node differ between bursts, which is noise that is alike
            within a burst.
        noise: Noise of each sample's rate.
        in_order: The nodes run by turns instead of at random.
    """
    made = []
    for number in range(bursts):
        own = np.clip(np.array(rates) + random.normal(0.0, spread, len(rates)), 0.0, 1.0)
        kernels, at, turn = [], -int(random.integers(0, 40_000)), 0
        while at < samples * 10_000:
            node = turn % len(rates) if in_order else int(random.integers(len(rates)))
            turn += 1
            at += int(random.exponential(700.0)) + 300
            kernels.append((node, at, at + lengths_ns[node], float(own[node])))
            at += lengths_ns[node]
        made.append(
            burst_of(
                kernels,
                samples=samples,
                start_ns=_START_NS * (number + 1),
                noise=random.normal(0.0, noise, samples),
            )
        )
    return made
