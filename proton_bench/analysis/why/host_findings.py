"""Findings about the host of any run: it waits for data or memory, or compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from proton_bench.analysis.accounting.compilation import (
    TUNING,
    compile_stage,
    outermost,
    recorded_in_ns,
)
from proton_bench.analysis.accounting.host_time import host_paths, is_compilation
from proton_bench.analysis.accounting.input_time import (
    LOADING,
    RECEIVING,
    STARTING,
    InputTime,
)
from proton_bench.analysis.metrics.values import own_numbers
from proton_bench.analysis.naming.frame_names import Places, frame_texts, parse_frame
from proton_bench.analysis.why.row_facts import INPUT
from proton_bench.analysis.why.run import MEMORY_CALLS, WholeRun, sample_period_ns
from proton_bench.analysis.why.verdict import (
    BETWEEN,
    BUSY,
    OTHER_CODE,
    OUTSIDE,
    Claim,
    Evidence,
)
from proton_bench.support.units import count_text, duration_text, share_text

# Of the run. A loader that is fast enough takes 0.1 to 0.3 ms a batch to hand it over, which is 3 %
# of a step of 10 ms.
_LEAST = 0.1
_BUSY = 0.5  # of the time of workers, on processors

_HELPS = {
    LOADING: "num_workers=N: processes that load during the step; a faster transform",
    RECEIVING: "fewer and larger tensors in a batch: lists and objects of Python are pickled",
    STARTING: "persistent_workers=True, or longer epochs",
}
_OF_BUSY = "more num_workers, a faster transform; a larger prefetch_factor helps only uneven items"
_OF_WAITING = (
    "more num_workers, a larger prefetch_factor, data that is nearer or in fewer and larger files"
)
_OF_READY = "fewer and larger batches; fewer and larger tensors in them"
# Of the batches that may be made in advance, the part that is there when one is read. Workers that
# cannot keep up leave few, out of order; those that can have made nearly all.
_KEPT_UP = 0.5


def input_bound(run: WholeRun) -> Iterator[Claim]:
    """Find time in which the program waits for a DataLoader and no device works."""
    inputs = run.inputs
    rows: dict[int, float] = {}
    claimed: dict[str, float] = {}
    if run.devices or not run.verdicts.facts.device_kinds <= {"CPU"}:
        # While a device works, a wait may cost nothing.
        lost_ns = min(inputs.wall_ns if inputs.idle_ns is None else inputs.idle_ns, run.idle_ns)
        between_ns = min(lost_ns, run.open_ns)
        claimed = {BETWEEN: between_ns, OUTSIDE: min(lost_ns - between_ns, run.outside_ns)}
    else:
        rows = _rows(run)
        lost_ns = inputs.wall_ns
        claimed = {OTHER_CODE: max(lost_ns - sum(rows.values()), 0.0)}
    if not (lost_ns > 0 and run.span_ns > 0) or lost_ns < _LEAST * run.span_ns:
        return
    loader = _loader(run, inputs)
    line = _line(run, inputs, loader)
    how, evidence = _how(inputs, loader)
    share = lost_ns / run.span_ns
    text = f"input-bound: waits for data {share_text(share, decimals=0)} of the {run.word}"
    text += f" in {line}" if line else ""
    first = Evidence("host.input", text, share, "fraction of the run")
    yield Claim(
        f"{text}: {how}" if how else text,
        (first, *evidence),
        pools={name: ns for name, ns in claimed.items() if ns > 0},
        rows=rows,
        helps=_advice(inputs, loader, has_gpu=not rows and bool(run.devices)),
    )


def _rows(run: WholeRun) -> dict[int, float]:
    facts = run.verdicts.facts
    return {row: float(facts.own_ns[row]) for row in facts.rows() if facts.of(row).purpose == INPUT}


def _loader(run: WholeRun, inputs: InputTime) -> Mapping[str, Any]:
    """Return what was recorded of the loader: that of the line with most time, or the only one."""
    recorded = run.recorded.provenance.get("data_loaders")
    known = [loader for loader in recorded or () if isinstance(loader, Mapping)]
    lines = list(inputs.lines or {})
    at_line = [loader for line in lines[:1] for loader in known if loader.get("place") == line]
    is_main = inputs.main_part == LOADING
    of_kind = [loader for loader in known if (loader.get("workers") == 0) == is_main]
    chosen = at_line or of_kind or known
    return max(chosen, key=lambda loader: _number(loader, "epochs"), default={})


def _number(loader: Mapping[str, Any], name: str) -> float:
    value = loader.get(name)
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else 0.0


def _line(run: WholeRun, inputs: InputTime, loader: Mapping[str, Any]) -> str:
    place = loader.get("place")
    name = next(iter(inputs.lines or {}), place if isinstance(place, str) else "")
    return frame_texts([name], Places.of(run.recorded.provenance))[name] if name else ""


def _busy(loader: Mapping[str, Any]) -> float | None:
    alive_ns = _number(loader, "alive_ns")
    return min(_number(loader, "worked_ns") / alive_ns, 1.0) if alive_ns > 0 else None


def _how(inputs: InputTime, loader: Mapping[str, Any]) -> tuple[str, tuple[Evidence, ...]]:
    evidence = tuple(
        Evidence("host.input_part", f"{duration_text(ns)} {part}", ns, "ns")
        for part, ns in sorted((inputs.parts or {}).items(), key=lambda part: -part[1])
    )
    if inputs.main_part == LOADING:
        return "the main process loads and collates itself (num_workers=0)", evidence
    workers, busy = _number(loader, "workers"), _busy(loader)
    named = count_text(workers, "worker") if workers else "its workers"
    if workers:
        evidence += (Evidence("loader.workers", named, workers, "workers"),)
    if inputs.main_part == STARTING:
        epochs = count_text(_number(loader, "epochs"), "epoch")
        return f"{named} start and end" + (f", {epochs}" if loader else ""), evidence
    if inputs.main_part == RECEIVING:
        return f"the main process unpacks what {named} made", evidence
    ready = _ready(loader)
    if ready is not None:
        text = f"{share_text(ready, decimals=0)} of the batches in advance were there"
        evidence += (Evidence("loader.ready", text, ready, "fraction"),)
    if ready is not None and ready >= _KEPT_UP:
        return f"{named} keep up, to hand batches over takes that time", evidence
    if busy is None:
        return f"{named} cannot keep up", evidence
    text = f"on processors {share_text(busy, decimals=0)} of their time"
    evidence += (Evidence("loader.busy", f"{named} {text}", busy, "fraction"),)
    how = "" if busy >= _BUSY else " and wait for files, a network or processors"
    return f"{named} cannot keep up{how}, {text}", evidence


def _ready(loader: Mapping[str, Any]) -> float | None:
    most = _number(loader, "batches") * _number(loader, "workers") * _number(loader, "prefetch")
    return min(_number(loader, "queued") / most, 1.0) if most > 0 else None


def _advice(inputs: InputTime, loader: Mapping[str, Any], *, has_gpu: bool) -> str:
    busy = _busy(loader)
    of_workers = _OF_WAITING if busy is not None and busy < _BUSY else _OF_BUSY
    if (ready := _ready(loader)) is not None and ready >= _KEPT_UP:
        of_workers = _OF_READY
    helps = _HELPS.get(inputs.main_part, of_workers)
    if loader.get("persists") is False and _number(loader, "epochs") > 1:
        helps += "" if inputs.main_part == STARTING else ", persistent_workers=True"
    return f"{helps}, pin_memory=True" if has_gpu and loader.get("pins") is False else helps


# -- memory of the driver -------------------------------------------------------------------------
# Of the run, and in samples of the host: one alone may be by chance.
_LEAST_STALLED, _LEAST_SAMPLES = 0.02, 2
_EMPTYING = re.compile(r".*/torch/(cuda|accelerator)/memory\.py:\d+@empty_cache", re.DOTALL)
_NAMED = 3


def allocator_stalls(run: WholeRun) -> Iterator[Claim]:
    """Find calls that take memory from the driver or give it back while no device works.

    A caching allocator makes them at the start. Later ones mean that its cache is emptied, or too
    fragmented for what is asked.
    """
    whole_ns = 0.0
    spent: dict[str, float] = {}
    lines: dict[str, float] = {}
    places = Places.of(run.recorded.provenance)
    for spot in host_paths(run.recorded):
        call = next((name for name in reversed(spot.path) if name in MEMORY_CALLS), "")
        if not call and any(map(_EMPTYING.fullmatch, spot.path)):
            call = "empty_cache"
        if not call or spot.is_import or compile_stage(spot.path):
            continue
        stalled_ns = spot.wall_ns if spot.idle_ns is None else spot.idle_ns
        whole_ns += spot.wall_ns
        spent[call] = spent.get(call, 0.0) + stalled_ns
        own = [name for name in spot.path if parse_frame(name) and not places.library_of(name)]
        for line in own[-1:]:
            lines[line] = lines.get(line, 0.0) + stalled_ns
    for name in MEMORY_CALLS & set(run.recorded.strings):
        if (recorded_ns := recorded_in_ns(run.recorded, {name})) > 0:
            whole_ns += recorded_ns
            spent[name] = spent.get(name, 0.0) + recorded_ns
    lost_ns = min(sum(spent.values()), run.open_ns)
    period_ns = sample_period_ns(run.recorded) if lines else 0.0
    if lost_ns < max(_LEAST_STALLED * run.span_ns, _LEAST_SAMPLES * period_ns) or not lost_ns > 0:
        return
    calls = sorted(spent.items(), key=lambda pair: -pair[1])[:_NAMED]
    named = [
        Evidence("host.memory_call", f"{duration_text(ns)} in {name}", ns, "ns")
        for name, ns in calls
    ]
    texts = frame_texts(lines, places)
    longest = sorted(lines.items(), key=lambda pair: -pair[1])[:_NAMED]
    at = [
        Evidence("host.line", f"{duration_text(ns)} in {texts[line]}", ns, "ns")
        for line, ns in longest
    ]
    share = share_text(lost_ns / run.span_ns, decimals=0)
    text = f"the GPU waits for its memory allocator {share} of the {run.word}: {named[0].text}"
    text += f", most at {texts[longest[0][0]]}" if longest else ""
    # After a call that waited for it, the device also waits for the next launch.
    yield Claim(text, (*named, *at), pools={BETWEEN: min(whole_ns, run.open_ns)})


# -- compiling ------------------------------------------------------------------------------------
_MUCH = 0.1  # of the time of all stages


def compilations(run: WholeRun) -> Iterator[Claim]:
    """Find time in which code was compiled or tuned."""
    compiled = run.compilation
    if not compiled.total_ns > 0:
        return
    texts = {name: f"{name} {duration_text(time_ns)}" for name, time_ns in compiled.stages}
    evidence = [
        Evidence("host.compile", f"{duration_text(time_ns)} in {name}", time_ns, "ns")
        for name, time_ns in compiled.stages
    ]
    if compiled.trials_ns > 0:
        trials = f"{duration_text(compiled.trials_ns)} of trials of autotuners on the GPU"
        evidence.append(Evidence("kernels.trials", trials, compiled.trials_ns, "ns"))
        if TUNING in texts:
            trials = f"{texts[TUNING]} ({duration_text(compiled.trials_ns)} on the GPU)"
        texts[TUNING] = trials
    between_ns = min(compiled.idle_ns, run.between_ns)
    outside_ns = min(compiled.idle_ns - between_ns, run.outside_ns)
    rest_ns = max(compiled.total_ns - between_ns - outside_ns, 0.0)
    pools = {BETWEEN: between_ns, OUTSIDE: outside_ns, BUSY: rest_ns}
    stages = {name for name, ns in compiled.stages if ns >= _MUCH * compiled.total_ns}
    share = compiled.total_ns / run.span_ns if run.span_ns > 0 else 0.0
    what = "compilation"
    is_in_steps = run.word == "step" and share >= _COMPILED_STEPS
    if share >= _COMPILE_BOUND or is_in_steps:
        what = f"compile-bound: {share_text(share, decimals=0)} of the {run.word}"
        evidence.insert(0, Evidence("host.compiled", what, share, "fraction of the run"))
    if is_in_steps:
        what += " compiles again"
        if (count := _compilations(run)) > 0:
            evidence.append(Evidence("ops.compile", f"{count:.3g} compilations", count, "calls"))
    yield Claim(
        f"{what}: {', '.join(texts.values())}",
        tuple(evidence),
        pools=pools,
        helps=_RECOMPILED if is_in_steps else _of_compilers(stages),
        is_in_steps=is_in_steps,
    )


# Most of the time; and of steady steps, whose code was compiled before, more than samples of the
# host that by chance were at a check of a guard.
_COMPILE_BOUND, _COMPILED_STEPS = 0.5, 0.1
_RECOMPILED = (
    "TORCH_LOGS=recompiles says why: fixed or padded shapes, dynamic=True, no changing numbers as "
    "arguments (tl.constexpr), autotuning keys that repeat"
)


def _compilations(run: WholeRun) -> float:
    """Return how many compilations are recorded as ranges, in the mean of a step; 0 if unknown."""
    profile = run.recorded
    rows = list(outermost(profile, set(filter(is_compilation, profile.strings))))
    return float(np.maximum(own_numbers(profile, "count")[rows], 0.0).sum())


def _of_compilers(stages: set[str]) -> str:
    """Return what helps against these stages, and trials of autotuners."""
    folders = {"Inductor": "TORCHINDUCTOR_CACHE_DIR", "Triton": "TRITON_CACHE_DIR"}
    kept = [folder for stage, folder in folders.items() if stage in stages]
    helps = [f"a cache that lasts ({', '.join(kept)})"] if kept else []
    if stages & {"dynamo", "torch.compile"}:
        helps.append("fixed shapes, fewer graph breaks")
    if "Inductor" not in stages and (TUNING in stages or not stages):
        helps.append("fewer configurations, or autotune(cache_results=True)")
    return f"{', '.join(helps)}; of no weight in a long run"
