"""Sets of hardware metrics that are sampled in one pass, and what each metric says.

NVIDIA's names say what is counted, the unit that counts, and how the counts of all units are put
together. `.avg` is a mean over the units of a GPU, so that no number of units is needed here, and
``pct_of_peak_sustained_elapsed`` is 100 x count / (most that a unit counts in a cycle x cycles that
passed), so that it gives a count again once it is multiplied by the cycles of its sample. Which
sets fit into one pass was asked of libcupti's host library for GA100, AD102, GH100, GB100, GB202.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import StrEnum

from proton_bench.errors import UsageError

ELAPSED_CYCLES = "sm__cycles_elapsed.avg"
DEFAULT_SET = "speed-of-light"

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
# Counters of a second group, which Hopper takes in the same pass.
_TPC, _SM = "TPC.TriageCompute.", "SM_A.TriageCompute."

_SM_ACTIVE = "sm__cycles_active.avg"
_TENSOR = f"sm__pipe_tensor_cycles_active{_ELAPSED}"
_DRAM = f"dram__throughput{_ELAPSED}"
_BUSIEST = ".max.pct_of_peak_sustained_elapsed"
_L2 = f"lts__t_sectors{_ELAPSED}"
_L2_REQUESTS = (f"lts__t_requests{_ELAPSED}", f"lts__t_requests{_BUSIEST}")
_ISSUE = f"sm__inst_executed{_ELAPSED}"
_L1 = f"l1tex__data_pipe_lsu_wavefronts{_ELAPSED}"
_SHARED = f"l1tex__data_pipe_lsu_wavefronts_mem_shared{_ELAPSED}"
_FP32 = f"{_TPC}sm__inst_executed_pipe_fma_realtime{_ELAPSED}"
_WAVEFRONTS = f"{_SM}l1tex__data_pipe_lsu_wavefronts"

# By name: the metrics of one pass, the richest first; a GPU takes the first that it can schedule.
METRIC_SETS: dict[str, tuple[tuple[str, ...], ...]] = {
    DEFAULT_SET: (
        (
            ELAPSED_CYCLES,
            f"{_TPC}{_SM_ACTIVE}",
            f"{_TPC}sm__pipe_tensor_cycles_active_realtime{_ELAPSED}",
            _DRAM,
            _L2,
            *_L2_REQUESTS,
            f"{_TPC}sm__inst_executed_realtime{_ELAPSED}",
            _FP32,
            f"{_TPC}sm__inst_executed_pipe_alu_realtime{_ELAPSED}",
            f"{_SM}sm__inst_executed_pipe_xu_realtime{_ELAPSED}",
            f"{_TPC}sm__pipe_fp64_cycles_active_realtime{_ELAPSED}",
            f"{_WAVEFRONTS}{_ELAPSED}",
            f"{_WAVEFRONTS}_mem_shared{_ELAPSED}",
        ),
        (ELAPSED_CYCLES, _SM_ACTIVE, _TENSOR, _DRAM, _L2, *_L2_REQUESTS, _ISSUE),
        (ELAPSED_CYCLES, _SM_ACTIVE, _TENSOR, _DRAM),
    ),
    "memory": ((ELAPSED_CYCLES, _SM_ACTIVE, _DRAM, _L2, *_L2_REQUESTS, _L1, _SHARED),),
    "tensor": (
        (ELAPSED_CYCLES, _SM_ACTIVE, _TENSOR, _DRAM, _FP32),
        (ELAPSED_CYCLES, _SM_ACTIVE, _TENSOR, _DRAM),
    ),
}


class Basis(StrEnum):
    """What a reading is multiplied by, so that readings of several samples can be added up."""

    NOTHING = "nothing"  # it counts cycles already
    ELAPSED_CYCLES = "elapsed cycles"
    TIME = "time"  # units whose clock does not change


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the readings of one metric say.

    Attributes:
        quantity: One of the `UNITS` that are counted.
        basis: What makes an amount of a reading.
        scale: Reading x scale x basis is the time or the cycles in which the unit was busy at its
            peak.
    """

    quantity: str
    basis: Basis
    scale: float = 0.01


# What is counted, without the group before it and without what follows the first dot behind it.
_COUNTED = {
    "sm__cycles_active": "sm_active",
    "sm__pipe_tensor_cycles_active": "tensor",
    "sm__pipe_tensor_cycles_active_realtime": "tensor",
    "dram__throughput": "dram",
    "dramc__throughput": "dram",
    "lts__t_sectors": "l2",
    "lts__t_sector_throughput": "l2",
    "lts__throughput": "l2",
    "lts__t_requests": "l2_requests",
    "sm__inst_executed": "issue",
    "sm__inst_executed_realtime": "issue",
    "sm__inst_executed_pipe_fma": "fp32",
    "sm__inst_executed_pipe_fma_realtime": "fp32",
    "sm__pipe_fma_cycles_active": "fp32",
    "sm__inst_executed_pipe_alu": "alu",
    "sm__inst_executed_pipe_alu_realtime": "alu",
    "sm__inst_executed_pipe_xu": "xu",
    "sm__inst_executed_pipe_xu_realtime": "xu",
    "sm__pipe_fp64_cycles_active": "fp64",
    "sm__pipe_fp64_cycles_active_realtime": "fp64",
    "l1tex__data_pipe_lsu_wavefronts": "l1",
    "l1tex__throughput": "l1",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared": "shared",
}
_OF_BUSIEST = {"l2_requests": "l2_slice"}
_OWN_CLOCK = ("dram", "l2", "l2_requests", "l2_slice")  # not the clock of the multiprocessors
_GROUPED = "TriageCompute."


@functools.lru_cache(maxsize=256)
def meaning_of(metric: str) -> Meaning | None:
    """Return what a metric says, None where its readings say nothing of a unit's share of peak.

    Args:
        metric: NVIDIA's name of it, such as ``dram__throughput.avg.pct_of_peak_sustained_elapsed``.
    """
    counted, _, rollup = metric.rpartition(_GROUPED)[2].partition(".")
    quantity = _COUNTED.get(counted)
    if quantity is None:
        return None
    if quantity == "sm_active" and rollup == "avg":
        return Meaning(quantity, Basis.NOTHING, 1.0)
    if f".{rollup}" == _BUSIEST and quantity in _OF_BUSIEST:
        return Meaning(_OF_BUSIEST[quantity], Basis.TIME)
    if f".{rollup}" == _ELAPSED:
        basis = Basis.TIME if quantity in _OWN_CLOCK else Basis.ELAPSED_CYCLES
        return Meaning(quantity, basis)
    return None


def metric_candidates(asked: str = DEFAULT_SET) -> tuple[tuple[str, ...], ...]:
    """Return the metrics to sample, as several tuples: a GPU takes the first that fits one pass.

    Args:
        asked: Name of a set, or NVIDIA's names of metrics with commas between.

    Raises:
        UsageError: It is neither.
    """
    text = asked.strip()
    if text in METRIC_SETS:
        return METRIC_SETS[text]
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names or any("__" not in name or "." not in name for name in names):
        raise UsageError(
            f"{asked!r} is not a set of metrics: choose from {', '.join(METRIC_SETS)}, or give "
            "NVIDIA's names of metrics, such as lts__t_sectors.avg.pct_of_peak_sustained_elapsed"
        )
    return ((ELAPSED_CYCLES, *(name for name in names if name != ELAPSED_CYCLES)),)
