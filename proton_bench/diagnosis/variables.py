"""Every environment variable that affects a run: ours, upstream's, and others that we read.

``docs/reference/environment.md`` shows `VARIABLES`, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.support.text import did_you_mean

__all__ = ["VARIABLES", "Reader", "Variable", "variable_section"]

_PREFIX = "PROTON_BENCH_"


class Reader(StrEnum):
    """Which software reads a variable."""

    OURS = "proton_bench"
    SHARED = "proton_bench and others"
    UPSTREAM = "upstream only"


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable and what it does."""

    name: str
    reader: Reader
    meaning: str


VARIABLES = (
    Variable(
        "PROTON_BENCH_AUTOSTART",
        Reader.OURS,
        "set for children of a profiled program, which then record into their own files",
    ),
    Variable(
        "PROTON_BENCH_BUILD_NATIVE",
        Reader.OURS,
        "OFF during installation builds only the analysis, without a compiler",
    ),
    Variable(
        "PROTON_BENCH_CHECK",
        Reader.OURS,
        "1 rejects files with inconsistent numbers, which `proton doctor FILE` finds",
    ),
    Variable(
        "PROTON_BENCH_COMPAT",
        Reader.OURS,
        "set for children of a profiled program: 1 makes triton.profiler ours there too",
    ),
    Variable(
        "PROTON_BENCH_COUNTERS",
        Reader.OURS,
        "samples per second of the counters in timelines, up to 1000, or off; default 10",
    ),
    Variable(
        "PROTON_BENCH_CUPTI_BUFFER_BYTES",
        Reader.OURS,
        "bytes of one activity buffer of the cupti backend, 65536 to 268435456; default 1048576",
    ),
    Variable(
        "PROTON_BENCH_CUPTI_CLOCK",
        Reader.OURS,
        "vendor converts CUPTI's own times; monotonic gives CUPTI our clock",
    ),
    Variable(
        "PROTON_BENCH_CUPTI_FINALIZE",
        Reader.OURS,
        "1 detaches CUPTI from the process when the last session of the cupti backend ends",
    ),
    Variable(
        "PROTON_BENCH_CUPTI_FLUSH_PERIOD_MS",
        Reader.OURS,
        "the cupti backend reads full buffers at least this often; default 100; 0 leaves it to "
        "CUPTI",
    ),
    Variable("PROTON_BENCH_CUPTI_LIB", Reader.OURS, "libcupti or its folder; no other is tried"),
    Variable(
        "PROTON_BENCH_DEBUG", Reader.OURS, "1 shows our traceback below an error of proton run"
    ),
    Variable(
        "PROTON_BENCH_DECODE_LIMIT",
        Reader.OURS,
        "factor for the limits of memory and time for decoding a file; default 1",
    ),
    Variable(
        "PROTON_BENCH_DISABLE", Reader.OURS, "1, on or true: start() does nothing and returns None"
    ),
    Variable("PROTON_BENCH_HIP_LIB", Reader.OURS, "libamdhip64 or its folder; no other is tried"),
    Variable(
        "PROTON_BENCH_HOST_SAMPLES",
        Reader.OURS,
        "samples per second of what the host does, from 0.001 to 1000, or off; default 100 for "
        "commands",
    ),
    Variable(
        "PROTON_BENCH_HSA_LIB", Reader.OURS, "libhsa-runtime64 or its folder; no other is tried"
    ),
    Variable(
        "PROTON_BENCH_HW_TRACE",
        Reader.OURS,
        "1: Blackwell GPUs measure the times of kernels themselves; start before the first CUDA "
        "call",
    ),
    Variable(
        "PROTON_BENCH_NATIVE", Reader.OURS, "1, on or true: finalize() also writes NAME.proton"
    ),
    Variable(
        "PROTON_BENCH_NVTX", Reader.OURS, "0: no backend makes scopes of NVTX and ROCTX ranges"
    ),
    Variable(
        "PROTON_BENCH_NVTX_SCOPES",
        Reader.OURS,
        "1, on or true: scopes are NVTX ranges to the tool that NVTX_INJECTION64_PATH names",
    ),
    Variable(
        "PROTON_BENCH_PARTIAL_INTERVAL_S",
        Reader.OURS,
        "seconds between two writes of NAME.partial.proton while recording; default 2; 0 for never",
    ),
    Variable(
        "PROTON_BENCH_QUIET",
        Reader.OURS,
        "1, on or true: only errors go to stderr; set by proton run --quiet",
    ),
    Variable(
        "PROTON_BENCH_RANK_TAKEN",
        Reader.OURS,
        "set for children of a rank of a job, whose files then have the process id in their names",
    ),
    Variable(
        "PROTON_BENCH_MATRIX",
        Reader.OURS,
        "for our own tests: compiles every kernel with records for every target and option",
    ),
    Variable(
        "PROTON_BENCH_REQUIRE",
        Reader.OURS,
        "for our own tests: a skip for lack of one of browser,go,node,gpu,rocm is a failure",
    ),
    Variable(
        "PROTON_BENCH_ROCM_BUFFER_BYTES",
        Reader.OURS,
        "bytes of the record buffer of the backends for AMD GPUs, 65536 to 268435456; default "
        "1048576",
    ),
    Variable(
        "PROTON_BENCH_ROCM_FLUSH_PERIOD_MS",
        Reader.OURS,
        "the backends for AMD GPUs read records at least this often; default 100; 0 leaves it "
        "to ROCm",
    ),
    Variable(
        "PROTON_BENCH_ROCPROFILER_LIB",
        Reader.OURS,
        "librocprofiler-sdk or its folder; no other is tried",
    ),
    Variable(
        "PROTON_BENCH_ROCTRACER_LIB",
        Reader.OURS,
        "libroctracer64 or its folder; no other is tried",
    ),
    Variable("PROTON_BENCH_ROCTX_LIB", Reader.OURS, "libroctx64 or its folder; no other is tried"),
    Variable(
        "PROTON_BENCH_SIGNALS",
        Reader.OURS,
        "1: signals also write sessions of start(); 0: signals write nothing, and there are no "
        "partial files",
    ),
    Variable(
        "PROTON_BENCH_STORE_KEY",
        Reader.OURS,
        "secret of at least 16 bytes with which stores hash what their policy says",
    ),
    Variable(
        "PROTON_BENCH_STRESS",
        Reader.OURS,
        "for our own tests: makes the native stress test this many times as long",
    ),
    Variable(
        "PROTON_BENCH_TRACE_FORMATS",
        Reader.OURS,
        "formats of timelines, joined by ',': chrome_trace (the default of start(data='trace')), "
        "perfetto (that of commands)",
    ),
    Variable(
        "PROTON_BENCH_TRITONS",
        Reader.OURS,
        "for our own tests: folders of further Tritons to compile with, joined by ':'",
    ),
    Variable(
        "PROTON_BENCH_UPSTREAM_TREE",
        Reader.OURS,
        "1: .hatchet, .chrome_trace and data.get() have upstream Proton's form, as for start() "
        "in a program that imports triton.profiler; 0: always ours",
    ),
    Variable(
        "PROTON_BENCH_WORKER",
        Reader.OURS,
        "set for workers of pytest-xdist: how they record, and where they write their parts",
    ),
    Variable("TRITON_PROTON_DISABLE", Reader.SHARED, "like PROTON_BENCH_DISABLE"),
    Variable(
        "TRITON_INTERPRET",
        Reader.SHARED,
        "1 runs Triton kernels in the interpreter; set by proton run without a GPU driver",
    ),
    Variable(
        "CUDA_INJECTION64_PATH",
        Reader.SHARED,
        "another profiler that the CUDA driver loads; proton doctor reports it",
    ),
    Variable(
        "CUDA_VISIBLE_DEVICES",
        Reader.SHARED,
        "empty or -1 hides all NVIDIA GPUs; HIP uses it if its own is unset or empty",
    ),
    Variable("HIP_VISIBLE_DEVICES", Reader.SHARED, "-1 hides all AMD GPUs"),
    Variable("ROCR_VISIBLE_DEVICES", Reader.SHARED, "empty or -1 hides all AMD GPUs"),
    Variable(
        "DASK_SCHEDULER_ADDRESS",
        Reader.SHARED,
        "Dask scheduler, such as tcp://10.0.0.1:8786, whose workers answer questions about stores",
    ),
    Variable("NO_COLOR", Reader.SHARED, "not empty: reports have no colours"),
    Variable("FORCE_COLOR", Reader.SHARED, "not empty: reports have colours even in a pipe"),
    Variable("TRITON_CUPTI_LIB_PATH", Reader.SHARED, "like PROTON_BENCH_CUPTI_LIB, which wins"),
    Variable("TRITON_CUPTI_LIB_DIR", Reader.SHARED, "older name of TRITON_CUPTI_LIB_PATH"),
    Variable(
        "TRITON_CUPTI_LIB_BLACKWELL_PATH",
        Reader.SHARED,
        "like TRITON_CUPTI_LIB_PATH, but wins over it on GPUs of compute capability 10.0 or later",
    ),
    Variable("TRITON_ENABLE_NVTX", Reader.SHARED, "like PROTON_BENCH_NVTX, which wins"),
    Variable("TRITON_ENABLE_HW_TRACE", Reader.SHARED, "like PROTON_BENCH_HW_TRACE, which wins"),
    Variable(
        "TRITON_PROFILE_BUFFER_SIZE",
        Reader.SHARED,
        "like PROTON_BENCH_CUPTI_BUFFER_BYTES and PROTON_BENCH_ROCM_BUFFER_BYTES, which win",
    ),
    Variable("TRITON_PROFILE_METRIC_BUFFER_SIZE", Reader.UPSTREAM, "bytes of metrics on the GPU"),
    Variable("TRITON_LIBHIP_PATH", Reader.SHARED, "like PROTON_BENCH_HIP_LIB, which wins"),
    Variable("TRITON_HSA_RUNTIME_PATH", Reader.SHARED, "like PROTON_BENCH_HSA_LIB, which wins"),
    Variable("TRITON_HSA_RUNTIME_LIBRARY", Reader.SHARED, "like PROTON_BENCH_HSA_LIB, which wins"),
    Variable(
        "TRITON_ROCPROFILER_SDK_LIB_PATH",
        Reader.SHARED,
        "like PROTON_BENCH_ROCPROFILER_LIB, which wins",
    ),
    Variable(
        "TRITON_ROCPROFILER_SDK_LIBRARY",
        Reader.SHARED,
        "like PROTON_BENCH_ROCPROFILER_LIB, which wins",
    ),
    Variable(
        "TRITON_ROCTRACER_LIB_PATH",
        Reader.SHARED,
        "like PROTON_BENCH_ROCTRACER_LIB, which wins",
    ),
    Variable(
        "TRITON_ROCTRACER_LIBRARY",
        Reader.SHARED,
        "like PROTON_BENCH_ROCTRACER_LIB, which wins",
    ),
    Variable("TRITON_ROCTX_LIB_PATH", Reader.SHARED, "like PROTON_BENCH_ROCTX_LIB, which wins"),
    Variable("TRITON_ROCTX_LIBRARY", Reader.SHARED, "like PROTON_BENCH_ROCTX_LIB, which wins"),
    Variable("ROCM_PATH", Reader.SHARED, "folder of ROCm, searched before /opt/rocm"),
    Variable("ROCM_HOME", Reader.SHARED, "older name of ROCM_PATH"),
    Variable("TRITON_INSTRUMENTATION_MODE", Reader.UPSTREAM, "instrumentation of the compiler"),
    Variable("PROTON_DATA_FLUSH_TIMING", Reader.UPSTREAM, "1 prints the time of each flush"),
    Variable("PROTON_GRAPH_LAUNCH_TIMING", Reader.UPSTREAM, "1 prints the time of graph launches"),
    Variable(
        "NVTX_INJECTION64_PATH",
        Reader.SHARED,
        "library that receives NVTX calls; set to libcupti while the cupti backend runs",
    ),
)


def variable_section(environ: Mapping[str, str]) -> Section:
    """Return the known variables that are set, and unknown ones with our prefix, if any.

    Args:
        environ: The environment to check.
    """
    known = [_describe(one, environ[one.name]) for one in VARIABLES if one.name in environ]
    names = {one.name for one in VARIABLES}
    unknown = sorted(name for name in environ if name.startswith(_PREFIX) and name not in names)
    found = (*known, *(_misspelt(name, environ[name]) for name in unknown))
    return Section("environment", found)


def _describe(variable: Variable, value: str) -> Finding:
    advice = variable.meaning
    if variable.reader is Reader.UPSTREAM:
        advice += "; this release does not read it"
    return Finding(variable.name, Status.NOTE, repr(value), advice)


def _misspelt(name: str, value: str) -> Finding:
    hint = did_you_mean(name, [variable.name for variable in VARIABLES])
    return Finding(name, Status.PROBLEM, repr(value), f"nothing reads this variable{hint}")
