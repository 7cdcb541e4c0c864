"""The default counters, and traffic that is computed from several counters.

Names are those of Nsight Compute's metrics and of its details page, of rocprofv3's derived metrics
and of the counters in rocprof-compute's pmc_perf.csv.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proton_bench.analysis.counters.file import CounterFile

__all__ = ["HEADLINES", "add_hbm_traffic", "headlines"]

HBM = "hbm_bytes (byte)"

# Aspect -> names without units, best first.
HEADLINES: Mapping[str, tuple[str, ...]] = {
    "HBM traffic": (
        "dram__bytes.sum",
        "hbm_bytes",
        "dram__bytes_read.sum",
        "FETCH_SIZE",
        "FetchSize",
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

# Counters of bytes read and written, and their units.
_READ_AND_WRITE = (
    ("dram__bytes_read.sum (byte)", "dram__bytes_write.sum (byte)", 1.0),
    ("FETCH_SIZE", "WRITE_SIZE", 1024.0),
    ("FetchSize", "WriteSize", 1024.0),
)


def headlines(file: CounterFile) -> tuple[str, ...]:
    """Return one counter of each aspect that the file has, else its first ones."""
    names = file.names
    bases = {name.partition(" (")[0]: name for name in reversed(names)}
    found = [_first(bases, wanted) for wanted in HEADLINES.values()]
    return tuple(name for name in found if name) or names[:_MOST]


def _first(bases: Mapping[str, str], wanted: Iterable[str]) -> str | None:
    return next((bases[name] for name in wanted if name in bases), None)


def add_hbm_traffic(file: CounterFile) -> None:
    """Add ``hbm_bytes (byte)``, reads plus writes, to launches whose counters allow it.

    The sources are ``dram__bytes_read.sum`` with ``dram__bytes_write.sum``; by ``FETCH_SIZE`` with
    ``WRITE_SIZE``, which are in KiB; or by requests of the L2 cache, as rocprof-compute does it.
    Those read 32, 64 or 128 bytes and write 32 or 64: where reads of 128 bytes are not counted,
    nothing is added, except for gfx90a, which has none (its counters are called ``TCC_EA_...``).
    """
    for launch in file.launches:
        traffic = _traffic(launch.values)
        if traffic is not None:
            launch.values.setdefault(HBM, traffic)


def _traffic(values: Mapping[str, float]) -> float | None:
    for read, write, factor in _READ_AND_WRITE:
        if read in values and write in values:
            return factor * (values[read] + values[write])
    for unit in ("TCC_EA0", "TCC_EA"):
        read_bytes, written = _read_bytes(values, unit), _written_bytes(values, unit)
        if read_bytes is not None and written is not None:
            return read_bytes + written
    return None


def _read_bytes(values: Mapping[str, float], unit: str) -> float | None:
    reads, small = values.get(f"{unit}_RDREQ_sum"), values.get(f"{unit}_RDREQ_32B_sum")
    if reads is None or small is None:
        return None
    huge = values.get(f"{unit}_RDREQ_128B_sum", values.get("TCC_BUBBLE_sum"))
    if huge is None and unit != "TCC_EA":
        return None
    return 128 * (huge or 0.0) + 64 * (reads - (huge or 0.0) - small) + 32 * small


def _written_bytes(values: Mapping[str, float], unit: str) -> float | None:
    writes, large = values.get(f"{unit}_WRREQ_sum"), values.get(f"{unit}_WRREQ_64B_sum")
    return None if writes is None or large is None else 64 * large + 32 * (writes - large)
