"""Time in which code was compiled: by samples of the host, ranges of torch, trials of autotuners.

A compiled function has frames of its compiler's package in every call, so only places that are
reached while it compiles count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.accounting.host_time import host_paths
from proton_bench.analysis.metrics.formula import SECONDS, find_metric
from proton_bench.analysis.naming.frame_names import PythonFrame, parse_frame
from proton_bench.analysis.view.name_filter import rows_below
from proton_bench.analysis.view.select import TRIALS_STATE
from proton_bench.analysis.why.host_limit import recorded_in_ns
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.profile import Profile

__all__ = ["Compilation", "compilation_of", "trials_ns"]

# What is compiled, by the end of a frame's file and its function; the innermost frame decides.
_PLACES: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (stage, re.compile(file), re.compile(function))
    for stage, file, function in (
        (
            "autotuning",
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
_MODULE = "<module>"  # a compiler that is imported
_RANGE = " (dynamo_timed)"  # ends the names of torch's ranges


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
    known: dict[str, str] = {}
    for path in host_paths(profile):
        stage = ""
        for name in path.path:  # the innermost decides
            if name not in known:
                known[name] = _stage_of(parse_frame(name))
            stage = known[name] or stage
        if stage:
            stages[stage] = stages.get(stage, 0.0) + path.wall_ns
            idle_ns += path.idle_ns or 0
    ranges = {text for text in profile.strings if text.endswith(_RANGE)}
    if not stages and (in_ranges_ns := recorded_in_ns(profile, ranges)) > 0:
        stages, idle_ns = {"torch.compile": in_ranges_ns}, in_ranges_ns
    ordered = sorted(stages.items(), key=lambda each: -each[1])
    return Compilation(tuple(ordered), idle_ns, trials_ns(profile))


def _stage_of(frame: PythonFrame | None) -> str:
    """Return what is compiled in a frame, "" if nothing is."""
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
    name = find_metric("time", profile.columns)
    if name is None or not profile.columns[name].kind.is_number:
        return 0.0
    is_trial = np.array([text == TRIALS_STATE for text in profile.strings])
    rows = rows_below(is_trial[profile.frames], profile.subtree_end)
    column = profile.columns[name]
    unit = SECONDS.get(MetricSpec(name).unit, 0.0) / SECONDS["ns"]
    return float(column.values[rows & column.known].sum()) * unit
