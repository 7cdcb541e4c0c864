"""How long a run compiled or tuned code, by samples of the host or ranges of torch."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from proton_bench.analysis.accounting.host_time import host_paths, is_compilation
from proton_bench.analysis.metrics.values import own_ns
from proton_bench.analysis.naming.frame_names import parse_frame
from proton_bench.analysis.view.names import rows_below
from proton_bench.analysis.view.select import TRIALS_STATE
from proton_bench.model.profile import Profile

TUNING = "autotuning"
# What is compiled, by the end of a frame's file and its function; the innermost frame decides.
_PLACES: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (stage, re.compile(file), re.compile(function))
    for stage, file, function in (
        (
            TUNING,
            r"/torch/_inductor/(runtime/(triton_heuristics|benchmarking|coordinate_descent_tuner)"
            r"|autotune_process|select_algorithm)\.py$|/triton/(testing|runtime/autotuner)\.py$",
            r"autotune|bench|tun(e|ing)|precompile|do_bench",
        ),
        (
            "Triton",
            r"/triton/(compiler/|backends/[^/]*/compiler\.py$|runtime/build\.py$)",
            r"^(?!(launch_metadata|run|runner|__getattribute__|__getitem__|launch_(enter|exit)_hook)$)",
        ),
        ("Triton", r"/triton/backends/[^/]*/driver\.py$", r"compile|make_launcher"),
        ("Triton", r"/triton/runtime/jit\.py$", r"compile"),
        (
            "Inductor",
            r"/torch/_inductor/(graph|scheduler|ir|lowering|async_compile|codecache|compile_worker"
            r"|fx_passes|codegen|compile_fx_ext|pattern_matcher|decomposition)\b",
            r"^(?!__call__$|run$)",
        ),
        ("Inductor", r"/torch/_inductor/compile_fx\.py$", r"compile"),
        (
            "dynamo",
            r"/torch/_dynamo/(convert_frame|symbolic_convert|output_graph|guards|bytecode\w*"
            r"|variables/)",
            r"",
        ),
        ("AOT autograd", r"/torch/_functorch/(aot_autograd|partitioners)\.py$", r""),
        ("C++ extensions", r"/torch/utils/cpp_extension\.py$", r"load|compile|build"),
    )
)
_MODULE = "<module>"
_LIBRARY_MODULE, _LIBRARY = f"@{_MODULE}", re.compile("/(torch|triton)/")
IN_RANGES = "torch.compile"


@dataclass(frozen=True, slots=True)
class Compilation:
    """How long code was compiled, in ns.

    Attributes:
        stages: Time by what was compiled, the longest first.
        idle_ns: The part in which no device worked, as far as it is known.
        trials_ns: Time of kernels with which autotuners tried configurations.
    """

    stages: tuple[tuple[str, float], ...]
    idle_ns: float
    trials_ns: float

    @property
    def total_ns(self) -> float:
        """The time of all stages; the host waits for trials."""
        return max(sum(time_ns for _, time_ns in self.stages), self.trials_ns)


def compilation_of(profile: Profile) -> Compilation:
    """Return how long code was compiled while a profile was recorded, as far as it says."""
    stages: dict[str, float] = {}
    idle_ns = 0.0
    for path in host_paths(profile):
        if stage := compile_stage(path.path):
            stages[stage] = stages.get(stage, 0.0) + path.wall_ns
            idle_ns += path.idle_ns or 0
    # Recorded ranges have no samples of lines below them.
    if (in_ranges_ns := recorded_in_ns(profile, set(filter(is_compilation, profile.strings)))) > 0:
        idle_ns = idle_ns if stages else in_ranges_ns
        stages[IN_RANGES] = in_ranges_ns
    ordered = sorted(stages.items(), key=lambda each: -each[1])
    return Compilation(tuple(ordered), idle_ns, trials_ns(profile))


def compile_stage(path: Sequence[str]) -> str:
    """Return what the innermost frame that compiles or tunes works on, "" if none does.

    A library that is imported compiles nothing, whatever it calls then.
    """
    stage = ""
    for name in path:
        stage = _stage_of(name) or stage
        if name.endswith(_LIBRARY_MODULE) and _LIBRARY.search(name):
            break
    return stage


@lru_cache(maxsize=4096)
def _stage_of(name: str) -> str:
    frame = parse_frame(name)
    if frame is None or frame.function == _MODULE:
        return ""
    found = (
        stage
        for stage, file, function in _PLACES
        if file.search(frame.file) and function.search(frame.function)
    )
    return next(found, "")


def trials_ns(profile: Profile) -> float:
    """Return the time of kernels with which autotuners tried configurations, in ns."""
    is_trial = np.array([text == TRIALS_STATE for text in profile.strings])
    rows = rows_below(is_trial[profile.frames], profile.subtree_end)
    return float(own_ns(profile, "time")[rows].sum())


def recorded_in_ns(profile: Profile, names: Collection[str]) -> float:
    """Return the time that operators took by their own records, 0 if these have no times."""
    rows = list(outermost(profile, names))
    on_cpu = np.array([each.kind == "CPU" for each in profile.devices] + [False])
    times_ns = np.where(on_cpu[profile.device_rows], own_ns(profile, "time"), 0.0)
    below_ns = sum(float(times_ns[row : profile.subtree_end[row]].sum()) for row in rows)
    return max(float(own_ns(profile, "wall")[rows].sum()), below_ns)


def outermost(profile: Profile, names: Collection[str]) -> Iterator[int]:
    """Yield the rows with one of these names that are below no other such row."""
    row, size = 1, len(profile)
    while row < size:
        if profile.name(row) in names:
            yield row
            row = int(profile.subtree_end[row])
        else:
            row += 1
