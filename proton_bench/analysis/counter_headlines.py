"""Which counters are shown where none is named, and traffic that has to be computed from several.

Names are those of Nsight Compute's metrics and of its details page, of rocprofv3's derived metrics
and of the counters in rocprof-compute's pmc_perf.csv.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proton_bench.analysis.counter_file import CounterFile

__all__ = ["HEADLINES", "add_hbm_traffic", "headlines"]

HBM = "hbm_bytes (byte)"

# Aspect -> names without units, best first.
HEADLINES: Mapping[str, tuple[str, ...]] = {
    "HBM traffic": (
        "dram__bytes.sum",
        "hbm_bytes",
        "dram__bytes_read.sum",
        "FETCH_SIZE",
        "DRAM Throughput",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "tensor cores or MFMA": (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.sum",
        "MfmaUtil",
        "SQ_VALU_MFMA_BUSY_CYCLES",
        "SQ_INSTS_MFMA",
        "SQ_INSTS_VALU_MFMA_MOPS_F16",
    ),
    "occupancy": (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "Achieved Occupancy",
        "OccupancyPercent",
        "MeanOccupancyPerCU",
        "SQ_LEVEL_WAVES",
        "SQ_WAVES",
    ),
    "scalar ALU": (
        "sm__inst_executed_pipe_uniform.sum",
        "sm__inst_executed_pipe_alu.sum",
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
        "SALUBusy",
        "SQ_INSTS_SALU",
    ),
}
_MOST = 4


def headlines(file: CounterFile) -> tuple[str, ...]:
    """Return one counter of each aspect that the file has, else its first ones."""
    names = file.names
    bases = {name.partition(" (")[0]: name for name in reversed(names)}
    found = [_first(bases, wanted) for wanted in HEADLINES.values()]
    return tuple(name for name in found if name) or names[:_MOST]


def _first(bases: Mapping[str, str], wanted: Iterable[str]) -> str | None:
    return next((bases[name] for name in wanted if name in bases), None)


def add_hbm_traffic(file: CounterFile) -> None:
    """Add ``hbm_bytes (byte)`` to launches whose counters of the L2 cache's requests tell it.

    The formula is that of rocprof-compute: reads of 32, 64 and (where ``TCC_BUBBLE`` counts them)
    128 bytes, writes of 32 and 64 bytes.
    """
    for launch in file.launches:
        for unit in ("TCC_EA0", "TCC_EA"):
            traffic = _traffic(launch.values, unit)
            if traffic is not None:
                launch.values.setdefault(HBM, traffic)


def _traffic(values: Mapping[str, float], unit: str) -> float | None:
    kinds = ("RDREQ", "RDREQ_32B", "WRREQ", "WRREQ_64B")
    counts = [values.get(f"{unit}_{kind}_sum") for kind in kinds]
    if any(count is None for count in counts):
        return None
    reads, small_reads, writes, large_writes = (count or 0.0 for count in counts)
    huge = values.get("TCC_BUBBLE_sum", 0.0)
    read = 128 * huge + 64 * (reads - huge - small_reads) + 32 * small_reads
    return read + 64 * large_writes + 32 * (writes - large_writes)
